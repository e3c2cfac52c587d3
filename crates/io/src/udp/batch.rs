//! Batches of datagrams, as one system call takes them.

/// Largest UDP payload of an IPv4 packet, and so of one segmentation-offload batch; IPv6 would
/// allow 20 bytes more.
pub const MAX_BATCH_BYTES: usize = 65_535 - 20 - 8;

/// Whether the kernel cuts batches into datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Segmentation {
    /// Gives whole batches to the kernel as long as it accepts them; single datagrams once it
    /// refused one.
    #[default]
    Offload,
    /// One system call for each datagram.
    Single,
}
