//! Whole runs over the wireless network.

use std::io::Write;
use std::process::Command;

use rayon::prelude::*;
use tack_sim::observe::Capture;
use tack_sim::{Observers, Report, Scenario};

use crate::run;

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml("test.toml", text, &[]).unwrap()
}

fn play(text: &str) -> Report {
    run(&scenario(text), 1, &mut Observers::default()).unwrap()
}

fn goodput(report: &Report) -> f64 {
    report
        .flows
        .iter()
        .map(|flow| flow.goodput_bps)
        .sum::<f64>()
        / 1e6
}

const UDP: &str = "[[flow]]\ntransport = 'udp'\nrate = 'saturate'\n";

/// Saturating UDP without acknowledgements. The lab claims the goodput of the paper's devices
/// (figure 7).
#[test]
fn each_preset_carries_more_than_the_one_before() {
    let presets = ["tack-b", "tack-g", "tack-n", "tack-ac"];
    let goodputs = presets.map(|preset| {
        goodput(&play(&format!(
            "duration = '2s'\nwarmup = '1s'\n[wlan]\npreset = '{preset}'\n{UDP}"
        )))
    });
    assert!(
        goodputs.windows(2).all(|pair| pair[0] < pair[1]),
        "{goodputs:?}"
    );
}

#[test]
fn a_key_goes_before_its_preset() {
    let report = play(&format!(
        "duration = '2s'\nwarmup = '1s'\n[wlan]\npreset = 'tack-n'\nampdu_max_bytes = 65535\nbeacon_interval = 'off'\n{UDP}"
    ));
    assert!(
        (goodput(&report) / 256.2 - 1.0).abs() < 0.01,
        "{}",
        goodput(&report)
    );
}

/// The paper's UDP tool: the airtime of acknowledgements costs goodput, the less the rarer they
/// are.
#[test]
fn acknowledgements_of_the_udp_tool_cost_airtime() {
    let with = |every: u32| {
        let report = play(&format!(
            "duration = '6s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11a'\n{UDP}ack_every = {every}\nack_size = 64\n"
        ));
        let airtime = report.wlan.as_ref().unwrap().airtime;
        assert_eq!(
            airtime.tcp_ack > 0.0,
            every > 0,
            "every {every}: {airtime:?}"
        );
        (goodput(&report), airtime.tcp_ack)
    };
    let (none, each, second, eighth) = (with(0), with(1), with(2), with(8));
    assert!(each.0 < second.0 && second.0 < eighth.0 && eighth.0 < none.0);
    assert!(each.1 > second.1 && second.1 > eighth.1);
}

/// Whatever the wired path holds, the access point's queue does not run dry, also where the radio
/// carries 2.1 Gbit/s.
#[test]
fn saturation_does_not_depend_on_the_wired_delay() {
    if !crate::is_long() {
        return;
    }
    let with = |delay: &str| {
        let report = play(&format!(
            "duration = '1s'\nwarmup = '500ms'\n[wired]\nrate = '10Gbps'\ndelay = '{delay}'\n[wlan]\nstandard = '802.11ax'\nmcs = 11\nspatial_streams = 8\nchannel_width = '160MHz'\nampdu_max_bytes = 6500631\ntxop_limit = '4ms'\n{UDP}"
        ));
        let wlan = report.wlan.as_ref().unwrap();
        assert_eq!(wlan.queue_drops, 0, "{delay}");
        goodput(&report)
    };
    let near = with("100us");
    assert!(near > 2_000.0, "{near}");
    for delay in ["1ms", "5ms", "20ms"] {
        let far = with(delay);
        assert!(
            (far / near - 1.0).abs() < 0.01,
            "{delay}: {far}, not {near}"
        );
    }
}

