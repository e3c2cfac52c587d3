//! See [`tack_fuzz::rohc_streams`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::rohc_streams(bytes));
