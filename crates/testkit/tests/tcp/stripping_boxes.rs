//! Boxes in the middle that take TACK's option off for a time, again and again, or damage it: TACK
//! comes back when it can, and until then nothing is lost.

use std::cell::Cell;
use std::rc::Rc;

use tack_base::Rate;
use tack_base::random::RandomStream;
use tack_tcp::{Algorithm, Config};
use tack_testkit::{Fate, Model, Pair, Side};
use tack_wire::{Header, Segment, TackOption};

use crate::middleboxes::{pass, strip_tack};
use crate::settings::{ms, secs};

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

    /// A path of 8 Mbit/s with the box on it, and a queue of so many packets.
    fn model(&self, loss: f64, queue: usize) -> Model {
        let (watched, strips) = (self.clone(), self.strips.clone());
        let rate = Rate::from_bits_per_sec(8_000_000);
        Model {
            loss,
            queue,
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
    watched_with_queue(loss, 40)
}

fn watched_with_queue(loss: f64, queue: usize) -> (Pair, Watched, Watched) {
    let config = Config {
        ack: "tack".parse().expect("a policy"),
        user_timeout: None,
        time_wait: secs(600),
        ..Config::default()
    };
    let (forward, backward) = (Watched::default(), Watched::default());
    let mut pair = Pair::open(
        1,
        &config,
        forward.model(loss, queue),
        backward.model(0.0, queue),
    );
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

/// The same where the queue holds two seconds: a probe is much shorter than the round trip, so its
/// answer comes when segments have no stamps any more, and is believed in all the same.
#[test]
fn tack_comes_back_through_a_long_queue() {
    let (mut pair, forward, backward) = watched_with_queue(0.0, 1400);
    backward.strips.set(true);
    pair.run_for(secs(6));
    backward.strips.set(false);
    pair.run_for(secs(20));
    forward.forget();
    backward.forget();
    pair.run_for(secs(2));
    let ([stamped, bare], [reports, plain]) = (forward.data.get(), backward.acks.get());
    assert!(stamped > 600 && reports > 40, "{stamped}, {reports}");
    assert_eq!((bare, plain), (0, 0));
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
    let ways = [[true; 2], [true, false], [false, true]];
    for strips in &ways[..if crate::is_long() { 3 } else { 1 }] {
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
