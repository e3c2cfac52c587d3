//! See [`tack_fuzz::transfer_frames`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tack_fuzz::transfer_frames(bytes));
