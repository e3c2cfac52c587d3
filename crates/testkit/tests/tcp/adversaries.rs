//! Somebody on the path who drops, copies, delays, cuts and rewrites segments on both directions:
//! the connection outlives it. The same as the fuzz target `duel`, with random scripts that shrink.

use proptest::prelude::*;
use tack_tcp::{Algorithm, Config};
use tack_testkit::adversary::{Harm, Step};
use tack_testkit::duel::Duel;

/// A script that does nothing worse than `worst`.
fn script(worst: Harm) -> impl Strategy<Value = Vec<Step>> {
    let step = any::<[u8; 4]>()
        .prop_map(Step::from)
        .prop_filter("worse than wanted", move |step| step.harm() <= worst);
    proptest::collection::vec(step, 0..24)
}

fn config() -> impl Strategy<Value = Config> {
    let policy = prop_oneof![
        4 => Just("tack"),
        1 => Just("tack:rich=off"),
        1 => Just("tack:settle=0.25"),
        1 => Just("delayed:2"),
    ];
    (
        policy,
        0..Algorithm::ALL.len(),
        any::<[bool; 3]>(),
        2_usize..200,
    )
        .prop_map(
            |(policy, congestion, [timestamps, window_scaling, ecn], buffer)| Config {
                ack: policy.parse().expect("a policy"),
                congestion: Algorithm::ALL[congestion],
                timestamps,
                window_scaling,
                ecn,
                receive_buffer: buffer * 1024,
                initial_receive_buffer: buffer.min(64) * 1024,
                ..Config::default()
            },
        )
}

fn duel(worst: Harm) -> impl Strategy<Value = Duel> {
    let ends = [config(), config()];
    let scripts = [script(worst), script(worst)];
    (
        ends,
        [0_u64..150_000, 0_u64..150_000],
        scripts,
        any::<u64>(),
        0_u8..50,
    )
        .prop_map(|(configs, bytes, scripts, seed, loss)| Duel {
            configs,
            bytes,
            scripts,
            seed,
            loss: f64::from(loss) / 1000.0,
        })
}

// PROPTEST_CASES sets how many. Steps that do worse than wanted are drawn again, so that rejections
// grow with the cases.
proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 5000,
        max_local_rejects: u32::MAX,
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    })]

    /// Lost, late, doubled and shortened segments: everything arrives, soon after the last of it.
    #[test]
    fn a_bad_path_is_outlived(duel in duel(Harm::Path)) {
        duel.run();
    }

    /// Besides, reports, windows and stamps say what nobody said: everything arrives all the same.
    #[test]
    fn false_words_are_outlived(duel in duel(Harm::Words)) {
        duel.run();
    }

    /// Sequence numbers, acknowledgement numbers and flags are forged: it ends, one way or the
    /// other.
    #[test]
    fn anything_is_survived(duel in duel(Harm::Content)) {
        duel.run();
    }
}

/// The number of the first segment is damaged, so that each report is refused, and the round trip
/// is not known yet, because the handshake was sent twice. A probe with stamps that nobody answered
/// well stayed in force while timeouts backed off: one segment after 5, 10, 20 and 40 s.
#[test]
fn a_damaged_number_after_a_lost_handshake() {
    for (congestion, number) in Algorithm::ALL.into_iter().zip([1, 5, 90, 100, 127]) {
        let config = |buffer: usize| Config {
            congestion,
            ecn: true,
            receive_buffer: buffer,
            initial_receive_buffer: buffer.min(64 << 10),
            ..Config::default()
        };
        Duel {
            configs: [config(100 << 10), config(16 << 10)],
            bytes: [30 << 10, 112 << 10],
            scripts: [
                vec![[0, 0, 0, 0].into(), [2, 126, number, 0].into()],
                vec![[0, 0, 0, 0].into()],
            ],
            seed: 0,
            loss: 0.0,
        }
        .run();
    }
}
