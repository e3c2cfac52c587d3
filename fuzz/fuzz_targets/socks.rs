//! See [`tack_fuzz::socks`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::socks(bytes));
