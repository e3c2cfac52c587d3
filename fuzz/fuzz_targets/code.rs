//! See [`tack_fuzz::code`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::code(bytes));
