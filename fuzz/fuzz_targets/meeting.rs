//! See [`tack_fuzz::meeting`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::meeting(bytes));
