//! See [`tack_fuzz::ip`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::ip(bytes));
