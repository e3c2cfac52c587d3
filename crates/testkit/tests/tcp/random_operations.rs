//! Random sequences of operations on a pair, shrunk when they fail: whatever the applications, the
//! path and strangers do, the invariants hold, and once the path is good everything ends.

use std::time::Duration;

use proptest::prelude::*;
use tack_tcp::config::{Carrier, KeepAlive};
use tack_tcp::{AckKind, Algorithm, CloseReason, Config, State};
use tack_testkit::{Model, Pair, Side};
use tack_wire::{Ecn, Flags, Header, SeqNum};

use crate::settings::{ms, secs};

#[derive(Clone, Debug)]
enum Operation {
    Write(Side, u32),
    Read(Side, bool),
    Finish(Side),
    Abort(Side),
    StopReading(Side),
    Wait(u16),
    /// Faults in per mille: loss, duplication, reordering, marks.
    Faults(Side, u16, u16, u16, u16),
    Blackout(Side, u16),
    /// The path narrows, and says so or not.
    Narrow(Side, u16, bool),
    /// A segment sent before arrives (again).
    Replay(Side, u8),
    /// A stranger guesses: flags, how far from the window (never inside), payload.
    Forge(Side, u8, i32, u8),
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    prop_oneof![
        6 => (side(), 1_u32..200_000).prop_map(|(side, len)| Write(side, len)),
        2 => (side(), any::<bool>()).prop_map(|(side, on)| Read(side, on)),
        1 => side().prop_map(Finish),
        1 => prop_oneof![5 => Just(None), 1 => side().prop_map(Some)]
            .prop_map(|side| side.map_or(Wait(1), Abort)),
        1 => prop_oneof![5 => Just(None), 1 => side().prop_map(Some)]
            .prop_map(|side| side.map_or(Wait(1), StopReading)),
        8 => (0_u16..500).prop_map(Wait),
        2 => (0_u16..10_000).prop_map(Wait),
        3 => (side(), 0_u16..200, 0_u16..200, 0_u16..300, 0_u16..300).prop_map(|(side, a, b, c, d)| Faults(side, a, b, c, d)),
        1 => (side(), 0_u16..3000).prop_map(|(side, ms)| Blackout(side, ms)),
        1 => (side(), 100_u16..1500, any::<bool>()).prop_map(|(side, mtu, told)| Narrow(side, mtu, told)),
        3 => (side(), any::<u8>()).prop_map(|(side, which)| Replay(side, which)),
        3 => (side(), any::<u8>(), any::<i32>(), any::<u8>()).prop_map(|(side, flags, far, len)| Forge(side, flags, far, len)),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    (
        prop_oneof![
            Just(AckKind::Every),
            (1_u8..17).prop_map(AckKind::delayed),
            Just("tack".parse().expect("a policy")),
            Just(
                "tack:l=4,rich=off,timing=sampled"
                    .parse()
                    .expect("a policy")
            ),
            Just("tack:settle=0.25,iack=off".parse().expect("a policy")),
        ],
        0..Algorithm::ALL.len(),
        any::<[bool; 5]>(),
        (
            2_000_usize..300_000,
            2_000_usize..300_000,
            prop::option::of(0_usize..50_000),
        ),
        prop_oneof![Just(None), (0_u64..2000, 1_usize..64).prop_map(Some)],
    )
        .prop_map(
            |(
                ack,
                congestion,
                [timestamps, sack, window_scaling, ecn, nagle],
                buffers,
                carrier,
            )| Config {
                ack,
                congestion: Algorithm::ALL[congestion],
                timestamps,
                sack,
                window_scaling,
                ecn,
                nagle,
                receive_buffer: buffers.0,
                least_receive_buffer: buffers.2,
                send_buffer: buffers.1,
                // A reset that is lost leaves an idle peer behind: it finds out by asking.
                keep_alive: Some(KeepAlive {
                    idle: secs(60),
                    interval: secs(10),
                    probes: 9,
                }),
                user_timeout: None,
                syn_retries: 30,
                time_wait: secs(5000),
                carrier: carrier.map_or_else(Carrier::default, |(micros, max_batch)| Carrier {
                    timer_granularity: Duration::from_micros(micros),
                    max_batch,
                    overhead: 28,
                }),
                ..Config::default()
            },
        )
}

fn has_connection(pair: &mut Pair, side: Side) -> bool {
    let Some(id) = pair.apps(side).next().map(|app| app.id) else {
        return false;
    };
    pair.endpoint(side).get(id).is_some()
}

/// Does what it says; returns the side that broke the connection off, if it did.
fn apply(pair: &mut Pair, operation: &Operation) -> bool {
    match *operation {
        Operation::Wait(millis) => pair.run_for(ms(millis.into())),
        Operation::Faults(side, loss, duplicate, reorder, mark) => {
            let model = pair.model(side);
            model.loss = f64::from(loss) / 1000.0;
            model.duplicate = f64::from(duplicate) / 1000.0;
            model.reorder = f64::from(reorder) / 1000.0;
            model.reorder_by = ms(u64::from(reorder) / 10);
            model.mark = f64::from(mark) / 1000.0;
        }
        Operation::Blackout(side, millis) => {
            let now = pair.now();
            pair.model(side)
                .blackouts
                .push(now..now + ms(millis.into()));
        }
        Operation::Replay(to, which) => {
            let count = pair.recent(to.other()).len();
            let replayed = pair
                .recent(to.other())
                .nth(usize::from(which) % count.max(1))
                .map(<[u8]>::to_vec);
            if let Some(bytes) = replayed {
                pair.inject(to, &bytes, Ecn::NotEct);
            }
        }
        // Before and after the connection a forged SYN is as good as a real one: nothing in TCP
        // tells them apart.
        Operation::Forge(..)
            if [Side::Client, Side::Server].into_iter().any(|side| {
                !has_connection(pair, side)
                    || matches!(
                        pair.connection(side).state(),
                        State::SynSent | State::TimeWait | State::Closed
                    )
            }) => {}
        Operation::Forge(to, flags, far, len) => {
            let Some(last) = pair.recent(to.other()).next().map(<[u8]>::to_vec) else {
                return false;
            };
            let real = tack_wire::Segment::parse(&last).expect("a segment");
            // At least 2^28 away from the window, on either side.
            let far = (far % (1 << 30)) as u32;
            let seq = real.header.seq
                + if far < 1 << 31 {
                    far + (1 << 28)
                } else {
                    far.wrapping_sub(1 << 28)
                };
            let header = Header {
                seq,
                flags: Flags(flags.into()),
                options: Default::default(),
                ..real.header.clone()
            };
            // Nor does it hit what the other side acknowledges when there is no sequence number to
            // check.
            let header = Header {
                ack: SeqNum(header.ack.0.wrapping_add(1 << 30)),
                ..header
            };
            let mut bytes = vec![0; header.encoded_len()];
            header.emit(&mut bytes);
            bytes.resize(bytes.len() + usize::from(len), 0xee);
            pair.inject(to, &bytes, Ecn::Ce);
        }
        Operation::Write(side, _)
        | Operation::Read(side, _)
        | Operation::Finish(side)
        | Operation::Abort(side)
        | Operation::StopReading(side)
        | Operation::Narrow(side, ..)
            if !has_connection(pair, side) => {}
        Operation::Write(side, len) => {
            if !pair.app(side).finishing {
                pair.send(side, len.into());
            }
        }
        Operation::Read(side, on) => pair.set_reading(side, on),
        Operation::Finish(side) => pair.finish(side),
        Operation::Narrow(side, mtu, told) => {
            pair.model(side).mtu = mtu.max(600).into();
            if told {
                pair.with(side, |connection, now| connection.handle_path_mtu(now, mtu));
            }
        }
        Operation::Abort(side) => {
            pair.with(side, |connection, now| connection.abort(now));
            return true;
        }
        Operation::StopReading(side) => {
            pair.with(side, |connection, now| connection.stop_reading(now));
            return true;
        }
    }
    false
}

// PROPTEST_CASES sets how many: 64 in .cargo/config.toml, 256 in CI.
proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_ends_well(config in config(), seed in any::<u64>(), operations in proptest::collection::vec(operation(), 1..40)) {
        let mut pair = Pair::open(seed, &config, Model::default(), Model::default());
        let mut broken_off = false;
        for operation in &operations {
            broken_off |= apply(&mut pair, operation);
        }
        // The path is good from here on, and both applications want to be done.
        for side in [Side::Client, Side::Server] {
            let model = pair.model(side);
            (model.loss, model.duplicate, model.reorder, model.mark) = (0.0, 0.0, 0.0, 0.0);
            model.mtu = model.mtu.max(600);
            model.blackouts.clear();
        }
        let done = pair.run_until(secs(4000), |pair| {
            for side in [Side::Client, Side::Server] {
                if has_connection(pair, side) && !(pair.app(side).finishing && pair.app(side).reading) {
                    pair.set_reading(side, true);
                    pair.finish(side);
                }
            }
            let closed = |side| pair.apps(side).all(|app| app.closed().is_some());
            closed(Side::Client) && closed(Side::Server)
        });
        prop_assert!(done, "not closed after {:?}: {:?}\n{}", pair.elapsed(), pair.apps(Side::Server).next(), pair.trace());
        if !broken_off {
            let (client, server) = (pair.app(Side::Client).clone(), pair.app(Side::Server).clone());
            for (reader, writer) in [(&client, &server), (&server, &client)] {
                prop_assert_eq!(reader.closed(), Some(CloseReason::Graceful), "{}", pair.trace());
                prop_assert!(reader.ended && reader.read == writer.to_write, "{:?} {:?}\n{}", reader, writer, pair.trace());
            }
        }
    }
}
