//! A transfer between the two endpoints of the testkit, with an adversary on each direction whose
//! script is the input.

use arbitrary::{Arbitrary, Unstructured};
use tack_tcp::{Algorithm, Config};
use tack_testkit::adversary::Step;
use tack_testkit::duel::Duel;

/// One run: how the two sides are set up, and what is done to the segments of each.
#[derive(Debug, Clone)]
pub struct Match {
    seed: u8,
    sides: [Side; 2],
    /// Random loss besides, in 1/1024.
    loss: u8,
    scripts: [Vec<Step>; 2],
}

impl<'a> Arbitrary<'a> for Match {
    /// What follows the settings are steps, all of it: the top bit of each says whose segments it
    /// is for.
    fn arbitrary(input: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let (seed, sides, loss) = input.arbitrary()?;
        let mut scripts = [Vec::new(), Vec::new()];
        let (steps, _) = input.bytes(input.len())?.as_chunks::<4>();
        for &step in steps.iter().take(STEPS) {
            scripts[usize::from(step[0] >> 7)].push(step.into());
        }
        Ok(Self {
            seed,
            sides,
            loss,
            scripts,
        })
    }
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

/// Steps that are done; what a fuzzer adds beyond is ignored, so that no run takes long.
const STEPS: usize = 96;

/// Runs it; panics on anything that must not happen.
pub fn duel(run: &Match) {
    Duel {
        configs: run.sides.map(Side::config),
        bytes: run.sides.map(|side| u64::from(side.bytes) * 512),
        scripts: run.scripts.clone(),
        seed: run.seed.into(),
        loss: f64::from(run.loss % 64) / 1024.0,
    }
    .run();
}
