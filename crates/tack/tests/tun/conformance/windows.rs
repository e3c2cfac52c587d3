//! The scripts about the window that the subject offers, and about its scale.

use super::play::{everywhere, for_family, play};
use super::player::Player;
use super::subject::{Opening, Settings};
use crate::world::isolated;

/// RFC 9293 §3.8.6.1, §3.8.6.2.2: the window closes while the application does not read, probes are
/// answered meanwhile and their bytes are not taken, and the window opens by a segment at least,
/// unasked. A small part of the buffer does not open it (MUST-39).
#[test]
fn the_window_closes_and_opens_with_the_application() {
    for (family, who) in everywhere() {
        isolated(move || async move {
            let settings = Settings {
                receive_buffer: Some(16 << 10),
                family,
                ..Settings::default()
            };
            let mut player = Player::new(who, Opening::Passive, settings).await;
            player
                .run(
                    "
                    < S 0:0(0) win 65535 <mss 1000>
                    * > S. 0:0(0) ack 1 rcv_wnd 1000..
                    < . 1:1(0) ack 1
                    event Connected
                    < P. 1:1001(1000) ack 1
                    * > . 1:1(0) ack 1001 rcv_wnd 1000..
                    ",
                )
                .await;
            let end = player.fill(1000).await;
            let (before, past, next) = (end - 1, end + 1, end + 1000);
            let rest = end - 1 - 100;
            player
                .run(&format!(
                    "
                    < . {end}:{past}(1) ack 1
                    * > . 1:1(0) ack {end} win 0
                    < . {before}:{before}(0) ack 1
                    * > . 1:1(0) ack {end} win 0
                    read 100
                    +100ms > nothing
                    < . {end}:{past}(1) ack 1
                    * > . 1:1(0) ack {end} win 0
                    read {rest}
                    * > . 1:1(0) ack {end} rcv_wnd 1000..
                    < P. {end}:{next}(1000) ack 1
                    * > . 1:1(0) ack {next}
                    read 1000
                    "
                ))
                .await;
        });
    }
}

/// Options of a peer without window scaling, and with it.
const WITHOUT: &str = "mss 1000,sackOK,TS";
const WITH: &str = "mss 1000,sackOK,TS,wscale 3";

/// After `script`, which ends with `next` acknowledged, the bytes that the window stands for are
/// accepted up to the last one, and none behind it. On both, over IPv4 and over IPv6.
fn the_offered_window_is_accepted(opening: Opening, script: &str, next: u32) {
    for (family, who) in everywhere() {
        let script = for_family(family, script);
        isolated(move || async move {
            let settings = Settings {
                family,
                ..Settings::default()
            };
            let mut player = Player::new(who, opening, settings).await;
            player.run(&script).await;
            fill_to_the_edge(&mut player, next).await;
        });
    }
}

async fn fill_to_the_edge(player: &mut Player, next: u32) {
    let edge = player.edge();
    let last = edge - 1000;
    player
        .run(&format!(
            "
            < . {last}:{edge}(1000) ack 1
            * > . 1:1(0) ack {next} <sack {last}:{edge},TS>
            "
        ))
        .await;
    // The answer may offer more.
    let from = player.edge() + 1000;
    let to = from + 1000;
    player
        .run(&format!(
            "
            < . {from}:{to}(1000) ack 1
            * > . 1:1(0) ack {next} <sack {last}:{edge},TS>
            "
        ))
        .await;
}

/// RFC 7323 §1.3, §2.2: a SYN-ACK has a scale where the SYN has one, and only there. The window of
/// the SYN-ACK is not scaled, those of later segments are: wrongly scaled, the one would be below
/// the first range, and the other above the largest buffer.
#[test]
fn a_peer_that_offers_no_scale_gets_none() {
    for (peers, own, most) in [(WITHOUT, "", 65_535), (WITH, ",wscale *", 6_291_456)] {
        let script = format!(
            "
            < S 0:0(0) win 65535 <{peers}>
            * > S. 0:0(0) ack 1 rcv_wnd 10000.. <mss 1460,sackOK,TS{own}>
            < . 1:1(0) ack 1
            event Connected
            < P. 1:1001(1000) ack 1
            * > . 1:1(0) ack 1001 rcv_wnd 10000..{most} <TS>
            "
        );
        the_offered_window_is_accepted(Opening::Passive, &script, 1001);
    }
}

/// RFC 7323 §2.2: a SYN offers a scale. Windows are scaled once the SYN-ACK has one, too.
#[test]
fn the_scale_is_used_where_both_offer_one() {
    for (peers, most) in [(WITHOUT, 65_535), (WITH, 6_291_456)] {
        let script = format!(
            "
            * > SEW 0:0(0) rcv_wnd 10000.. <mss 1460,sackOK,TS,wscale *>
            < S. 0:0(0) ack 1 win 65535 <{peers}>
            * > . 1:1(0) ack 1 rcv_wnd 10000..{most} <TS>
            event Connected
            "
        );
        the_offered_window_is_accepted(Opening::Active, &script, 1);
    }
}

/// RFC 7323 §2.2: the peer's SYN-ACK has a window that is not scaled, and its later segments have
/// windows that are.
#[test]
fn the_window_of_a_syn_ack_is_not_scaled() {
    play(
        Opening::Active,
        "
        * > SEW 0:0(0) <wscale *,...>
        < S. 0:0(0) ack 1 win 2000 <mss 1000,wscale 3>
        * > . 1:1(0) ack 1
        event Connected
        write 9000
        * > . 1:2001(2000) ack 1 each 1000
        +100ms > nothing
        < . 1:1(0) ack 2001 win 500
        * > . 2001:6001(4000) ack 1 each 1000
        +100ms > nothing
        < . 1:1(0) ack 6001 win 500
        * > . 6001:9001(3000) ack 1 each 1000
        < . 1:1(0) ack 9001 win 500
        ",
    );
}

/// RFC 7323 §2.3: a shift above 14 counts as 14.
#[test]
fn a_scale_above_the_largest_is_the_largest() {
    play(
        Opening::Passive,
        "
        < S 0:0(0) win 65535 <mss 1024,wscale 15>
        * > S. 0:0(0) ack 1 <wscale *,...>
        < . 1:1(0) ack 1 win 65535
        write 10240
        * > . 1:10241(10240) ack 1 each 1024
        < . 1:1(0) ack 10241 win 1
        +20ms write 0
        write 30720
        * > . 10241:26625(16384) ack 1 each 1024
        +100ms > nothing
        < . 1:1(0) ack 26625 win 1
        * > . 26625:40961(14336) ack 1 each 1024
        < . 1:1(0) ack 40961 win 1
        ",
    );
}
