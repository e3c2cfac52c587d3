//! See [`tack_fuzz::connection_ops`].
#![no_main]

libfuzzer_sys::fuzz_target!(|run: tack_fuzz::Run| tack_fuzz::connection_ops(&run));
