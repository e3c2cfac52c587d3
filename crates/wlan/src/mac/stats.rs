//! What one radio has done.

/// Counters of one radio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// PPDUs sent, responses and beacons included.
    pub ppdus: u64,
    /// PPDUs sent that won contention or followed within a TXOP, and want a response.
    pub attempts: u64,
    /// Attempts that another transmission spoilt at their receiver.
    pub collisions: u64,
    /// Attempts that were not answered, for whatever reason.
    pub unanswered: u64,
    /// Data frames sent.
    pub mpdus: u64,
    /// PPDUs with data frames.
    pub data_ppdus: u64,
    /// Data frames sent again.
    pub retries: u64,
    /// Data frames acknowledged.
    pub acked: u64,
    /// Data frames given up after the last attempt.
    pub retry_drops: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Data frames received for the first time.
    pub received: u64,
    /// Bytes of the packets in them.
    pub received_bytes: u64,
    /// Data frames received again.
    pub duplicates: u64,
    /// Longest queue, packets.
    pub queue_max: u64,
}
