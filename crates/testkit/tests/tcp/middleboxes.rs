//! Boxes in the middle that change headers: what they take away is done without, what they spoil
//! does no harm.

use std::cell::Cell;
use std::rc::Rc;

use tack_base::Rate;
use tack_base::random::RandomStream;
use tack_tcp::{Algorithm, Config};
use tack_testkit::{Fate, Model, Pair, Side};
use tack_wire::options::TcpOptions;
use tack_wire::{Flags, Header, Segment, TackOption};

use crate::settings::{ms, secs};

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
/// without a word, or fails later.
fn strip_tack(header: &mut Header, from: fn(&Header) -> bool) {
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

/// What a box does at the moment, and what left towards it lately.
#[derive(Clone, Debug, Default)]
struct Watched {
    strips: Rc<Cell<bool>>,
    /// Data segments with and without a stamp.
    data: Rc<Cell<[u32; 2]>>,
    /// Pure acknowledgements with a report and without.
    acks: Rc<Cell<[u32; 2]>>,
}

impl Watched {
    fn count(&self, segment: &Segment<'_>) {
        let (cell, with) = match segment.header.options.tack {
            _ if segment.header.flags.syn() || segment.header.flags.rst() => return,
            Some(TackOption::Sync(_) | TackOption::Syn(_)) => return,
            Some(TackOption::Data(_)) => (&self.data, true),
            Some(TackOption::Report(_) | TackOption::Loss(_)) => (&self.acks, true),
            None if segment.sequence_len() > 0 => (&self.data, false),
            None => (&self.acks, false),
        };
        let [mut yes, mut no] = cell.get();
        if with {
            yes += 1
        } else {
            no += 1
        }
        cell.set([yes, no]);
    }

    fn forget(&self) {
        self.data.set([0, 0]);
        self.acks.set([0, 0]);
    }

    /// A path of 8 Mbit/s with the box on it.
    fn model(&self, loss: f64) -> Model {
        let (watched, strips) = (self.clone(), self.strips.clone());
        let rate = Rate::from_bits_per_sec(8_000_000);
        Model {
            loss,
            queue: 40,
            ..Model::wire(ms(10), rate)
        }
        .judged(move |packet| {
            watched.count(packet.segment);
            Fate::Pass
        })
        .rewritten(move |header| strip_tack_if(header, strips.get()))
    }
}

fn strip_tack_if(header: &mut Header, strips: bool) {
    if strips && !header.flags.syn() {
        header.options.tack = None;
    }
}

/// A bulk transfer with TACK, one box on each direction.
fn watched(loss: f64) -> (Pair, Watched, Watched) {
    let config = Config {
        ack: "tack".parse().expect("a policy"),
        user_timeout: None,
        time_wait: secs(600),
        ..Config::default()
    };
    let (forward, backward) = (Watched::default(), Watched::default());
    let mut pair = Pair::open(1, &config, forward.model(loss), backward.model(0.0));
    pair.establish(secs(10));
    pair.send(Side::Client, 1 << 30);
    pair.run_for(secs(1));
    (pair, forward, backward)
}

/// A box that damages one segment: neither side takes that for what the path does.
#[test]
fn one_stripped_option_does_not_end_tack() {
    for direction in 0..2 {
        let (mut pair, forward, backward) = watched(0.0);
        for _ in 0..20 {
            let stripped = if direction == 0 { &forward } else { &backward };
            // One data segment takes 1.5 ms of the path, and reports are 5 ms apart.
            stripped.strips.set(true);
            pair.run_for(if direction == 0 { ms(2) } else { ms(5) });
            stripped.strips.set(false);
            forward.forget();
            backward.forget();
            pair.run_for(ms(200));
            assert_eq!(forward.data.get()[1], 0, "{direction}: stamps go on");
            let [reports, plain] = backward.acks.get();
            // Of what arrived without a number it is not said under which one it did.
            assert!(
                reports > 10 && plain <= 2,
                "{direction}: {reports} and {plain}"
            );
        }
        let stats = pair.connection(Side::Client).stats(pair.now());
        let state = (
            stats.retransmitted_segments,
            stats.rto_count,
            stats.invalid_reports,
        );
        assert_eq!(state, (0, 0, 0), "{direction}\n{}", pair.trace());
    }
}

/// A path that strips all options for a while, one way or both: plain acknowledgements take over
/// within a few round trips, and TACK does when the options come through again.
#[test]
fn tack_comes_back_when_options_do() {
    for (name, strips) in [
        ("forward", [true, false]),
        ("backward", [false, true]),
        ("both", [true; 2]),
    ] {
        for loss in [0.0, 0.01] {
            let (mut pair, forward, backward) = watched(loss);
            forward.strips.set(strips[0]);
            backward.strips.set(strips[1]);
            pair.run_for(ms(500));
            forward.forget();
            backward.forget();
            // Before it is time to try again.
            pair.run_for(ms(300));
            let ([stamped, bare], [reports, plain]) = (forward.data.get(), backward.acks.get());
            println!("{name}, loss {loss}: {stamped} {bare} {reports} {plain}");
            assert_eq!((stamped, reports), (0, 0), "{name}, loss {loss}");
            assert!(bare > 100 && plain > 50, "{name}, loss {loss}");
            forward.strips.set(false);
            backward.strips.set(false);
            pair.run_for(secs(3));
            forward.forget();
            backward.forget();
            pair.run_for(secs(1));
            let ([stamped, bare], [reports, plain]) = (forward.data.get(), backward.acks.get());
            println!("{name}, loss {loss}: {stamped} {bare} {reports} {plain}");
            assert!(stamped > 300 && reports > 20, "{name}, loss {loss}");
            assert_eq!((bare, plain), (0, 0), "{name}, loss {loss}");
            let stats = pair.connection(Side::Client).stats(pair.now());
            assert_eq!(stats.invalid_reports, 0, "{name}, loss {loss}");
        }
    }
}

/// One number of the option is damaged on its way, so that what follows seems impossible, or old,
/// to who believed it.
fn outlive_damage(damage: fn(&mut Header, u32)) {
    for congestion in Algorithm::ALL {
        let model = || {
            let mut segments = 0;
            Model::default().rewritten(move |header| {
                segments += u32::from(!header.flags.syn());
                damage(header, segments);
            })
        };
        let config = Config {
            congestion,
            ack: "tack".parse().expect("a policy"),
            user_timeout: None,
            ..Config::default()
        };
        let mut pair = Pair::open(1, &config, model(), model());
        pair.establish(secs(5));
        pair.send(Side::Client, 400_000);
        pair.finish(Side::Client);
        // At most three timeouts of 240 ms and more, each twice as long as the one before, and what
        // they cost.
        let done = pair.run_until(secs(6), |pair| pair.app(Side::Server).ended);
        let app = pair.app(Side::Server).clone();
        assert!(
            done && app.read == 400_000,
            "{congestion}: {app:?}\n{}",
            pair.trace()
        );
    }
}

/// The receiver names numbers that never left from then on, and its reports are refused: numbers
/// begin again after a spell without any.
#[test]
fn a_damaged_packet_number_does_not_silence_the_receiver() {
    outlive_damage(|header, segments| {
        if let Some(TackOption::Data(stamp)) = &mut header.options.tack
            && segments == 50
        {
            stamp.number += 1000;
        }
    });
}

/// All that follows seems to come from another time.
#[test]
fn a_packet_number_from_the_far_future_does_not_shut_the_receiver() {
    outlive_damage(|header, segments| {
        if let Some(TackOption::Data(stamp)) = &mut header.options.tack
            && segments == 50
        {
            stamp.number += 1 << 23;
        }
    });
}

/// All reports that follow seem to be overtaken: they move no window.
#[test]
fn a_damaged_report_number_does_not_deafen_the_sender() {
    outlive_damage(|header, segments| {
        if let Some(TackOption::Report(report)) = &mut header.options.tack
            && segments == 3
        {
            report.number += 1 << 30;
            // And the last window that is heard holds nothing.
            header.window = 0;
        }
    });
}

/// Trials on a path that goes on stripping are rare, and cost the transfer next to nothing.
#[test]
fn a_path_that_strips_for_good_is_tried_ever_less() {
    for strips in [[true, false], [false, true], [true; 2]] {
        let (mut pair, forward, backward) = watched(0.01);
        forward.strips.set(strips[0]);
        backward.strips.set(strips[1]);
        pair.run_for(secs(10));
        forward.forget();
        let before = pair.app(Side::Server).read;
        pair.run_for(secs(60));
        let [stamped, bare] = forward.data.get();
        assert!(stamped * 20 < bare, "{strips:?}: {stamped} of {bare}");
        // 8 Mbit/s for a minute are 60 MB, headers included.
        let read = pair.app(Side::Server).read - before;
        assert!(read > 45_000_000, "{strips:?}: {read}");
    }
}

/// Half of all options are lost, each way, in runs and alone: it goes on, whatever runs.
#[test]
fn a_path_that_strips_in_bursts_delivers_everything() {
    for seed in 0..10 {
        let bursts = |direction| {
            let mut random = RandomStream::new(seed, "bursts", direction);
            let mut strips = false;
            Model {
                loss: 0.01,
                ..Model::default()
            }
            .rewritten(move |header| {
                strips ^= random.chance(0.02);
                strip_tack_if(header, strips);
            })
        };
        let config = Config {
            ack: "tack".parse().expect("a policy"),
            user_timeout: None,
            time_wait: secs(600),
            ..Config::default()
        };
        let mut pair = Pair::open(seed, &config, bursts(0), bursts(1));
        pair.transfer(1_000_000, 1_000_000, secs(120));
    }
}

/// What each side counts shows which mechanism ran: acknowledgements of TACK, or plain ones.
#[test]
fn what_runs_after_each_stripping() {
    let ran = |forward: fn(&mut Header), backward: fn(&mut Header)| {
        let config = Config {
            ack: "tack".parse().expect("a policy"),
            time_wait: secs(600),
            ..Config::default()
        };
        let mut pair = Pair::open(
            1,
            &config,
            Model::default().rewritten(forward),
            Model::default().rewritten(backward),
        );
        pair.transfer(1_000_000, 0, secs(60));
        // The client is in TIME-WAIT; of the server its packets tell.
        let client = pair.connection(Side::Client).stats(pair.now());
        assert_eq!(client.spurious_retransmissions, 0);
        assert_eq!(client.rto_count, 0);
        client
    };
    let syn = |header: &mut Header| strip_tack(header, |header| header.flags.syn());
    let rest = |header: &mut Header| strip_tack(header, |header| !header.flags.syn());
    assert!(ran(pass, pass).syncs > 0, "TACK");
    assert_eq!(ran(syn, pass).syncs, 0, "plain from the start");
    assert_eq!(ran(syn, syn).syncs, 0, "plain from the start");
    // A sync may be on its way before the first acknowledgement shows what the path does.
    assert!(ran(rest, rest).syncs <= 1, "plain after a round trip");
    assert!(ran(pass, rest).syncs <= 1, "plain after a round trip");
}
