//! The figures of the TCP/HACK paper (ATC 2014).

pub(super) mod analytic;
