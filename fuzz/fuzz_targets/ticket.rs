//! See [`tack_fuzz::ticket`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::ticket(bytes));
