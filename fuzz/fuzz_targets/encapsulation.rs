//! See [`tack_fuzz::encapsulation`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::encapsulation(bytes));
