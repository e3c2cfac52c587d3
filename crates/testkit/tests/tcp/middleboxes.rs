//! Boxes in the middle that change headers: what they take away is done without, what they spoil does no harm.

use tack_tcp::{Algorithm, Config};
use tack_testkit::{Model, Pair};
use tack_wire::options::TcpOptions;
use tack_wire::{Flags, Header};

use crate::settings::secs;

/// 100 kB each way over a lossy path with these boxes in it, for each controller, with and without TACK.
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

fn pass(_: &mut Header) {}

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

/// Options are taken off data and acknowledgements, but not off the handshake: what was agreed never comes.
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

/// One option of the SYN, or of the SYN-ACK, is lost: both sides must draw the same conclusion, or live with different ones.
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

/// A firewall hides initial sequence numbers, and translates acknowledgements back, SACK blocks as well.
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

/// The same by a firewall that forgets the SACK blocks: they are nonsense, and must not be believed.
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