/// Flows that wait for room wait in line, and are not asked one by one whether there is some.
#[test]
fn events_do_not_grow_with_the_flows_that_wait() {
    let with = |flows: usize| {
        let flows: String = (0..flows)
            .map(|station| {
                format!("[[flow]]\nto = 'sta{station}'\ntransport = 'udp'\nrate = 'saturate'\n")
            })
            .collect();
        let report = play(&format!(
            "duration = '1s'\n[wired]\nrate = '1Gbps'\n[wlan]\nstandard = '802.11n'\nstations = 100\n{flows}"
        ));
        report.events as f64 / goodput(&report)
    };
    let (few, many) = (with(10), with(100));
    assert!(many / few < 1.2, "{many} events for a Mbit/s, not {few}");
}

/// Noise takes a tenth of all frames, and none is repeated: TCP repeats them, and is not stopped by
/// what the receiver holds back for frames that never come. Single runs have 0.2 to 3 Mbit/s.
#[test]
fn a_block_ack_window_does_not_wedge() {
    for keys in ["", "missed_block_ack = 'resend'"] {
        let scenario = scenario(&format!(
            "duration = '10s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11n'\nframe_error_rate = 0.1\nretry_limit = 1\n{keys}\n[[flow]]\ncongestion = 'new_reno'\n"
        ));
        // A window that has wedged has next to nothing, whatever the other runs have.
        let each: Vec<f64> = (1..=5)
            .map(|seed| goodput(&run(&scenario, seed, &mut Observers::default()).unwrap()))
            .collect();
        assert!(each.iter().all(|goodput| *goodput > 0.1), "{keys} {each:?}");
        let mean = each.iter().sum::<f64>() / 5.0;
        assert!(mean > 0.5, "{keys} {each:?}");
    }
}

/// What an A-MPDU without answer draws is a choice: with `resend` there are fewer requests, and
/// more frames sent again.
#[test]
fn a_missed_block_ack_draws_a_request_or_the_frames_again() {
    let with = |key: &str| {
        let report = play(&format!(
            "duration = '4s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11n'\nframe_error_rate = 0.1\nmissed_block_ack = '{key}'\n{UDP}"
        ));
        let wlan = report.wlan.as_ref().unwrap();
        (
            wlan.retries as f64 / wlan.stations[0].mpdus as f64,
            goodput(&report),
        )
    };
    let (request, resend) = (with("request"), with("resend"));
    // A tenth is lost, and with a tenth of the Block ACKs all of it is sent again.
    assert!((0.09..0.12).contains(&request.0), "{request:?}");
    assert!((0.17..0.22).contains(&resend.0), "{resend:?}");
    assert!(request.1 > resend.1);
}

/// With RTS half of the PPDUs that want a response are data, which nobody disturbs: collisions are
/// told by access too.
#[test]
fn collisions_are_told_by_access() {
    let with = |rts: &str| {
        let flows: String = (0..10)
            .map(|station| {
                format!("[[flow]]\nfrom = 'sta{station}'\nto = 'server'\ntransport = 'udp'\nrate = 'saturate'\n")
            })
            .collect();
        let report = play(&format!(
            "duration = '3s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11a'\nstations = 10\n{rts}\n{flows}"
        ));
        let wlan = report.wlan.unwrap();
        (
            wlan.collision_probability,
            wlan.access_collision_probability,
        )
    };
    let (all, access) = with("");
    assert_eq!(all, access, "every PPDU is an access of its own");
    let (all, with_rts) = with("rts_threshold = '500B'");
    assert!((with_rts - access).abs() < 0.03, "{with_rts} {access}");
    assert!(all < 0.7 * with_rts, "{all} {with_rts}");
}

const STATIONS: &str = "duration = '4s'\nwarmup = '1s'\n[wired]\nrate = '1Gbps'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nstations = 3\n";

#[test]
fn flows_go_up_down_and_between_stations() {
    let report = play(&format!(
        "{STATIONS}
        [[flow]]\nfrom = 'server'\nto = 'sta0'\ncongestion = 'cubic'
        [[flow]]\nfrom = 'sta1'\nto = 'server'\ncongestion = 'cubic'
        [[flow]]\nfrom = 'sta1'\nto = 'sta2'\ncongestion = 'cubic'"
    ));
    for flow in &report.flows {
        assert!(
            flow.goodput_bps > 1e6,
            "{} to {}: {}",
            flow.from,
            flow.to,
            flow.goodput_bps
        );
    }
    // What goes between stations crosses the air twice.
    let wlan = report.wlan.unwrap();
    let received = |name: &str| {
        wlan.stations
            .iter()
            .find(|s| s.name == name)
            .unwrap()
            .received_bytes
    };
    assert!(received("ap") as f64 > 0.9 * received("sta2") as f64);
}

