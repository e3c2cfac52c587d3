//! What a connection counted.

use core::time::Duration;

use crate::send::loss_sign::LossCounts;

/// Counters and estimates of one connection, since its beginning. A snapshot: subtract two for an
/// interval.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Segments with payload sent, retransmissions included.
    pub data_segments: u64,
    /// Payload bytes sent, retransmissions included.
    pub data_bytes: u64,
    /// Segments that carried bytes sent before.
    pub retransmitted_segments: u64,
    /// Payload bytes of those.
    pub retransmitted_bytes: u64,
    /// Retransmissions that the peer turned out to have had (DSACK, Eifel).
    pub spurious_retransmissions: u64,
    /// Pure acknowledgements sent (no payload, SYN, FIN or RST).
    pub acks: u64,
    /// Bytes of those, TCP header and options.
    pub ack_bytes: u64,
    /// Pure acknowledgements sent because the policy's threshold or timer was reached.
    pub acks_delayed: u64,
    /// Those of the periodic ones (`acks_delayed`, `acks_tack`) that a timer released, not a count
    /// of segments.
    pub acks_by_timer: u64,
    /// Pure acknowledgements sent at once on out-of-order, duplicate or gap-filling data.
    pub acks_loss: u64,
    /// Pure acknowledgements sent to announce a window.
    pub acks_window: u64,
    /// Periodic acknowledgements with a report (TACK).
    pub acks_tack: u64,
    /// Acknowledgements sent because their frequency halved or doubled (TACK).
    pub acks_sync: u64,
    /// Segments that tell the peer RTTmin and the loss of its acknowledgements, sent as the sender
    /// of data (TACK).
    pub syncs: u64,
    /// Challenge ACKs (RFC 5961), keep-alive answers and other acknowledgements of connection
    /// events.
    pub acks_event: u64,
    /// Pure acknowledgements received.
    pub acks_received: u64,
    /// Segments with payload received, duplicates included.
    pub segments_received: u64,
    /// Bytes cumulatively acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes delivered to the application.
    pub bytes_read: u64,
    /// Segments received whose bytes were all here already.
    pub duplicate_segments: u64,
    /// Retransmission timeouts.
    pub rto_count: u64,
    /// Tail loss probes sent (RFC 8985 §7).
    pub tlp_count: u64,
    /// Loss episodes entered by fast recovery.
    pub fast_recoveries: u64,
    /// Segments taken for lost, by what told.
    pub losses: LossCounts,
    /// Episodes undone as spurious.
    pub undone_episodes: u64,
    /// Congestion-experienced marks received.
    pub ce_received: u64,
    /// Segments of ours that the peer counted as marked, where it counts them (RFC 9768).
    pub ce_reported: u64,
    /// Segments dropped because no peer that follows the RFCs would send them (out of window,
    /// PAWS, bad ACK, …).
    pub dropped_segments: u64,
    /// Those of them that carried a report which cannot be true, or is malformed (TACK).
    pub invalid_reports: u64,
    /// Segments kept back to see whether the peer acknowledges what it did not get.
    pub audits: u64,
    /// How often data that waited above a hole was thrown away because the endpoint's memory was
    /// exhausted.
    pub pruned: u64,
    /// Smallest RTT seen.
    pub min_rtt: Option<Duration>,
    /// The congestion controller's own RTTmin, where it has one: that of BBR is of the last ten
    /// seconds.
    pub cc_min_rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// RTT variation (RFC 6298).
    pub rttvar: Option<Duration>,
    /// Retransmission timeout in force.
    pub rto: Duration,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Peer's window, bytes.
    pub snd_wnd: u64,
    /// Receive buffer in use by autotuning, bytes.
    pub receive_buffer: usize,
    /// Sender maximum segment size, payload bytes.
    pub mss: u16,
    /// Time that sending was limited by the congestion window.
    pub limited_by_cwnd: Duration,
    /// Time that sending was limited by the peer's window.
    pub limited_by_rwnd: Duration,
    /// Time that sending waited for a pacing deadline.
    pub limited_by_pacing: Duration,
    /// Time without anything to send.
    pub limited_by_app: Duration,
}
