//! See [`tack_fuzz::segment`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::segment(bytes));
