//! The scripts about disorder and loss: SACK, RACK, tail loss probes, timeouts.

use super::play::{passive, without_timeouts};

/// RFC 8985 §7, §6.2: the tail is probed for long before a timeout, and what is missing before it
/// comes again.
#[test]
fn tail_loss_is_probed_for() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        write 3000
        * > . 1:3001(3000) ack 1 each 1000
        * > P. 2001:3001(1000) ack 1
        < . 1:1(0) ack 1 <sack 2001:3001>
        * > . 1:1001(1000) ack 1
        < . 1:1(0) ack 1001 <sack 2001:3001>
        * > . 1001:2001(1000) ack 1
        < . 1:1(0) ack 3001
        ",
    );
}

/// RFC 2018 §4: the block that arrived last comes first; acknowledgements of disorder at once.
#[test]
fn disorder_is_reported_by_sack() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        * > S. 0:0(0) ack 1 <mss 1460,sackOK>
        < . 1:1(0) ack 1
        < . 1001:2001(1000) ack 1
        * > . 1:1(0) ack 1 <sack 1001:2001>
        < . 3001:4001(1000) ack 1
        * > . 1:1(0) ack 1 <sack 3001:4001 1001:2001>
        < . 1:1001(1000) ack 1
        * > . 1:1(0) ack 2001 <sack 3001:4001>
        < . 2001:3001(1000) ack 1
        * > . 1:1(0) ack 4001 <>
        read 4000
        ",
    );
}

/// Bytes that arrive twice count once, wherever segments are cut.
#[test]
fn overlapping_data() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        < . 2001:3001(1000) ack 1
        * > . 1:1(0) ack 1
        < . 1501:2501(1000) ack 1
        * > . 1:1(0) ack 1
        < . 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001
        < . 501:1701(1200) ack 1
        * > . 1:1(0) ack 3001
        < . 1:501(500) ack 1
        * > . 1:1(0) ack 3001
        read 3000
        ",
    );
}

/// RFC 2018 §5, RFC 6675: what SACK leaves out is sent again without a timeout.
#[test]
fn sack_brings_back_what_is_missing() {
    without_timeouts(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        * > S. 0:0(0) ack 1 <mss 1460,sackOK>
        +500ms < . 1:1(0) ack 1
        write 6000
        * > . 1:6001(6000) ack 1 each 1000
        < . 1:1(0) ack 1 <sack 1001:2001>
        < . 1:1(0) ack 1 <sack 1001:3001>
        < . 1:1(0) ack 1 <sack 1001:6001>
        * > . 1:1001(1000) ack 1
        < . 1:1(0) ack 6001
        ",
    );
}

/// RFC 6298 §5: what is not acknowledged is sent again after a timeout.
#[test]
fn silence_brings_back_what_is_unacknowledged() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        write 1000
        * > P. 1:1001(1000) ack 1
        * > P. 1:1001(1000) ack 1
        < . 1:1(0) ack 1001
        ",
    );
}

/// RFC 8985 §6.2, steps 4 and 5: what left before a segment that is here is lost once the
/// reordering window is over. One segment alone is reported: three duplicate acknowledgements never
/// come (RFC 5681, RFC 6675), there is no tail loss probe beside SACK blocks (RFC 8985 §7.3), and
/// no timeout. The handshake is slow, so that no probe leaves before the report is here.
#[test]
fn time_tells_of_losses_that_too_few_acknowledgements_report() {
    without_timeouts(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        * > S. 0:0(0) ack 1 <mss 1460,sackOK>
        +500ms < . 1:1(0) ack 1
        write 3000
        * > . 1:3001(3000) ack 1 each 1000
        < . 1:1(0) ack 1 <sack 2001:3001>
        * > . 1:1001(1000) ack 1
        < . 1:1(0) ack 1001 <sack 2001:3001>
        * > . 1001:2001(1000) ack 1
        < . 1:1(0) ack 3001
        ",
    );
}

/// RFC 8985 §6.2: a retransmission is lost, too, once a segment that left after it is here. Counts
/// of acknowledgements know nothing of it (RFC 6675 leaves it to a timeout).
#[test]
fn a_lost_retransmission_is_noticed() {
    without_timeouts(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        * > S. 0:0(0) ack 1 <mss 1460,sackOK>
        +500ms < . 1:1(0) ack 1
        write 8000
        * > . 1:8001(8000) ack 1 each 1000
        < . 1:1(0) ack 1 <sack 1001:4001>
        * > . 1:1001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:8001>
        write 1000
        * > P. 8001:9001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:9001>
        * > . 1:1001(1000) ack 1
        < . 1:1(0) ack 9001
        ",
    );
}

/// RFC 2883 §4: the first block of an acknowledgement reports what arrived twice, whole or in part,
/// below the acknowledged number or above it. Above it the block around it follows. A duplicate is
/// reported once.
#[test]
fn duplicates_are_reported_by_dsack() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        * > S. 0:0(0) ack 1 <sackOK,...>
        < . 1:1(0) ack 1
        < . 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001 <>
        < . 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001 <sack 1:1001>
        < . 501:1501(1000) ack 1
        * > . 1:1(0) ack 1501 <sack 501:1001>
        < . 2001:3001(1000) ack 1
        * > . 1:1(0) ack 1501 <sack 2001:3001>
        < . 2001:3001(1000) ack 1
        * > . 1:1(0) ack 1501 <sack 2001:3001 2001:3001>
        < . 1:501(500) ack 1
        * > . 1:1(0) ack 1501 <sack 1:501 2001:3001>
        < . 4001:5001(1000) ack 1
        * > . 1:1(0) ack 1501 <sack 4001:5001 2001:3001>
        < . 1501:2001(500) ack 1
        * > . 1:1(0) ack 3001 <sack 4001:5001>
        < . 3001:4001(1000) ack 1
        * > . 1:1(0) ack 5001 <>
        read 5000
        ",
    );
}

/// RFC 2883 §4.2: a segment above the acknowledged number that arrived in part.
#[test]
fn duplicate_parts_are_reported_by_dsack() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        * > S. 0:0(0) ack 1 <sackOK,...>
        < . 1:1(0) ack 1
        < . 2001:3001(1000) ack 1
        * > . 1:1(0) ack 1 <sack 2001:3001>
        < . 2501:3501(1000) ack 1
        * > . 1:1(0) ack 1 <sack 2501:3001 2001:3501>
        < . 1501:2501(1000) ack 1
        * > . 1:1(0) ack 1 <sack 2001:2501 1501:3501>
        < . 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001 <sack 1501:3501>
        < . 1001:2001(1000) ack 1
        * > . 1:1(0) ack 3501 <sack 1501:2001>
        read 3500
        ",
    );
}
