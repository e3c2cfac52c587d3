//! Which filter of TCP acknowledgements a queue has.

/// A filter of TCP acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AckFilter {
    /// None: first in, first out.
    #[default]
    Off,
    /// Figure 1 of Kim, Lee, Shin and Kang, "On the cross-layer impact of TCP ACK thinning on IEEE 802.11 wireless MAC
    /// dynamics" (VTC 2006).
    Paper,
    /// The same for acknowledgements that tell nothing but what the newer one tells too.
    Safe,
    /// The filter of Linux's `sch_cake`, conservative: one redundant acknowledgement always stays.
    Cake,
    /// The filter of Linux's `sch_cake`, aggressive.
    CakeAggressive,
}
