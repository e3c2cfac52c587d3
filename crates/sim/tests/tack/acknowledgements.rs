//! How many acknowledgements there are: never more than equation (3) or a delayed-ACK TCP has.

use tack_sim::{Observers, Report, Scenario};

use crate::run;

use super::{cells, is_full, is_long, report, seeds, set};

const MSS: f64 = 1_448.0;

/// A clean path: room for what a startup overshoots, and time to settle.
fn clean(mbps: f64, rtt_ms: f64, ack: &str, seed: u64) -> Report {
    let settle = (40.0 * rtt_ms / 1e3).clamp(4.0, 8.0);
    let slow = if mbps < 10.0 { 10.0 } else { 0.0 };
    // Two products and a half are what BBR keeps in flight at most; short paths need a few packets
    // all the same.
    let queue = (mbps * 1e6 * rtt_ms / 1e3 / 12_000.0 * 2.0).max(100.0);
    report(
        "frequency",
        &set![
            format_args!("wired.rate={mbps}Mbps"),
            format_args!("wired.delay={}us", (rtt_ms * 500.0) as u64),
            format_args!("wired.queue={}p", queue as u64),
            format_args!("warmup={}ms", ((settle + slow) * 1e3) as u64),
            format_args!("duration={}ms", (2.0 * (settle + slow) * 1e3) as u64),
            format_args!("flow.0.ack={ack}"),
            format_args!("seed={seed}"),
        ],
    )
}

/// The equation is a bound by construction: a periodic acknowledgement waits for L segments and for
/// its time. Where the segments decide, there are as many as with delayed ACK. The lab claims that
/// the frequency is within 5 % of the equation (figures 8 and 17).
#[test]
fn the_frequency_is_at_most_that_of_equation_3() {
    println!("  Mbit/s  RTTmin ms   ACKs/s  equation 3   ratio  delayed:2");
    let (mut over, mut excess, mut saved): (f64, f64, f64) = (-1.0, -1.0, -1.0);
    let rates = cells(
        &[1.0, 10.0, 100.0],
        &[1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0],
    );
    let round_trips = cells(&[1.0, 10.0, 100.0], &[1.0, 5.0, 20.0, 50.0, 100.0, 200.0]);
    for (mbps, rtt_ms) in rates
        .iter()
        .flat_map(|mbps| round_trips.iter().map(|rtt_ms| (*mbps, *rtt_ms)))
    {
        let mut delayed = None;
        for seed in seeds() {
            let result = clean(mbps, rtt_ms, "tack", seed);
            let flow = &result.flows[0];
            assert_eq!(
                flow.retransmitted_segments, 0,
                "{mbps} {rtt_ms}: not a clean path"
            );
            let seconds = flow.data_segments as f64 * MSS * 8.0 / flow.goodput_bps;
            let data_rate = flow.data_segments as f64 / seconds;
            let frequency = flow.acks as f64 / seconds;
            let bandwidth = flow.goodput_bps / 8.0;
            let rtt_min = flow.min_rtt_us.expect("measured") as f64 / 1e6;
            let (by_segments, by_time) = (bandwidth / (2.0 * MSS), 4.0 / rtt_min);
            let expected = by_segments.min(by_time);
            let delayed = *delayed.get_or_insert_with(|| {
                let result = clean(mbps, rtt_ms, "delayed:2", seed);
                let flow = &result.flows[0];
                flow.acks as f64 / flow.data_segments as f64 * data_rate
            });
            println!(
                "{mbps:8} {rtt_ms:10} {frequency:8.1} {expected:11.1} {:7.3} {delayed:10.1}",
                frequency / expected
            );
            over = over.max(frequency / expected - 1.0);
            excess = excess.max(frequency / delayed - 1.0);
            if by_segments < by_time {
                saved = saved.max(1.0 - frequency / delayed);
            }
        }
    }
    println!(
        "{:+.1} % over equation 3 at most, {:+.1} % over delayed:2 at most, {:+.1} % where both count",
        100.0 * over,
        100.0 * excess,
        -100.0 * saved
    );
    assert!(over <= 0.02, "{over}");
    // Where both count segments, a handful of acknowledgements in hundreds are those of BBR's
    // probes with four segments in flight, which are not held back for the delayed-ACK timer.
    assert!(excess <= 0.02, "{excess}");
    assert!(saved <= 0.02, "{saved}");
}

