//! Boxes in the middle that change headers: what they take away is done without, what they spoil
//! does no harm.

use tack_base::random::RandomStream;
use tack_tcp::{Algorithm, Config};
use tack_testkit::{Model, Pair, Side};
use tack_wire::options::TcpOptions;
use tack_wire::{Flags, Header, TackOption};

use crate::settings::secs;

/// 100 kB each way over a lossy path with these boxes in it, for each controller, with and without
/// TACK.
fn survive(name: &str, forward: fn(&mut Header), backward: fn(&mut Header)) {
    for (congestion, ack) in Algorithm::ALL
        .into_iter()
        .flat_map(|algorithm| [(algorithm, "delayed:2"), (algorithm, "tack")])
    {
        for seed in 0..5 {
            let lossy = || Model {
                loss: 0.02,
                reorder: 0.05,
                ..Model::default()
            };
            let config = Config {
                congestion,
                ack: ack.parse().expect("a policy"),
                user_timeout: None,
                time_wait: secs(600),
                ..Config::default()
            };
            println!("{name}, {congestion}, {ack}, seed {seed}");
            let mut pair = Pair::open(
                seed,
                &config,
                lossy().rewritten(forward),
                lossy().rewritten(backward),
            );
            pair.transfer(100_000, 100_000, secs(300));
        }
    }
}

pub(super) fn pass(_: &mut Header) {}

fn on_syn(header: &mut Header, change: impl FnOnce(&mut TcpOptions)) {
    if header.flags.syn() {
        change(&mut header.options);
    }
}

/// Every option is taken off, everywhere.
#[test]
fn all_options_stripped() {
    fn strip(header: &mut Header) {
        header.options = TcpOptions::default();
    }
    survive("both ways", strip, strip);
    survive("forward", strip, pass);
    survive("backward", pass, strip);
}

/// Options are taken off data and acknowledgements, but not off the handshake: what was agreed
/// never comes.
#[test]
fn options_stripped_after_the_handshake() {
    fn strip(header: &mut Header) {
        if !header.flags.syn() {
            header.options = TcpOptions::default();
        }
    }
    survive("both ways", strip, strip);
    survive("forward", strip, pass);
    survive("backward", pass, strip);
}

/// One option of the SYN, or of the SYN-ACK, is lost: both sides must draw the same conclusion, or
/// live with different ones.
#[test]
fn single_options_stripped_from_the_handshake() {
    survive(
        "SACK, SYN",
        |header| on_syn(header, |options| options.sack_permitted = false),
        pass,
    );
    survive("SACK, SYN-ACK", pass, |header| {
        on_syn(header, |options| options.sack_permitted = false)
    });
    survive(
        "timestamps, SYN",
        |header| on_syn(header, |options| options.timestamps = None),
        pass,
    );
    survive("timestamps, SYN-ACK", pass, |header| {
        on_syn(header, |options| options.timestamps = None)
    });
    survive(
        "scale, SYN",
        |header| on_syn(header, |options| options.window_scale = None),
        pass,
    );
    survive(
        "MSS, SYN",
        |header| on_syn(header, |options| options.mss = None),
        pass,
    );
    survive("MSS, SYN-ACK", pass, |header| {
        on_syn(header, |options| options.mss = None)
    });
}

/// RFC 1191-less paths: a box clamps the MSS of both SYNs.
#[test]
fn clamped_mss() {
    fn clamp(header: &mut Header) {
        on_syn(header, |options| {
            options.mss = options.mss.map(|mss| mss.min(1200))
        });
    }
    survive("both ways", clamp, clamp);
}

const SHIFT: u32 = 0x9abc_def0;

/// A firewall hides initial sequence numbers, and translates acknowledgements back, SACK blocks as
/// well.
#[test]
fn rewritten_sequence_numbers() {
    fn there(header: &mut Header) {
        header.seq = header.seq + SHIFT;
    }
    fn back(header: &mut Header) {
        if header.flags.ack() {
            header.ack = header.ack - SHIFT;
        }
        for block in &mut header.options.sack {
            (block.start, block.end) = (block.start - SHIFT, block.end - SHIFT);
        }
    }
    survive("with blocks", there, back);
}

/// The same by a firewall that forgets the SACK blocks: they are nonsense, and must not be
/// believed.
#[test]
fn rewritten_sequence_numbers_with_foreign_sack_blocks() {
    fn there(header: &mut Header) {
        header.seq = header.seq + SHIFT;
    }
    fn back(header: &mut Header) {
        if header.flags.ack() {
            header.ack = header.ack - SHIFT;
        }
    }
    survive("without blocks", there, back);
}

/// A box that clears the ECN flags, and one that sets them.
#[test]
fn spoiled_ecn_flags() {
    fn clear(header: &mut Header) {
        header.flags = Flags(header.flags.0 & !(Flags::ECE.0 | Flags::CWR.0));
    }
    fn set(header: &mut Header) {
        header.flags = header.flags.with(Flags::ECE);
    }
    survive(
        "cleared after the handshake",
        |header| {
            if !header.flags.syn() {
                clear(header)
            }
        },
        pass,
    );
    survive("cleared", clear, clear);
    survive("always set backwards", pass, set);
}

