//! What holds on the paper's networks whatever its figures are: which variant is ahead, that almost
//! all acknowledgements are carried, and that nothing is rebuilt wrongly. Gains have wide bounds;
//! the figures are claims of the lab.

use tack_sim::Checks;
use tack_sim::report::HackReport;

use super::play;
use crate::is_long;

/// Section 4.3: one client, 150 Mbit/s, responses at 24 Mbit/s, a wire of 500 Mbit/s and 1 ms. A
/// queue of three batches beside the one on the air: our limits count that. NICs moderate
/// interrupts.
pub(crate) const N150: &str = "duration = '7s'\nwarmup = '2s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\ncontrol_rate = '24Mbps'\nap_queue = '252p'\nhost_interrupt = 'ppdu'\n[wired]\nrate = '500Mbps'\ndelay = '1ms'\nqueue = '10000p'\n[[flow]]\ncongestion = 'new_reno'\nack = 'delayed:2'\ntimestamps = true\nreceive_buffer = '4MB'\nwindow_pacing = 'off'\n";

/// Section 4.2: 802.11a at 54 Mbit/s.
const A54: &str = "duration = '7s'\nwarmup = '2s'\n[wlan]\nstandard = '802.11a'\nrate = '54Mbps'\n[wired]\nrate = '500Mbps'\ndelay = '1ms'\nqueue = '10000p'\n[[flow]]\ncongestion = 'new_reno'\nack = 'delayed:2'\ntimestamps = true\nreceive_buffer = '262144B'\nreceive_window = 'fixed'\nwindow_pacing = 'off'\n";

pub(crate) struct Figures {
    /// Goodput of all flows.
    pub(crate) mbps: f64,
    /// Of all flows.
    pub(crate) timeouts: u64,
    /// Share of the frames that had no response.
    unanswered: f64,
    /// Acknowledgements that a filter dropped.
    pub(crate) filtered: u64,
    pub(crate) hack: HackReport,
}

impl Figures {
    /// Acknowledgements that travelled as they are, among all.
    pub(crate) fn native_share(&self) -> f64 {
        let native = self.hack.native_acks as f64;
        native / (native + self.hack.rebuilt as f64)
    }
}

/// Runs a scenario. No acknowledgement may be rebuilt wrongly. The long form checks every invariant
/// at every event: a sender that does not get on breaks one.
pub(crate) fn figures(text: &str, keys: &[&str]) -> Figures {
    let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
    let report = play(text, &keys, Checks::EveryEvent).unwrap();
    let wlan = report.wlan.as_ref().unwrap();
    let hack = wlan.hack.unwrap_or_default();
    assert_eq!(wlan.acks_in_link_acks, hack.rebuilt);
    let wrong = [hack.crc_failures, hack.decode_failures, hack.differing];
    assert_eq!(wrong, [0; 3], "{keys:?}");
    let flows = &report.flows;
    Figures {
        mbps: flows.iter().map(|flow| flow.goodput_bps).sum::<f64>() / 1e6,
        timeouts: flows.iter().map(|flow| flow.rto_count).sum(),
        unanswered: wlan.unanswered_probability,
        filtered: wlan.acks_filtered,
        hack,
    }
}

/// The variants that wait for a response gain goodput, and all gain equally, because almost no
/// acknowledgement is sent natively. The opportunistic variant gains less, and costs nothing. The
/// lab checks the size of the gains (figure hack10).
#[test]
fn variants_that_wait_gain_and_opportunism_does_not() {
    if !crate::is_long() {
        return;
    }
    let plain = figures(N150, &[]);
    let with = |variant: &str| {
        let with = figures(N150, &[&format!("wlan.hack={variant}")]);
        assert_eq!(with.timeouts, 0, "{variant}");
        with
    };
    let gain = |with: &Figures| with.mbps / plain.mbps - 1.0;
    let opportunistic = gain(&with("opportunistic"));
    assert!(opportunistic > -0.02, "{opportunistic}");
    let mut first = None;
    for variant in ["more-data", "timestamp-echo", "timer"] {
        let with = with(variant);
        let gain = gain(&with);
        let first = *first.get_or_insert(gain);
        println!("{variant}: {gain}, opportunistic: {opportunistic}");
        assert!(gain > opportunistic.max(0.0), "{variant}: {gain}");
        assert!(
            (gain - first).abs() < 0.02,
            "{variant}: {gain}, not {first}"
        );
        assert!(with.native_share() < 0.01, "{variant}");
        // Batches that a repeated frame made longer do not fit.
        let fitting = with.hack.fitting_share;
        assert!((0.96..0.999).contains(&fitting), "{variant}: {fitting}");
    }
}

/// With a queue of 126 beside the batch on the air the access point's runs dry now and then, so
/// batches promise nothing. What a response should draw is waited for.
#[test]
fn a_short_queue_leaves_few_native_ones() {
    if !crate::is_long() {
        return;
    }
    for interrupt in ["ppdu", "frame"] {
        let keys = [
            "wlan.hack=more-data",
            "wlan.ap_queue=168p",
            &format!("wlan.host_interrupt={interrupt}"),
        ];
        let with = figures(N150, &keys);
        assert!(with.native_share() < 0.01, "{interrupt}");
        assert_eq!(with.timeouts, 0, "{interrupt}");
    }
}