#[test]
fn there_are_never_more_than_a_delayed_ack_tcp_sends() {
    let controllers = ["bbr", "cubic", "new_reno", "vegas", "compound"];
    for controller in &controllers[..if is_long() { 5 } else { 2 }] {
        let acks = ["tack", "delayed:2"].map(|ack| {
            let result = report(
                "frequency",
                &set![
                    format_args!("flow.0.congestion={controller}"),
                    format_args!("flow.0.ack={ack}"),
                ],
            );
            let flow = &result.flows[0];
            (flow.acks as f64 / flow.goodput_bps, flow.goodput_bps)
        });
        let fewer = 1.0 - acks[0].0 / acks[1].0;
        println!(
            "{controller}: {:.1} % fewer acknowledgements a byte, goodput {:.2} against {:.2} Mbit/s",
            100.0 * fewer,
            acks[0].1 / 1e6,
            acks[1].1 / 1e6
        );
        assert!(fewer > 0.95, "{controller}: {fewer}");
        assert!(acks[0].1 >= 0.98 * acks[1].1, "{controller}: {acks:?}");
    }
}

/// Products of one to ten segments, where both count segments: windows are filled again and again,
/// and what fills them must not draw acknowledgements of its own.
#[test]
fn small_windows_draw_no_more() {
    for controller in ["bbr", "cubic", "new_reno", "vegas", "compound"] {
        for (rate, delay) in [
            ("1Mbps", "500us"),
            ("1Mbps", "1ms"),
            ("2Mbps", "500us"),
            ("5Mbps", "5ms"),
        ] {
            let [tack, delayed] = ["tack", "delayed:2"].map(|ack| {
                let result = report(
                    "frequency",
                    &set![
                        format_args!("flow.0.congestion={controller}"),
                        format_args!("flow.0.ack={ack}"),
                        format_args!("wired.rate={rate}"),
                        format_args!("wired.delay={delay}"),
                        format_args!("wired.queue=100p"),
                        format_args!("duration=34s"),
                    ],
                );
                let flow = &result.flows[0];
                (
                    flow.acks as f64 / flow.bytes_delivered as f64,
                    flow.goodput_bps,
                )
            });
            println!(
                "{controller} {rate} {delay}: {:+.1} % acknowledgements a byte, goodput {:+.1} %",
                100.0 * (tack.0 / delayed.0 - 1.0),
                100.0 * (tack.1 / delayed.1 - 1.0)
            );
            assert!(
                tack.0 <= 1.02 * delayed.0,
                "{controller} {rate} {delay}: {tack:?}, {delayed:?}"
            );
            // NewReno's saw teeth are as long as this runs: a hole that is filled just before or
            // after the beginning counts a window in or out, two per cent.
            assert!(
                tack.1 >= 0.97 * delayed.1,
                "{controller} {rate} {delay}: {tack:?}, {delayed:?}"
            );
        }
    }
}

/// Air that five saturated stations of a neighbouring network share: the first segments come as one
/// burst of the radio, later ones in bursts after waits of up to half a second. Neither is a rate
/// to which the window would be small, and once the startup is over the frequency is that of
/// equation (3).
#[test]
fn bursts_out_of_busy_air_draw_no_more() {
    let mut worst: f64 = 0.0;
    for (preset, number) in cells(
        &[("tack-n", 6), ("tack-n", 8), ("tack-ac", 1)],
        &[
            ("tack-n", 6),
            ("tack-n", 8),
            ("tack-n", 10),
            ("tack-ac", 1),
            ("tack-ac", 3),
            ("tack-ac", 8),
        ],
    ) {
        let result = report(
            "../lab/wlan-tcp",
            &set![
                "wlan.contenders=5",
                format_args!("wlan.preset={preset}"),
                "warmup=4s",
                "duration=10s",
                format_args!("seed={number}"),
            ],
        );
        let flow = &result.flows[0];
        let rtt_min = flow.min_rtt_us.expect("measured") as f64 / 1e6;
        let ratio = flow.acks as f64 / 6.0 / (4.0 / rtt_min);
        println!("{preset}, seed {number}: {ratio:.2} of equation 3");
        worst = worst.max(ratio);
    }
    // A hole that takes a round trip to repair makes the window scarce for a while.
    assert!(worst <= 3.0, "{worst}");
}

