//! The scripts about connections: how they begin and end, windows, and what is not believed.

use super::play::{everywhere, passive, play, play_over};
use super::player::Player;
use super::subject::{Family, Opening, Settings, Who};
use crate::world::{isolated, sysctl};

/// RFC 9293 §3.5, RFC 7323 §2.2, RFC 2018 §2: options are answered in kind, data is acknowledged.
#[test]
fn handshake_with_all_options() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK,wscale 7,TS>
        * > S. 0:0(0) ack 1 <mss 1460,sackOK,TS,...>
        < . 1:1(0) ack 1
        event Connected
        < P. 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001 <TS>
        read 1000
        write 500
        * > P. 1:501(500) ack 1001 <TS>
        < . 1001:1001(0) ack 501
        ",
    );
}

/// Segment sizes by family: that of Ethernet, and that of a peer which names none (RFC 9293 §3.7.1,
/// MUST-15).
const SIZES: [(Family, usize, usize); 2] = [(Family::V4, 1460, 536), (Family::V6, 1440, 1220)];

/// RFC 9293 §3.7.1 (MUST-15): what leaves without an MSS option. A peer that offers no options gets
/// none but the MSS.
#[test]
fn handshake_without_options() {
    for (family, mss, each) in SIZES {
        let (len, end) = (2 * each, 2 * each + 1);
        play_over(
            family,
            Opening::Passive,
            &format!(
                "
                < S 0:0(0) win 65535 <>
                * > S. 0:0(0) ack 1 <mss {mss}>
                < . 1:1(0) ack 1
                write {len}
                * > . 1:{end}({len}) ack 1 each {each} <>
                < . 1:1(0) ack {end}
                "
            ),
        );
    }
}

/// As who opens, too.
#[test]
fn active_open_to_a_peer_without_options() {
    for (family, mss, each) in SIZES {
        let (len, end) = (2 * each, 2 * each + 1);
        play_over(
            family,
            Opening::Active,
            &format!(
                "
                * > SEW 0:0(0) <mss {mss},sackOK,TS,...>
                < S. 0:0(0) ack 1 win 65535 <>
                * > . 1:1(0) ack 1 <>
                event Connected
                write {len}
                * > . 1:{end}({len}) ack 1 each {each} <>
                < . 1:1(0) ack {end}
                "
            ),
        );
    }
}

#[test]
fn active_open() {
    play(
        Opening::Active,
        "
        * > SEW 0:0(0) <mss 1460,sackOK,TS,...>
        < S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>
        * > . 1:1(0) ack 1 <>
        event Connected
        write 1500
        * > . 1:1001(1000) ack 1
        * > P. 1001:1501(500) ack 1
        < . 1:1(0) ack 1501
        ",
    );
}

/// RFC 9293 §3.5.2: a reset that acknowledges the SYN refuses.
#[test]
fn refused() {
    play(
        Opening::Active,
        "
        * > SEW 0:0(0)
        < R. 0:0(0) ack 1
        event Closed Refused
        ",
    );
}

/// RFC 9293 §3.10.7.3: a reset that does not acknowledge the SYN is ignored.
#[test]
fn resets_without_the_syns_number_do_not_refuse() {
    play(
        Opening::Active,
        "
        * > SEW 0:0(0)
        < R. 0:0(0) ack 77
        < R 0:0(0)
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        * > . 1:1(0) ack 1
        event Connected
        ",
    );
}

/// RFC 9293 §3.5, figure 8.
#[test]
fn simultaneous_open() {
    play(
        Opening::Active,
        "
        * > SEW 0:0(0)
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        * > . 1:1(0) ack 1
        event Connected
        write 100
        * > P. 1:101(100) ack 1
        < . 1:1(0) ack 101
        ",
    );
}

/// RFC 9293 §3.6, figure 13.
#[test]
fn simultaneous_close() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        finish
        * > F. 1:1(0) ack 1
        < F. 1:1(0) ack 1
        * > . 2:2(0) ack 2
        < . 2:2(0) ack 2
        eof
        +50ms > nothing
        ",
    );
}

