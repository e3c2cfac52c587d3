//! See [`tack_fuzz::tack_lists`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::tack_lists(bytes));
