//! The experiments of the TACK paper's sequel.

pub(super) mod s1_convergence;
pub(super) mod s2_rtt_fairness;
pub(super) mod s3_traffic_change;