#[test]
fn the_access_point_holds_what_goes_between_stations_for_the_delay_of_its_flow() {
    let delay_ms = |extra: &str| {
        let report = play(&format!(
            "{STATIONS}
            [[flow]]\nfrom = 'sta0'\nto = 'sta1'\ntransport = 'udp'\nrate = '1Mbps'\nextra_delay = '{extra}'
            [[flow]]\nfrom = 'sta0'\nto = 'sta2'\ntransport = 'udp'\nrate = '1Mbps'
            [[flow]]\nfrom = 'sta1'\nto = 'sta2'\nextra_delay = '{extra}'\nbytes = '30kB'"
        ));
        let [held, other, tcp] = [0, 1, 2].map(|flow| &report.flows[flow]);
        assert!(
            tcp.completion_s.is_some(),
            "both directions of TCP are held"
        );
        assert!(held.goodput_bps > 0.98e6, "{}", held.goodput_bps);
        (
            [held, other].map(|flow| flow.owd_p50_us.unwrap() as f64 / 1e3),
            tcp.min_rtt_us.unwrap() as f64 / 1e3,
        )
    };
    let ([held, other], rtt) = delay_ms("50ms");
    assert!((50.0..52.0).contains(&held), "{held}");
    assert!(other < 2.0, "{other}: the other flow has no such delay");
    assert!((100.0..103.0).contains(&rtt), "{rtt}");
    let ([held, _], rtt) = delay_ms("0s");
    assert!(held < 2.0 && rtt < 3.0, "{held} {rtt}");
}

#[test]
fn neighbours_take_their_share() {
    let with = |contenders: u32| {
        play(&format!(
            "duration = '4s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11a'\ncontenders = {contenders}\n{UDP}"
        ))
    };
    let (alone, beside) = (with(0), with(2));
    assert!((0.25..0.45).contains(&(goodput(&beside) / goodput(&alone))));
    let wlan = beside.wlan.unwrap();
    assert_eq!(wlan.stations.len(), 5);
    assert_eq!(wlan.stations[2].name, "neighbour_ap");
    assert!(wlan.stations[2].received > 1_000 && wlan.stations[4].mpdus > 1_000);
}

/// Neighbours with a load of their own get just that, and the rest of the air is ours.
#[test]
fn neighbours_that_are_not_saturated_leave_the_rest() {
    let with = |keys: &str| {
        play(&format!(
            "duration = '6s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11a'\n{keys}\n{UDP}"
        ))
    };
    let (alone, beside) = (with(""), with("contenders = 5\ncontender_rate = '2Mbps'"));
    let left = goodput(&beside) / goodput(&alone);
    let wlan = beside.wlan.unwrap();
    assert_eq!(wlan.stations[2].name, "neighbour_ap");
    let carried = wlan.stations[2].received_bytes as f64 * 8.0 / 5.0;
    // 10 Mbit/s of payload of 1472 bytes in packets of 1500; 4,245 arrivals, of which 6 % are four
    // standard deviations.
    let offered = 10e6 * 1_500.0 / 1_472.0;
    assert!((carried / offered - 1.0).abs() < 0.06, "{carried}");
    let share = wlan.airtime.neighbour;
    assert!((0.2..0.27).contains(&share), "{share}");
    assert!(alone.wlan.unwrap().airtime.neighbour == 0.0);
    assert!(
        wlan.stations[3..]
            .iter()
            .all(|station| station.queue_p99 < 20)
    );
    // They take a quarter, and cost some collisions.
    assert!((0.6..0.8).contains(&left), "{left}");
}

