//! See [`tack_fuzz::records`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::records(bytes));
