//! TLS records, from a peer and over a path that break the rules.

/// A script of what a peer seals, what the path does to it, and how it is read.
pub fn records(script: &[u8]) {
    tack::secure::trial_of_records(script);
}
