//! See [`tack_fuzz::tunnel_messages`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::tunnel_messages(bytes));