/// Where a radio also sends data, native acknowledgements wait behind it. They do not keep the
/// others from being compressed.
#[test]
fn what_waits_behind_data_is_compressed() {
    if !crate::is_long() {
        return;
    }
    const BOTH_WAYS: &str = "duration = '4s'\nwarmup = '1s'\n[wired]\nrate = '1Gbps'\ndelay = '1ms'\nqueue = '20000p'\n[wlan]\npreset = 'tack-g'\nstations = 10\nhost_interrupt = 'ppdu'\nhack = 'more-data'\n[[flow]]\nto = 'each'\nack = 'delayed:2'\n[[flow]]\nfrom = 'each'\nack = 'delayed:2'\n";
    // Queues of 50 ms.
    for (preset, queue) in [("tack-g", 108), ("tack-n", 875)] {
        let keys = [
            &*format!("wlan.preset={preset}"),
            &format!("wlan.queue={queue}p"),
        ];
        let with = figures(BOTH_WAYS, &keys);
        assert!(
            with.native_share() < 0.05,
            "{preset}: {}",
            with.native_share()
        );
    }
}

/// Hundreds of short flows, one after the other, over frames that get lost: CIDs change owners, and
/// contexts stay right. (The ordinary form has a third of them.)
#[test]
fn hundreds_of_flows_share_the_cids() {
    let flows = if is_long() { 600 } else { 200 };
    let duration = flows / 50 + 1;
    let mut text = format!(
        "duration = '{duration}s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nhack = 'more-data'\nframe_error_rate = 0.05\n[wired]\nrate = '500Mbps'\ndelay = '1ms'\nqueue = '10000p'\n",
    );
    for flow in 0..flows {
        let start = 20 * flow;
        text += &format!("[[flow]]\nbytes = '60000B'\nstart = '{start}ms'\nack = 'delayed:2'\n");
    }
    let with = figures(&text, &[]);
    let rebuilt = with.hack.rebuilt;
    assert!(rebuilt > flows + flows / 2, "{rebuilt}");
}

/// The RFC's timestamps take ten bytes where they do not move; without a checksum two less. AIFS
/// protects 21 acknowledgements of five bytes, and none of those batches with ten.
#[test]
fn the_codec_decides_what_an_acknowledgement_takes() {
    if !crate::is_long() {
        return;
    }
    let sizes = |codec: &str| {
        let keys = ["wlan.hack=more-data", &format!("wlan.hack_codec={codec}")];
        let hack = figures(N150, &keys).hack;
        assert!(hack.lengthened > 500, "{codec}");
        (hack.mean_compressed, hack.fitting_share)
    };
    let [rfc, lean, least] = ["rfc", "lean", "lean-no-checksum"].map(sizes);
    assert!((8.0..11.0).contains(&rfc.0), "{rfc:?}");
    assert!((lean.0 - least.0 - 2.0).abs() < 0.1, "{lean:?} {least:?}");
    assert!(rfc.1 < 0.01, "{rfc:?}");
    for (mean, fitting) in [lean, least] {
        assert!((0.96..0.999).contains(&fitting), "{mean}: {fitting}");
    }
}

/// A wireless network that loses frames: nothing is rebuilt wrongly, nothing waits for a timeout,
/// and there is a gain.
#[test]
fn noise_does_not_spoil_contexts() {
    // The more frames are repeated, the more batches are released at once, and the fewer responses
    // fit.
    let noises = [
        ("25.0", 0.90..0.98),
        ("24.0", 0.55..0.80),
        ("30.0", 0.96..0.999),
        ("24.5", 0.65..0.85),
    ];
    let count = if crate::is_long() { 4 } else { 1 };
    for (snr, fitting) in &noises[..count] {
        let model = format!("wlan.error_model.snr_db={snr}");
        let plain = figures(N150, &[&model]);
        let with = figures(N150, &[&model, "wlan.hack=more-data"]);
        assert!(with.mbps > 1.1 * plain.mbps, "{snr} dB");
        assert!(with.timeouts <= plain.timeouts + 1, "{snr} dB");
        let share = with.hack.fitting_share;
        assert!(fitting.contains(&share), "{snr} dB: {share}");
    }
}

/// Without aggregation each acknowledgement costs a channel access: the gain is larger, and fewer
/// frames stay without a response, because fewer collide. By how much is in the lab (figure 9, and
/// the comparison with the paper's devices).
#[test]
fn single_frames_gain_more() {
    if !crate::is_long() {
        return;
    }
    let gain = |text: &str| {
        let plain = figures(text, &[]);
        let with = figures(text, &["wlan.hack=more-data"]);
        assert!(with.native_share() < 0.01, "{}", with.native_share());
        assert!(
            with.unanswered < plain.unanswered,
            "{} and {}",
            with.unanswered,
            plain.unanswered
        );
        with.mbps / plain.mbps
    };
    let (single, aggregated) = (gain(A54), gain(N150));
    assert!(single > aggregated, "{single} and {aggregated}");
}

/// Without HACK the codec changes nothing: equal runs, bit for bit.
#[test]
fn off_is_off() {
    let hash = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        play(A54, &keys, Checks::Cheap).unwrap().trace_hash
    };
    assert_eq!(hash(&[]), hash(&["wlan.hack=off"]));
    assert_ne!(hash(&[]), hash(&["wlan.hack=more-data"]));
}