/// Stations that do not hear each other collide in the middle of frames; RTS and CTS keep most of
/// that short.
#[test]
fn hidden_stations_need_rts() {
    let with = |keys: &str| {
        let text = format!(
            "duration = '5s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11a'\nrate = '24Mbps'\nstations = 2\n{keys}
            [[flow]]\nfrom = 'sta0'\nto = 'server'\ntransport = 'udp'
            [[flow]]\nfrom = 'sta1'\nto = 'server'\ntransport = 'udp'"
        );
        let report = play(&text);
        let wlan = report.wlan.as_ref().unwrap();
        (
            goodput(&report),
            wlan.collision_probability,
            wlan.airtime.collision,
        )
    };
    let heard = with("");
    let hidden = with("hidden = ['sta0-sta1']");
    let protected = with("hidden = ['sta0-sta1']\nrts_threshold = '500B'");
    assert!(hidden.1 > 3.0 * heard.1, "{heard:?} {hidden:?}");
    assert!(hidden.0 < 0.6 * heard.0, "{heard:?} {hidden:?}");
    assert!(
        protected.0 > 1.3 * hidden.0 && protected.2 < 0.5 * hidden.2,
        "{hidden:?} {protected:?}"
    );
}

/// TCP gets everything through, in order and unbroken, over a channel that loses frames within
/// A-MPDUs.
#[test]
fn noise_is_repaired_by_block_ack() {
    let report = play(
        "duration = '20s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nframe_error_rate = 0.1
        [[flow]]\nbytes = '40MB'\ncongestion = 'cubic'\nreceive_buffer = '600kB'",
    );
    let flow = &report.flows[0];
    assert_eq!(flow.bytes_delivered, 40_000_000);
    assert!(flow.completion_s.unwrap() < 6.0);
    let wlan = report.wlan.unwrap();
    assert!(wlan.retries > 2_000, "{}", wlan.retries);
    assert_eq!(
        flow.retransmitted_segments, 0,
        "no frame is given up at one in ten"
    );
}

/// A low signal-to-noise ratio stops a fast mode and not a slow one; stations may have their own.
#[test]
fn noise_depends_on_mode_and_station() {
    let with = |rate: u32, snr: &str| {
        goodput(&play(&format!(
            "duration = '3s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11a'\nrate = '{rate}Mbps'\n[wlan.error_model]\n{snr}\n{UDP}"
        )))
    };
    assert!(with(54, "snr_db = 30") > 29.0);
    assert!(with(54, "snr_db = 12") < 0.1);
    assert!(with(6, "snr_db = 12") > 5.0);
    assert!(with(54, "snr_db = 30\nstation_snr_db = [12.0]") < 0.1);
}

/// Each access category has its own queue and contends by itself, inside a radio and between
/// radios.
#[test]
fn voice_goes_first() {
    let text = "duration = '4s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nampdu_max_bytes = 0\nstations = 2
        [[flow]]\nfrom = 'sta0'\nto = 'server'\ntransport = 'udp'\naccess_category = 'voice'
        [[flow]]\nfrom = 'sta1'\nto = 'server'\ntransport = 'udp'
        [[flow]]\nfrom = 'sta0'\nto = 'server'\ntransport = 'udp'\naccess_category = 'background'";
    let report = play(text);
    let [voice, best_effort, background] =
        [0, 1, 2].map(|flow| report.flows[flow].goodput_bps / 1e6);
    // CWmin of 3 against 15, AIFS of two slots against three and seven.
    assert!(voice > 5.0 * best_effort, "{voice} {best_effort}");
    assert!(best_effort > 2.0 * background, "{best_effort} {background}");
    // TCP both ways is marked too.
    let tcp = play(
        "duration = '2s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\n[[flow]]\nbytes = '5MB'\naccess_category = 'video'\ncongestion = 'cubic'",
    );
    assert_eq!(tcp.flows[0].bytes_delivered, 5_000_000);
}