/// RFC 9293 §3.6: the peer ends its stream, ours goes on.
#[test]
fn half_close() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        < F. 1:1(0) ack 1
        * > . 1:1(0) ack 2
        eof
        write 1000
        * > P. 1:1001(1000) ack 2
        < . 2:2(0) ack 1001
        finish
        * > F. 1001:1001(0) ack 2
        < . 2:2(0) ack 1002
        ",
    );
}

/// RFC 9293 §3.6.1, §3.10.7.8: who closes first waits, and acknowledges the FIN again.
#[test]
fn time_wait_answers_a_repeated_fin() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        event Connected
        finish
        * > F. 1:1(0) ack 1
        < . 1:1(0) ack 2
        < F. 1:1(0) ack 2
        * > . 2:2(0) ack 2
        < F. 1:1(0) ack 2
        * > . 2:2(0) ack 2
        ",
    );
}

/// Plays what follows when the subject is in TIME-WAIT, after a connection whose SYN had `options`.
fn from_time_wait(options: &str, script: &str) {
    passive(&format!(
        "
        < S 0:0(0) win 65535 <{options}>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        event Connected
        finish
        * > F. 1:1(0) ack 1
        < F. 1:1(0) ack 2
        * > . 2:2(0) ack 2
        {script}"
    ));
}

/// RFC 9293 §3.6.1: a SYN beyond what was used opens a connection anew out of TIME-WAIT.
#[test]
fn time_wait_gives_way_to_a_new_connection() {
    from_time_wait(
        "mss 1000",
        "
        < S 5000:5000(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 5001
        < . 5001:5001(0) ack 1
        < P. 5001:5101(100) ack 1
        * > . 1:1(0) ack 5101
        ",
    );
}

/// RFC 9293 §3.6.1: an old duplicate of a SYN does not end TIME-WAIT.
#[test]
fn time_wait_outlives_an_old_syn() {
    from_time_wait(
        "mss 1000",
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > . 2:2(0) ack 2
        ",
    );
}

/// RFC 6191 §2: the same SYN opens a connection anew if its timestamp is later than what came.
#[test]
fn time_wait_gives_way_to_a_later_timestamp() {
    from_time_wait(
        "mss 1000,TS",
        "
        +20ms < S 0:0(0) win 65535 <mss 1000,TS>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        < P. 1:101(100) ack 1
        * > . 1:1(0) ack 101
        ",
    );
}

/// RFC 7323 §2.3: windows are shifted, and kept to.
#[test]
fn scaled_windows_are_kept_to() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,wscale 2>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1 win 16000
        < P. 1:101(100) ack 1 win 16000
        * > . 1:1(0) ack 101
        read 100
        < . 101:101(0) ack 1 win 250
        +20ms write 0
        write 5000
        * > . 1:1001(1000) ack 101
        +100ms > nothing
        < . 101:101(0) ack 1001 win 1000
        * > . 1001:5001(4000) ack 101 each 1000
        < . 101:101(0) ack 5001 win 1000
        ",
    );
}

/// RFC 9293 §3.8.6.1: a closed window is probed, and what opens it is heard.
#[test]
fn closed_windows_are_probed() {
    for (family, who) in everywhere() {
        isolated(move || async move {
            let settings = Settings {
                family,
                ..Settings::default()
            };
            let mut player = Player::new(who, Opening::Passive, settings).await;
            player
                .run(
                    "
                    < S 0:0(0) win 65535 <mss 1000>
                    * > S. 0:0(0) ack 1
                    < . 1:1(0) ack 1
                    event Connected
                    < . 1:1(0) ack 1 win 0
                    +20ms write 1000
                    ",
                )
                .await;
            for _ in 0..2 {
                player.expect_probe().await;
                player.run("< . 1:1(0) ack 1 win 0").await;
            }
            player
                .run(
                    "
                    < . 1:1(0) ack 1 win 1000
                    * > P. 1:1001(1000) ack 1
                    < . 1:1(0) ack 1001
                    ",
                )
                .await;
        });
    }
}