/// What several stations download over a short wire. An A-MPDU comes to a host after a silence of
/// several intervals, and is reported once: with a report after its first two segments and one for
/// the rest, each A-MPDU draws two accesses, queues stay empty, and with BBR goodput is half of
/// what it is with L = 2, or less.
#[test]
fn several_stations_a_short_wire_away_lose_nothing() {
    let measure = |preset: &str, stations: u32, congestion: &str, ack: &str| {
        let mut overrides = set![
            format_args!("wlan.preset={preset}"),
            format_args!("wlan.stations={stations}"),
            "flow.0.to=each",
            format_args!("flow.0.congestion={congestion}"),
            format_args!("flow.0.ack={ack}"),
        ]
        .to_vec();
        if !is_full() {
            overrides.extend(set!["warmup=1s", "duration=3s"]);
        }
        let result = report("../lab/mechanisms", &overrides);
        let goodput: f64 = result.flows.iter().map(|flow| flow.goodput_bps).sum();
        println!("{preset}, {stations} stations, {congestion}, {ack}: {goodput:.0}");
        goodput
    };
    for (preset, stations, congestion) in cells(
        &[
            ("tack-n", 5, "bbr"),
            ("tack-n", 10, "cubic"),
            ("tack-ac", 5, "bbr"),
        ],
        &[
            ("tack-n", 5, "bbr"),
            ("tack-n", 10, "bbr"),
            ("tack-n", 20, "bbr"),
            ("tack-n", 5, "cubic"),
            ("tack-n", 10, "cubic"),
            ("tack-n", 20, "cubic"),
            ("tack-ac", 5, "bbr"),
            ("tack-ac", 10, "bbr"),
            ("tack-ac", 10, "cubic"),
            ("tack-ac", 20, "cubic"),
        ],
    ) {
        let tack = measure(preset, stations, congestion, "tack");
        let counting = measure(preset, stations, congestion, "delayed:2");
        assert!(
            tack >= 0.95 * counting,
            "{preset}, {stations} stations, {congestion}: {tack} for {counting}"
        );
    }
}

/// A video: each frame is pushed, and the next one follows whether or not it was acknowledged. That
/// nobody waits is seen where the round trip is short beside the time between frames; there a
/// frame's rest is reported along with the next frame.
#[test]
fn messages_that_nobody_waits_for_draw_no_report_each() {
    for (rtt_ms, kbps) in [2, 6, 12]
        .iter()
        .flat_map(|rtt_ms| [200, 447, 900, 1_500].map(|kbps| (rtt_ms, kbps)))
    {
        let acks = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '10Mbps'\ndelay = '{}us'\n[[flow]]\ncongestion = 'cubic'\nack = '{ack}'\n\
                 app = 'video:fps=30,rate={kbps}kbps,peak={}kbps,buffer=300ms'\n",
                rtt_ms * 500,
                kbps * 3 / 2
            );
            let scenario = Scenario::from_toml("video.toml", &text, &[]).expect("sound");
            let report = run(&scenario, 1, &mut Observers::default()).expect("invariants hold");
            report.flows[0].acks
        });
        let [tack, plain] = acks;
        println!("{rtt_ms} ms, {kbps} kbit/s: {tack} acknowledgements, {plain} with delayed:2");
        assert!(
            tack as f64 <= 1.2 * plain as f64,
            "{rtt_ms} ms, {kbps} kbit/s: {tack}, {plain} with delayed:2"
        );
    }
}
