//! Events for the unit tests of controllers. Whole controllers on a network are tested by
//! `crates/sim/tests/runs/controllers.rs`.

use super::*;

/// An acknowledgement of `bytes` in order, with the window in use, outside recovery.
pub(super) fn plain_ack(now: Instant, bytes: u64, snd_una: u64, snd_nxt: u64) -> Ack {
    let rtt = Duration::from_millis(40);
    Ack {
        now,
        acked: bytes,
        delivered: bytes,
        lost: 0,
        prior_in_flight: snd_nxt - snd_una + bytes,
        bytes_in_flight: snd_nxt - snd_una,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        rate: None,
        total_delivered: snd_una,
        total_lost: 0,
        snd_una: StreamOffset(snd_una),
        snd_nxt: StreamOffset(snd_nxt),
        in_recovery: false,
        cwnd_limited: true,
        slow_start_room: u64::MAX,
        token: SendToken::default(),
    }
}

/// An episode that begins with `flight` bytes in flight.
pub(super) fn congestion(cause: Cause, flight: u64, consecutive_timeouts: u32) -> Congestion {
    Congestion {
        now: Instant::ZERO,
        cause,
        prior_in_flight: flight,
        cwnd_limited: false,
        consecutive_timeouts,
        snd_nxt: StreamOffset(flight),
    }
}