/// A TXOP lets a station send frame after frame; everyone's airtime adds up in any case.
#[test]
fn txops_save_contention() {
    let with = |limit: &str| {
        let report = play(&format!(
            "duration = '3s'\nwarmup = '1s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nampdu_max_bytes = 8000\ntxop_limit = '{limit}'\n{UDP}"
        ));
        let airtime = report.wlan.as_ref().unwrap().airtime;
        let sum = airtime.data
            + airtime.tcp_ack
            + airtime.control
            + airtime.collision
            + airtime.access
            + airtime.idle;
        assert!((sum - 1.0).abs() < 1e-9);
        goodput(&report)
    };
    assert!(with("3.008ms") > 1.1 * with("0ms"));
}

/// Ten times the time, ten times the events, and nothing piles up.
#[test]
fn events_are_linear_in_time() {
    let events = |seconds: u32| {
        let flows: String = (0..4)
            .map(|n| format!("[[flow]]\nto = 'sta{n}'\ncongestion = 'new_reno'\n"))
            .collect();
        let text = format!(
            "duration = '{seconds}s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nstations = 4\nqueue = '300p'\n{flows}"
        );
        let report = play(&text);
        assert!(report.wlan.as_ref().unwrap().ap_queue_max <= 300);
        report.events as f64
    };
    let ratio = events(20) / events(2);
    assert!((8.0..12.0).contains(&ratio), "{ratio}");
}

#[test]
fn equal_seeds_equal_runs() {
    let text = format!(
        "{STATIONS}frame_error_rate = 0.05\n[[flow]]\n[[flow]]\nfrom = 'sta1'\nto = 'sta2'\n"
    );
    let (one, same) = (play(&text), play(&text));
    assert_eq!(one.trace_hash, same.trace_hash);
    assert_eq!(one.to_json(), same.to_json());
    let other = run(&scenario(&text), 2, &mut Observers::default()).unwrap();
    assert_ne!(one.trace_hash, other.trace_hash);
}

