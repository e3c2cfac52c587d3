//! The scripts about ECN: what is agreed on, in all combinations of RFC 9768 table 2 that a host of
//! either kind can meet, and the feedback that follows.

use super::play::{passive, play_accurate, play_classic, play_classic_against_ours};
use super::subject::Opening;

/// RFC 3168 §6.1.1: who asks for ECN gets it, and its data is marked as capable.
#[test]
fn ecn_is_negotiated() {
    passive(
        "
        < SEW 0:0(0) win 65535 <mss 1000>
        * > S.E 0:0(0) ack 1
        < . 1:1(0) ack 1
        write 1000
        * > P. 1:1001(1000) ack 1 ecn ect0
        < . 1:1(0) ack 1001
        < P. 1:1001(1000) ack 1001 ecn ce
        * > .E 1001:1001(0) ack 1001
        < PW. 1001:2001(1000) ack 1001 ecn ect0
        * > . 1001:1001(0) ack 2001
        read 2000
        ",
    );
}

/// RFC 9768 §3.1.1, table 2: who knows only classic feedback answers a wish for the accurate one
/// with that. Ours does where TACK is agreed on, or the setting is off.
#[test]
fn wishes_for_accurate_ecn_get_the_classic_one() {
    let script = "
        < SEWe 0:0(0) win 65535 <mss 1000>
        * > S.E 0:0(0) ack 1
        < . 1:1(0) ack 1
        write 1000
        * > P. 1:1001(1000) ack 1 ecn ect0
        < . 1:1(0) ack 1001
        < P. 1:1001(1000) ack 1001 ecn ce
        * > .E 1001:1001(0) ack 1001
        read 1000
        ";
    play_classic(Opening::Passive, &[script.into()]);
}

/// RFC 9768 §3.1.1, §3.2.2: who asks for accurate feedback gets it, and marks are counted. The
/// count begins with 5 (`eE`).
#[test]
fn accurate_ecn_is_negotiated() {
    play_accurate(
        Opening::Passive,
        &["
        < SEWe 0:0(0) win 65535 <mss 1000>
        * > S.W 0:0(0) ack 1
        < .W 1:1(0) ack 1
        write 1000
        * > P.eE 1:1001(1000) ack 1 ecn ect0
        < .eE 1:1(0) ack 1001
        < P.eE 1:1001(1000) ack 1001 ecn ce
        * > .We 1001:1001(0) ack 1001
        < P.eE 1001:2001(1000) ack 1001 ecn ce
        * > .EWe 1001:1001(0) ack 2001
        < P.eE 2001:3001(1000) ack 1001 ecn ce
        * > . 1001:1001(0) ack 3001
        read 3000
        "
        .into()],
    );
}

/// RFC 9768 §3.2.2.1: the first acknowledgement of the side that opens states the ECN field with
/// which the SYN-ACK arrived.
#[test]
fn accurate_ecn_is_asked_for() {
    play_accurate(
        Opening::Active,
        &["
        * > SEWe 0:0(0)
        < S.W 0:0(0) ack 1 win 65535 <mss 1000>
        * > .W 1:1(0) ack 1
        event Connected
        write 1000
        * > P.eE 1:1001(1000) ack 1 ecn ect0
        < .We 1:1(0) ack 1001
        < P.We 1:1001(1000) ack 1001 ecn ce
        * > .We 1001:1001(0) ack 1001
        read 1000
        "
        .into()],
    );
}

/// RFC 9768 §3.1.1, table 2: a server that knows classic feedback gets that.
#[test]
fn accurate_ecn_falls_back_to_the_classic_one() {
    play_accurate(
        Opening::Active,
        &["
        * > SEWe 0:0(0)
        < S.E 0:0(0) ack 1 win 65535 <mss 1000>
        * > . 1:1(0) ack 1
        event Connected
        write 1000
        * > P. 1:1001(1000) ack 1 ecn ect0
        < . 1:1(0) ack 1001
        < P. 1:1001(1000) ack 1001 ecn ce
        * > .E 1001:1001(0) ack 1001
        < P.W 1001:2001(1000) ack 1001 ecn ect0
        * > . 1001:1001(0) ack 2001
        read 2000
        "
        .into()],
    );
}

/// RFC 9768 §3.1.1, table 2: a server without ECN, and one that sends back what it got.
#[test]
fn accurate_ecn_falls_back_to_none() {
    let script = |answer| {
        format!(
            "
            * > SEWe 0:0(0)
            < {answer} 0:0(0) ack 1 win 65535 <mss 1000>
            * > . 1:1(0) ack 1
            event Connected
            write 1000
            * > P. 1:1001(1000) ack 1 ecn not
            < . 1:1(0) ack 1001
            < P. 1:1001(1000) ack 1001 ecn ce
            * > . 1001:1001(0) ack 1001
            read 1000
            "
        )
    };
    play_accurate(Opening::Active, &["S.", "S.EWe"].map(script));
}

