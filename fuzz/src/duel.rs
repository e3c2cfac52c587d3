//! A transfer between the two endpoints of the testkit, with an adversary on each direction whose script is the input.

use arbitrary::Arbitrary;
use tack_tcp::{Algorithm, Config};
use tack_testkit::duel::Duel;

/// One run: how the two sides are set up, and what is done to the segments of each.
#[derive(Arbitrary, Debug, Clone)]
pub struct Match {
    seed: u8,
    sides: [Side; 2],
    /// Random loss besides, in 1/1024.
    loss: u8,
    scripts: [Vec<[u8; 4]>; 2],
}

/// Settings of one side.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct Side {
    congestion: u8,
    ack: u8,
    /// Timestamps, window scaling, ECN, Nagle; SACK off; a short segment; batches.
    switches: u8,
    /// Buffers, KiB.
    receive_buffer: u8,
    /// Bytes that it writes, in units of 512.
    bytes: u8,
}

impl Side {
    fn config(self) -> Config {
        let texts = [
            "tack",
            "tack",
            "tack:settle=0.25",
            "tack:l=1,beta=2",
            "tack:rich=off",
            "tack:iack=off,timing=sampled",
            "every",
            "delayed:2",
        ];
        let on = |bit: u8| self.switches & (1 << bit) != 0;
        let receive_buffer = usize::from(self.receive_buffer).max(2) * 1024;
        let mut config = Config {
            congestion: Algorithm::ALL[usize::from(self.congestion) % Algorithm::ALL.len()],
            ack: texts[usize::from(self.ack) % texts.len()]
                .parse()
                .expect("a policy's text"),
            timestamps: on(0),
            window_scaling: on(1),
            ecn: on(2),
            nagle: on(3),
            sack: !(on(4) && on(5)),
            mss: if on(6) { 536 } else { 1460 },
            receive_buffer,
            initial_receive_buffer: receive_buffer.min(64 << 10),
            ..Config::default()
        };
        config.carrier.max_batch = if on(7) { 16 } else { 1 };
        config
    }
}

/// Steps of a script that are done; what a fuzzer adds beyond is ignored, so that no run takes long.
const STEPS: usize = 48;

/// Runs it; panics on anything that must not happen.
pub fn duel(run: &Match) {
    let script = |steps: &Vec<[u8; 4]>| steps.iter().take(STEPS).map(|&step| step.into()).collect();
    Duel {
        configs: run.sides.map(Side::config),
        bytes: run.sides.map(|side| u64::from(side.bytes) * 512),
        scripts: [script(&run.scripts[0]), script(&run.scripts[1])],
        seed: run.seed.into(),
        loss: f64::from(run.loss % 64) / 1024.0,
    }
    .run();
}
