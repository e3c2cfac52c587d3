//! Counters of one radio.

/// Counters of one radio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// PPDUs sent, responses and beacons included.
    pub ppdus: u64,
    /// PPDUs sent that won contention or followed within a TXOP, and want a response.
    pub attempts: u64,
    /// Attempts that another transmission spoilt at their receiver.
    pub collisions: u64,
    /// Channel accesses: of each exchange that won contention, the first PPDU that wants a
    /// response. With RTS that is the RTS, while `attempts` counts the data behind it too.
    pub accesses: u64,
    /// Those that another transmission spoilt at their receiver.
    pub access_collisions: u64,
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
    /// Packets that the queue discipline let go for one that came later.
    pub superseded: u64,
    /// Packets taken out of the queue before they were sent.
    pub removed: u64,
    /// ACKs and Block ACKs sent that carried something.
    pub carrying: u64,
    /// Bytes that they carried.
    pub carried_bytes: u64,
    /// Data frames received for the first time.
    pub received: u64,
    /// Bytes of the packets in them.
    pub received_bytes: u64,
    /// Data frames received again, or after the reordering window had passed them.
    pub duplicates: u64,
    /// How often frames were released because they had waited too long for one before them.
    pub reorder_timeouts: u64,
    /// Longest queue, packets.
    pub queue_max: u64,
}