/// A proxy for bad paths that shrinks windows (a traffic shaper of old), never below a segment.
#[test]
fn shrunk_windows() {
    fn shrink(header: &mut Header) {
        if !header.flags.syn() {
            header.window = header.window.min(100);
        }
    }
    survive("both ways", shrink, shrink);
}

/// Urgent data everywhere.
#[test]
fn urgent_everywhere() {
    fn urgent(header: &mut Header) {
        if !header.flags.syn() {
            header.flags = header.flags.with(Flags(0x20));
            header.urgent = 7;
        }
    }
    survive("both ways", urgent, urgent);
}

/// A box that takes off the TACK option alone, wherever `from` says so: what is agreed comes
/// silently, or fails later.
pub(super) fn strip_tack(header: &mut Header, from: fn(&Header) -> bool) {
    if from(header) {
        header.options.tack = None;
    }
}

/// Taken off one SYN or both: plain TCP on both sides, from the first segment on. Taken off the
/// SYN-ACK alone, only one side knows: it falls back with the first data.
#[test]
fn tack_stripped_from_the_handshake() {
    let syn = |header: &mut Header| strip_tack(header, |header| header.flags.syn());
    survive("SYN", syn, pass);
    survive("SYN-ACK", pass, syn);
    survive("both", syn, syn);
}

/// Taken off everything but the handshake, in one direction or in both.
#[test]
fn tack_stripped_after_the_handshake() {
    let rest = |header: &mut Header| strip_tack(header, |header| !header.flags.syn());
    survive("forward", rest, pass);
    survive("backward", pass, rest);
    survive("both", rest, rest);
}

/// Taken off acknowledgements alone: off reports, off loss reports, off syncs, and off data alone.
/// Those with lists arrive as bytes that came before.
#[test]
fn tack_stripped_from_some_segments() {
    type Strip = fn(&mut Header);
    let kinds: [(&str, Strip); 5] = [
        ("feedback", |header| {
            strip_tack(header, |header| {
                header
                    .options
                    .tack
                    .is_some_and(|option| option.is_feedback())
            })
        }),
        ("lists", |header| {
            strip_tack(header, |header| {
                header.options.tack.is_some_and(|option| option.has_lists())
            })
        }),
        ("loss", |header| {
            strip_tack(header, |header| {
                matches!(header.options.tack, Some(TackOption::Loss(_)))
            })
        }),
        ("syncs", |header| {
            strip_tack(header, |header| {
                matches!(header.options.tack, Some(TackOption::Sync(_)))
            })
        }),
        ("data", |header| {
            strip_tack(header, |header| {
                matches!(header.options.tack, Some(TackOption::Data(_)))
            })
        }),
    ];
    for (what, strip) in kinds {
        survive(&format!("{what}, forward"), strip, pass);
        survive(&format!("{what}, backward"), pass, strip);
        survive(&format!("{what}, both ways"), strip, strip);
    }
}

/// A path that changes its mind: each segment loses the option with probability one half.
#[test]
fn tack_stripped_now_and_then() {
    for seed in 0..20 {
        let config = Config {
            ack: "tack".parse().expect("a policy"),
            user_timeout: None,
            time_wait: secs(600),
            ..Config::default()
        };
        let lossy = |direction| {
            let mut random = RandomStream::new(seed, "stripper", direction);
            Model {
                loss: 0.02,
                ..Model::default()
            }
            .rewritten(move |header| {
                if random.chance(0.5) {
                    header.options.tack = None;
                }
            })
        };
        let mut pair = Pair::open(seed, &config, lossy(0), lossy(1));
        pair.transfer(300_000, 300_000, secs(300));
    }
}

/// Sequence numbers are shifted both ways; acknowledgements and blocks of the option are relative,
/// and nobody has to know.
#[test]
fn tack_through_a_box_that_hides_initial_sequence_numbers() {
    const OTHER: u32 = 0x1234_5678;
    fn there(header: &mut Header) {
        header.seq = header.seq + SHIFT;
        if header.flags.ack() {
            header.ack = header.ack - OTHER;
        }
    }
    fn back(header: &mut Header) {
        header.seq = header.seq + OTHER;
        if header.flags.ack() {
            header.ack = header.ack - SHIFT;
        }
    }
    survive("both ways", there, back);
    // And TACK stays on: every loss is reported, none is found out by the sender or a timeout.
    let config = Config {
        ack: "tack".parse().expect("a policy"),
        time_wait: secs(600),
        ..Config::default()
    };
    let lossy = || Model {
        loss: 0.01,
        ..Model::default()
    };
    let mut pair = Pair::open(
        1,
        &config,
        lossy().rewritten(there),
        lossy().rewritten(back),
    );
    pair.transfer(3_000_000, 0, secs(60));
    let stats = pair.connection(Side::Client).stats(pair.now());
    assert!(
        stats.retransmitted_segments > 10 && stats.rto_count == 0,
        "{stats:?}"
    );
}