/// RFC 7323 §4.3: what is echoed is the time of the segment that the acknowledgement is for: of the
/// first one that it acknowledges, and of none that came after a gap.
#[test]
fn timestamps_are_echoed() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK,TS val 2000000 ecr 0>
        * > S. 0:0(0) ack 1 <TS val * ecr 2000000,...>
        < . 1:1(0) ack 1 <TS val 2000001 ecr *>
        < P. 1:1001(1000) ack 1 <TS val 2000010 ecr *>
        * > . 1:1(0) ack 1001 <TS val * ecr 2000010>
        < P. 2001:3001(1000) ack 1 <TS val 2000030 ecr *>
        * > . 1:1(0) ack 1001 <TS val * ecr 2000010,...>
        < P. 1001:2001(1000) ack 1 <TS val 2000040 ecr *>
        * > . 1:1(0) ack 3001 <TS val * ecr 2000040>
        read 3000
        write 500
        * > P. 1:501(500) ack 3001 <TS val * ecr 2000040>
        < . 3001:3001(0) ack 501 <TS val 2000050 ecr *>
        ",
    );
}

/// RFC 7323 §5: a segment from the past is acknowledged and dropped.
#[test]
fn paws() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000,TS>
        * > S. 0:0(0) ack 1 <TS,...>
        < . 1:1(0) ack 1
        < P. 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001
        < P. 1001:2001(1000) ack 1 <TS val 7 ecr *>
        * > . 1:1(0) ack 1001
        read 1000
        < P. 1001:2001(1000) ack 1
        * > . 1:1(0) ack 2001
        read 1000
        ",
    );
}

/// RFC 5961 §3.2: a reset in the window, but not at its edge, is challenged; one outside of it is
/// ignored; at the edge, which has moved on here, it counts. The subject has sent data and no
/// acknowledgement since, so an answer to the ignored ones would be a new segment.
#[test]
fn resets_are_validated() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        event Connected
        write 100
        * > P. 1:101(100) ack 1
        < . 1:1(0) ack 101
        < R 0:0(0)
        < R 200000:200000(0)
        +100ms > nothing
        < R 5000:5000(0)
        * > . 101:101(0) ack 1
        < P. 1:101(100) ack 101
        * > . 101:101(0) ack 101
        read 100
        < R 101:101(0)
        event Closed Reset
        ",
    );
}

/// RFC 5961 §4: a SYN in a connection is challenged, whatever its number: at the edge of the
/// window, inside of it, below it and above it.
#[test]
fn syns_are_challenged() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        event Connected
        < S 1:1(0)
        * > . 1:1(0) ack 1
        < P. 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001
        < S 5000:5000(0)
        * > . 1:1(0) ack 1001
        < S 500:500(0)
        * > . 1:1(0) ack 1001
        < S 200000:200000(0)
        * > . 1:1(0) ack 1001
        < P. 1001:2001(1000) ack 1
        * > . 1:1(0) ack 2001
        read 2000
        ",
    );
}

/// RFC 9293 §3.10.7.4, RFC 5961 §5.2: an acknowledgement of what was not sent is answered, and
/// means nothing.
#[test]
fn acknowledgements_from_the_future_are_answered() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        event Connected
        write 1000
        * > P. 1:1001(1000) ack 1
        < P. 1:101(100) ack 5000
        * > . 1001:1001(0) ack 1
        < P. 1:101(100) ack 1001
        * > . 1001:1001(0) ack 101
        read 100
        ",
    );
}

/// RFC 1191 §6.3: what was too long leaves again in smaller segments.
#[test]
fn path_mtu_is_reduced() {
    play_over(
        Family::V4,
        Opening::Passive,
        "
        < S 0:0(0) win 65535 <mss 1460>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        write 1460
        * > P. 1:1461(1460) ack 1
        mtu 1000
        * > . 1:961(960) ack 1
        * > P. 961:1461(500) ack 1
        < . 1:1(0) ack 1461
        ",
    );
}