/// RFC 9768 §3.1.2: who knows it answers classic requests in kind, and asks of what it does not
/// know as of itself.
#[test]
fn accurate_ecn_answers_all_requests() {
    let requests = [
        ("S", "S."),
        ("SE", "S.W"),
        ("SW", "S.W"),
        ("SEW", "S.E"),
        ("Se", "S.W"),
        ("SeE", "S.W"),
        ("SWe", "S.W"),
        ("SEWe", "S.W"),
    ];
    play_accurate(Opening::Passive, &requests.map(answered));
}

/// The script of a request, and the answer to it.
fn answered((request, answer): (&str, &str)) -> String {
    format!(
        "
        < {request} 0:0(0) win 65535 <mss 1000>
        * > {answer} 0:0(0) ack 1
        "
    )
}

/// RFC 3168 §6.1.1: who knows classic feedback alone takes ECE and CWR for a request, and nothing
/// else (RFC 9768 §3.1.1, table 2).
#[test]
fn classic_ecn_answers_all_requests() {
    let requests = [
        ("S", "S."),
        ("SE", "S."),
        ("SW", "S."),
        ("SEW", "S.E"),
        ("Se", "S."),
        ("SeE", "S."),
        ("SWe", "S."),
        ("SEWe", "S.E"),
    ];
    play_classic(Opening::Passive, &requests.map(answered));
}

/// RFC 3168 §6.1.1: ECE alone agrees. A server that sends back what it got does not know ECN.
/// Answers that agree on accurate feedback, which was not asked for, Linux 6.18 takes for such; so
/// those are for ours.
#[test]
fn classic_ecn_knows_all_answers() {
    let answers = [("S.", "not"), ("S.E", "ect0"), ("S.EWe", "not")];
    let unasked = ["S.W", "S.EW", "S.e", "S.We"].map(|answer| (answer, "not"));
    let script = |(answer, codepoint)| {
        format!(
            "
            * > SEW 0:0(0)
            < {answer} 0:0(0) ack 1 win 65535 <mss 1000>
            * > . 1:1(0) ack 1
            event Connected
            write 1000
            * > P. 1:1001(1000) ack 1 ecn {codepoint}
            "
        )
    };
    play_classic(Opening::Active, &answers.map(script));
    play_classic_against_ours(Opening::Active, &unasked.map(script));
}

/// RFC 9768 §3.1.1, table 2: the SYN-ACK states the ECN field with which the SYN arrived. The
/// acknowledgement of the SYN-ACK states that of the SYN-ACK (§3.2.2.1, table 3).
#[test]
fn accurate_ecn_states_the_ecn_field_of_the_handshake() {
    let codepoints = [("not", "W"), ("ect1", "EW"), ("ect0", "e"), ("ce", "We")];
    let accepting = |(codepoint, bits)| {
        format!(
            "
            < SEWe 0:0(0) win 65535 ecn {codepoint} <mss 1000>
            * > S.{bits} 0:0(0) ack 1
            "
        )
    };
    play_accurate(Opening::Passive, &codepoints.map(accepting));
    let asking = |(codepoint, bits)| {
        format!(
            "
            * > SEWe 0:0(0)
            < S.W 0:0(0) ack 1 win 65535 ecn {codepoint} <mss 1000>
            * > .{bits} 1:1(0) ack 1
            event Connected
            "
        )
    };
    play_accurate(Opening::Active, &codepoints.map(asking));
}

/// RFC 9768 §3.1.1, table 2; §3.2.2.3: each answer to a SYN that asks for the accurate feedback,
/// and the ECN field with which data leaves then. A SYN that arrived with a mark shows a path that
/// writes into the field.
#[test]
fn accurate_ecn_knows_all_answers() {
    let answers = [
        ("S.", ".", "not"),
        ("S.E", ".", "ect0"),
        ("S.W", ".eE", "ect0"),
        ("S.EW", ".eE", "not"),
        ("S.e", ".eE", "not"),
        ("S.eE", ".", "ect0"),
        ("S.We", ".eE", "not"),
        ("S.EWe", ".", "not"),
    ];
    let script = |(answer, data, codepoint)| {
        let third = if data == ".eE" { ".W" } else { "." };
        format!(
            "
            * > SEWe 0:0(0)
            < {answer} 0:0(0) ack 1 win 65535 <mss 1000>
            * > {third} 1:1(0) ack 1
            event Connected
            write 1000
            * > P{data} 1:1001(1000) ack 1 ecn {codepoint}
            "
        )
    };
    play_accurate(Opening::Active, &answers.map(script));
}
