//! See [`tack_fuzz::options`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::options(bytes));