/// RFC 8201 §4: over IPv6 too, by what ICMPv6 says.
#[test]
fn path_mtu_is_reduced_over_ipv6() {
    play_over(
        Family::V6,
        Opening::Passive,
        "
        < S 0:0(0) win 65535 <mss 1440>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        write 1440
        * > P. 1:1441(1440) ack 1
        mtu 1300
        * > . 1:1241(1240) ack 1
        * > P. 1241:1441(200) ack 1
        < . 1:1(0) ack 1441
        ",
    );
}

/// An application that aborts resets the peer.
#[test]
fn abort_resets() {
    passive(
        "
        < S 0:0(0) win 65535 <mss 1000>
        * > S. 0:0(0) ack 1
        < . 1:1(0) ack 1
        abort
        * > R. 1:1(0) ack 1
        < P. 1:1001(1000) ack 1
        * > R 1:1(0)
        ",
    );
}

/// RFC 9293 §3.10.7.1: a segment of no connection is reset, with the number that it expects.
#[test]
fn strays_are_reset() {
    passive(
        "
        < . 1:1(0) ack 500
        * > R 500:500(0)
        ",
    );
}

/// RFC 4987 §3.6: while SYNs of a flood wait, a handshake takes no memory. The cookie knows the
/// segment size only roughly: 1000 becomes 536. A guess is reset.
#[test]
fn syn_cookies_under_flood() {
    // A size that the kernel's cookies of IPv6 know, which have none below it.
    for (family, own, peer, each) in [
        (Family::V4, 1460, 1000, 536),
        (Family::V6, 1440, 1300, 1220),
    ] {
        let (len, end) = (2 * each, 2 * each + 1);
        let script = format!(
            "
            < S 0:0(0) win 65535 <mss {peer}>
            * > S. 0:0(0) ack 1 <mss {own}>
            < . 1:1(0) ack 77777
            * > R 77777:77777(0)
            < . 1:1(0) ack 1
            event Connected
            < P. 1:1001(1000) ack 1
            * > . 1:1(0) ack 1001
            read 1000
            write {len}
            * > . 1:{end}({len}) ack 1001 each {each}
            < . 1001:1001(0) ack {end}
            "
        );
        play_under_flood(family, &script);
    }
}

/// RFC 4987 §3.6, RFC 7323: with timestamps a cookie keeps SACK and the shifts of the windows, too.
#[test]
fn syn_cookies_keep_what_timestamps_accompany() {
    // Sizes that the cookies of both know.
    for (family, own, peer) in [(Family::V4, 1460, 536), (Family::V6, 1440, 1220)] {
        let each = peer - 12;
        let (len, end) = (4 * each, 4 * each + 1);
        let script = format!(
            "
            < S 0:0(0) win 65535 <mss {peer},sackOK,TS,wscale 2>
            * > S. 0:0(0) ack 1 <mss {own},sackOK,TS,...>
            < . 1:1(0) ack 1 win 16000
            event Connected
            < P. 1001:2001(1000) ack 1 win 16000
            * > . 1:1(0) ack 1 <TS,sack 1001:2001>
            < . 1:1001(1000) ack 1 win {each}
            * > . 1:1(0) ack 2001
            read 2000
            write 20000
            * > . 1:{end}({len}) ack 2001 each {each} <TS>
            "
        );
        play_under_flood(family, &script);
    }
}

/// Plays `script` while the SYNs of a flood wait. It has one handshake.
fn play_under_flood(family: Family, script: &str) {
    for who in [Who::Kernel, Who::Ours] {
        let script = script.to_owned();
        isolated(move || async move {
            if who == Who::Kernel {
                sysctl("ipv4/tcp_syncookies", "1");
            }
            let settings = Settings {
                family,
                ..Settings::default()
            };
            let mut player = Player::new(who, Opening::Passive, settings).await;
            player.flood().await;
            player.run(&script).await;
            let (sent, accepted) = player.cookies();
            assert!(sent > 100, "{who:?}: {sent}");
            assert_eq!(accepted, 1, "{who:?}");
        });
    }
}