/// tshark reads the capture of every generation: no malformed frame, every FCS right, nothing it
/// warns of.
#[test]
fn analysers_read_captures() {
    if Command::new("tshark").arg("--version").output().is_err() {
        tack_skip::skipped("tshark is not installed");
        return;
    }
    let tcp = "[[flow]]\ncongestion = 'cubic'\n[[flow]]\nfrom = 'sta1'\nto = 'sta0'\ncongestion = 'cubic'";
    let networks = [
        (
            "b-short",
            "standard = '802.11b'\npreamble = 'short'\nrts_threshold = '200B'",
        ),
        (
            "n",
            "standard = '802.11n'\nrate = '300Mbps'\nframe_error_rate = 0.05",
        ),
        ("ax", "standard = '802.11ax'\nmcs = 9\nspatial_streams = 2"),
        ("b-long", "standard = '802.11b'"),
        ("a", "standard = '802.11a'\ncontenders = 2"),
        (
            "g",
            "standard = '802.11g'\nprotection = 'cts_to_self'\nprotection_rate = '11Mbps'",
        ),
        (
            "n-2.4",
            "standard = '802.11n'\nband = '2.4GHz'\nrate = '65Mbps'\nguard_interval = '800ns'",
        ),
        (
            "ac",
            "standard = '802.11ac'\nrate = '866.7Mbps'\nframe_error_rate = 0.05",
        ),
    ];
    // To start the analyser is what takes long: one of them in the ordinary form.
    let count = if crate::is_long() { networks.len() } else { 1 };
    networks[..count].par_iter().for_each(|(name, keys)| {
        let text = format!("duration = '0.2s'\n[wlan]\nstations = 2\n{keys}\n{tcp}");
        let mut file = tempfile::Builder::new()
            .suffix(".pcapng")
            .tempfile()
            .unwrap();
        let mut capture = Capture::new(std::io::BufWriter::new(file.as_file_mut())).unwrap();
        let mut observers = Observers::default().with(&mut capture);
        run(&scenario(&text), 1, &mut observers).unwrap();
        drop(capture);
        file.flush().unwrap();
        // It takes longer to start than to read: once for everything.
        let fields = [
            "_ws.malformed",
            "_ws.short",
            "_ws.expert.severity",
            "wlan.fcs.status",
            "wlan.fc.type_subtype",
            "tcp.len",
            "frame.number",
        ];
        let output = Command::new("tshark")
            .args(["-o", "wlan.check_checksum:TRUE"])
            // Packets are seen several times on their way, which is not a fault of theirs.
            .args(["-o", "tcp.analyze_sequence_numbers:FALSE"])
            .args(["-T", "fields"])
            .args(fields.map(|field| ["-e", field]).as_flattened())
            .arg("-r")
            .arg(file.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {errors}");
        let output = String::from_utf8(output.stdout).unwrap();
        let frames: Vec<Vec<_>> = output
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        // A field that a frame has more than once has commas between its values.
        let number = |text: &str| {
            let value = text
                .strip_prefix("0x")
                .map(|hex| u64::from_str_radix(hex, 16));
            value.unwrap_or_else(|| text.parse()).expect(text)
        };
        let has = |frame: &[&str], field: usize, wanted: &dyn Fn(u64) -> bool| {
            let mut values = frame[field].split(',').filter(|value| !value.is_empty());
            values.any(|value| wanted(number(value)))
        };
        let wrong: Vec<_> = frames
            .iter()
            .filter(|frame| {
                !frame[0].is_empty()
                    || !frame[1].is_empty()
                    || has(frame, 2, &|severity| severity >= 6_291_456)
                    || has(frame, 3, &|status| status == 0)
            })
            .collect();
        let example: Vec<_> = wrong.iter().take(5).collect();
        assert!(
            wrong.is_empty(),
            "{name}: {} frames, such as {example:?}",
            wrong.len()
        );
        let count = |field, wanted: &dyn Fn(u64) -> bool| {
            let frames = frames.iter();
            frames.filter(|frame| has(frame, field, wanted)).count()
        };
        assert!(count(3, &|status| status == 1) > 100, "{name}");
        assert!(count(4, &|subtype| subtype == 8) > 0, "{name}: beacons");
        assert!(count(5, &|len| len > 0) > 0, "{name}: TCP inside 802.11");
    });
}

/// Looks at the radios at every event, and at nothing else.
struct Watcher;

impl tack_sim::observe::Observer for Watcher {
    fn wants_radio(&self) -> bool {
        true
    }
}

/// A run in which nobody looks at the radios skips what happens between deliveries, and comes out
/// the same.
#[test]
fn a_run_does_not_depend_on_who_looks_at_the_radios() {
    let all = [
        "host_interrupt = 'ppdu'\nhack = 'more-data'",
        "ack_filter = 'safe'\nframe_error_rate = 0.05\nretry_limit = 2",
        "",
        "hack = 'opportunistic'\nhost_receive_delay = '5us'",
    ];
    for settings in &all[..if crate::is_long() { 4 } else { 2 }] {
        let text = format!(
            "duration = '2s'\nwarmup = '500ms'\n[wlan]\npreset = 'tack-n'\nstations = 3\n{settings}\n\
             [wired]\nrate = '1Gbps'\ndelay = '2ms'\n\
             [[flow]]\nack = 'delayed:2'\nfrom = 'server'\nto = 'sta0'\n\
             [[flow]]\nfrom = 'server'\nto = 'sta1'\nstart = '200ms'\n\
             [[flow]]\nack = 'delayed:1'\nfrom = 'sta2'\nto = 'server'\n\
             [[flow]]\nfrom = 'sta0'\nto = 'sta2'\nbytes = '1MB'\n"
        );
        let mut watcher = Watcher;
        let mut observers = Observers::default().with(&mut watcher);
        let watched = run(&scenario(&text), 1, &mut observers).unwrap();
        let alone = play(&text);
        assert_eq!(watched.trace_hash, alone.trace_hash, "{settings}");
        assert!(alone.events < watched.events, "{settings}");
        let mut watched = watched;
        watched.events = alone.events;
        assert_eq!(watched.to_json(), alone.to_json(), "{settings}");
    }
}
