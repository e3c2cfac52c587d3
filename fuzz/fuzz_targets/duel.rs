//! See [`tack_fuzz::duel`].
#![no_main]

libfuzzer_sys::fuzz_target!(|run: tack_fuzz::Match| tack_fuzz::duel(&run));
