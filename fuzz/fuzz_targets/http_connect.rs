//! See [`tack_fuzz::http_connect`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::http_connect(bytes));
