//! Whole runs: determinism, output, applications, and single faults that a transfer must live
//! through.

use std::path::Path;

use tack_sim::{Capture, Checks, Observers, Report, RunError, Scenario, Series, table, write_csv};

use crate::run;

fn attempt(text: &str, seed: u64) -> Result<Report, RunError> {
    let scenario = Scenario::from_toml("test.toml", text, &[]).expect("the scenario is sound");
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    run(&scenario, seed, &mut observers)
}

fn report(text: &str, seed: u64) -> Report {
    attempt(text, seed).expect("no invariant breaks")
}

#[test]
fn same_seed_same_run() {
    let text = "duration = '3s'\n[wired]\nrate = '20Mbps'\ndelay = '10ms'\nloss = 0.01\nreorder = 0.01\nduplicate = 0.01\ncorrupt = 0.01\n\
                late_timers = '1ms'\n[[flow]]\n[[flow]]\ntransport = 'udp'\nrate = '2Mbps'\nack_every = 2\n";
    let first = report(text, 7);
    assert_eq!(first, report(text, 7));
    assert_eq!(first.to_json(), report(text, 7).to_json());
    let other = report(text, 8);
    assert_ne!(first.trace_hash, other.trace_hash);
    // Watching changes nothing.
    let scenario = Scenario::from_toml("test.toml", text, &[]).unwrap();
    let mut capture = Capture::new(Vec::new()).unwrap();
    let mut observers = Observers::default().with(&mut capture);
    assert_eq!(
        run(&scenario, 7, &mut observers).unwrap().trace_hash,
        first.trace_hash
    );
}

#[test]
fn the_json_line_has_the_documented_keys() {
    let report = report("duration = '1s'\nwarmup = '200ms'\n[[flow]]\n", 1);
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    for key in [
        "name",
        "seed",
        "virtual_seconds",
        "wall_seconds",
        "events",
        "flows",
        "wlan",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    let flow = &json["flows"][0];
    for key in [
        "id",
        "from",
        "to",
        "transport",
        "congestion",
        "ack",
        "goodput_bps",
        "bytes_delivered",
        "data_segments",
        "retransmitted_segments",
        "spurious_retransmissions",
        "acks",
        "acks_by_kind",
        "acks_by_timer",
        "invalid_reports",
        "ack_bytes",
        "rto_count",
        "min_rtt_us",
        "srtt_us",
        "owd_p50_us",
        "owd_p95_us",
        "blocked_bytes_p50",
        "blocked_bytes_p99",
        "completion_s",
        "limited_by",
    ] {
        assert!(flow.get(key).is_some(), "{key}");
    }
    for key in [
        "tack",
        "iack_loss",
        "iack_window",
        "iack_sync",
        "iack_event",
        "delayed",
    ] {
        assert!(flow["acks_by_kind"].get(key).is_some(), "{key}");
    }
    let limits = &flow["limited_by"];
    let sum: f64 = ["cwnd", "rwnd", "pacing", "app"]
        .iter()
        .map(|key| limits[key].as_f64().unwrap())
        .sum();
    assert!((sum - 1.0).abs() < 1e-9, "{limits}");
    assert_eq!(json["virtual_seconds"], 1.0);
}

#[test]
fn csv_and_table_have_a_line_for_each_flow() {
    let report = report(
        "name = 'a, \"b\"'\nduration = '1s'\n[[flow]]\n[[flow]]\ntransport = 'udp'\n",
        1,
    );
    let mut csv = Vec::new();
    write_csv(&[report.clone(), report.clone()], &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(
        lines[1].starts_with("\"a, \"\"b\"\"\",1,1,"),
        "{}",
        lines[1]
    );
    let columns = lines[0].split(',').count();
    // The quoted name has one comma of its own.
    assert!(
        lines[1..]
            .iter()
            .all(|line| line.split(',').count() == columns + 1)
    );
    assert_eq!(table(&[report]).lines().count(), 3);
}

#[test]
fn a_capture_and_a_series_show_the_run() {
    let scenario = Scenario::from_toml(
        "test.toml",
        "duration = '500ms'\n[[flow]]\nbytes = '100KiB'\n",
        &[],
    )
    .unwrap();
    let (mut file, mut csv) = (Vec::new(), Vec::new());
    let mut capture = Capture::new(&mut file).unwrap();
    let mut series = Series::new(&mut csv, std::time::Duration::from_millis(10)).unwrap();
    let report = run(
        &scenario,
        1,
        &mut Observers::default().with(&mut capture).with(&mut series),
    )
    .unwrap();
    assert!(report.flows[0].completion_s.is_some());
    drop((capture, series));
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).unwrap();
    let mut packets = 0;
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
            let ip = tack_wire::ip::parse(&packet.data).expect("checksums are filled in");
            assert!(tack_wire::checksum::verify_tcp(ip.src, ip.dst, ip.payload));
            packets += 1;
        }
    }
    let wired = &report.wired;
    assert_eq!(packets, 2 * (wired.forward.packets + wired.reverse.packets));
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("time_s,flow,goodput_bps,"));
    assert!(csv.lines().skip(1).any(|line| line.starts_with("0.01,0,")));
}

#[test]
fn a_run_ends_when_everything_is_delivered() {
    let report = report(
        "duration = '100s'\n[wired]\nrate = '8Mbps'\ndelay = '10ms'\n[[flow]]\nbytes = '1MB'\n",
        1,
    );
    let flow = &report.flows[0];
    assert_eq!(flow.bytes_delivered, 1_000_000);
    assert_eq!(flow.closed, [Some("graceful"); 2]);
    // A second for the bytes, 36 ms for headers, a few round trips of 20 ms.
    let seconds = flow.completion_s.unwrap();
    assert!((1.03..1.3).contains(&seconds), "{seconds}");
    assert!(report.virtual_seconds < seconds + 0.1);
    assert!((7.0e6..7.8e6).contains(&flow.goodput_bps));
}

#[test]
fn requests_are_answered_in_a_round_trip() {
    let text = "duration = '10s'\n[wired]\nrate = '100Mbps'\ndelay = '10ms'\n[[flow]]\nfrom = 'client'\napp = 'request:100B,1KiB,gap=10ms'\nstop = '9s'\n";
    let report = report(text, 1);
    let requests = report.flows[0].requests.unwrap();
    // 20 ms of path and 10 ms of gap: some 300 exchanges in 9 s.
    assert!((280..=300).contains(&requests.completed), "{requests:?}");
    assert!(
        (20_000..21_500).contains(&requests.latency_p50_us),
        "{requests:?}"
    );
    assert!(requests.latency_p99_us < 22_000, "{requests:?}");
    assert_eq!(report.flows[0].closed, [Some("graceful"); 2]);
}

#[test]
fn a_reader_that_stops_stalls_the_sender_and_no_longer() {
    let text = "duration = '20s'\n[wired]\nrate = '100Mbps'\ndelay = '10ms'\n[[flow]]\nbytes = '50MiB'\nreceive_buffer = '256KiB'\n\
                app = 'bulk:pause=1s,resume=6s'\n";
    let report = report(text, 1);
    let flow = &report.flows[0];
    assert_eq!(flow.bytes_delivered, 50 << 20);
    let seconds = flow.completion_s.unwrap();
    // 4.4 s of link time and 5 s of pause; the window reopens at once, not with the next probe.
    assert!((9.2..10.5).contains(&seconds), "{seconds}");
    // A pause that outlives the run is not an error.
    let text = text.replace(",resume=6s", "");
    let report = attempt(&text, 1).unwrap();
    assert_eq!(report.flows[0].completion_s, None);
    assert!(report.virtual_seconds == 20.0);
}

#[test]
fn udp_keeps_its_rate_and_its_acknowledgements() {
    let report = report(
        "duration = '10s'\nwarmup = '1s'\n[wired]\nrate = '100Mbps'\ndelay = '5ms'\n[[flow]]\ntransport = 'udp'\nrate = '20Mbps'\npayload = 1000\nack_every = 4\nack_size = 100\n",
        1,
    );
    let flow = &report.flows[0];
    assert!(
        (19.99e6..20.01e6).contains(&flow.goodput_bps),
        "{}",
        flow.goodput_bps
    );
    assert_eq!(flow.data_segments / 4, flow.acks);
    assert_eq!(flow.ack_bytes, flow.acks * 80);
    assert_eq!(
        flow.owd_p50_us,
        Some(5_087),
        "82.24 us of sending, 5 ms of path, to two digits"
    );
}

#[test]
fn a_saturated_link_is_full() {
    let report = report(
        "duration = '5s'\nwarmup = '1s'\n[wired]\nrate = '100Mbps'\ndelay = '5ms'\n[[flow]]\ntransport = 'udp'\n",
        1,
    );
    // 1,472 of every 1,500 bytes are payload.
    let share = report.flows[0].goodput_bps / (100e6 * 1_472.0 / 1_500.0);
    assert!((share - 1.0).abs() < 1e-3, "{share}");
    assert_eq!(report.wired.forward.queue_drops, 0);
}

#[test]
fn a_trace_is_looked_for_beside_the_scenario_and_sets_the_rate() {
    let folder = tempfile::tempdir().unwrap();
    // 12 opportunities in 10 ms: 14.4 Mbit/s.
    std::fs::write(
        folder.path().join("link.trace"),
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n9\n10\n10\n",
    )
    .unwrap();
    let file = folder.path().join("test.toml");
    std::fs::write(
        &file,
        "duration = '10s'\nwarmup = '2s'\n[wired]\ndelay = '10ms'\nqueue = '1.0bdp'\nrate_reverse = '10Mbps'\n[wired.trace]\nfile = 'link.trace'\n[[flow]]\n",
    )
    .unwrap();
    let scenario = Scenario::from_file(Path::new(&file), &[]).unwrap();
    let report = run(&scenario, 1, &mut Observers::default()).unwrap();
    let share = report.flows[0].goodput_bps / (14.4e6 * 1_448.0 / 1_500.0);
    // What waited above a hole as the warm-up ended counts as delivered after it: up to two
    // bandwidth-delay products of 36 kB, in 14 MB.
    assert!((0.9..=1.006).contains(&share), "{share}");
}

#[test]
fn flows_that_share_a_link_have_the_round_trips_that_are_set() {
    // A packet takes less than a nanosecond to send: the round trip is what it propagates.
    let text = "duration = '2s'\n[wired]\nrate = '1Tbps'\ndelay = '10ms'\ndelay_reverse = '5ms'\n\
                [[flow]]\nbytes = '100KiB'\n\
                [[flow]]\nbytes = '100KiB'\nextra_delay = '40ms'\n\
                [[flow]]\nbytes = '100KiB'\nextra_delay = '1500us'\nfrom = 'client'\nack = 'tack'\n\
                [[flow]]\ntransport = 'udp'\nrate = '1Mbps'\nbytes = '10KiB'\nextra_delay = '20ms'\n";
    let run = report(text, 1);
    let round_trips: Vec<_> = run.flows.iter().map(|flow| flow.min_rtt_us).collect();
    assert_eq!(
        round_trips,
        [Some(15_000), Some(95_000), Some(18_000), None]
    );
    // To two digits.
    let one_way: Vec<_> = run
        .flows
        .iter()
        .map(|flow| flow.owd_p50_us.unwrap())
        .collect();
    for (is, wanted) in one_way.iter().zip([10_000, 50_000, 6_500, 30_000_u64]) {
        assert!(is.abs_diff(wanted) <= wanted / 64, "{one_way:?}");
    }
    assert!(
        run.flows
            .iter()
            .all(|flow| flow.retransmitted_segments == 0)
    );
    assert_eq!(run.trace_hash, report(text, 1).trace_hash);
}

#[test]
fn a_delay_of_nothing_changes_nothing() {
    let text = "duration = '1s'\n[wired]\nrate = '20Mbps'\ndelay = '10ms'\nloss = 0.01\nreorder = 0.01\n[[flow]]\n[[flow]]\n";
    let with = format!("{text}extra_delay = '0s'\n");
    assert_eq!(report(text, 1), report(&with, 1));
}

#[test]
fn behind_the_air_a_flow_has_its_delay_on_the_wired_path() {
    let text = "duration = '3s'\n[wired]\ndelay = '10ms'\n[wlan]\nstandard = '802.11ac'\n";
    for ends in ["", "from = 'sta0'\n"] {
        let flow = format!("[[flow]]\n{ends}app = 'request:100B,100B,gap=50ms'\n");
        let near = report(&format!("{text}{flow}"), 1).flows[0].min_rtt_us;
        let far = report(&format!("{text}{flow}extra_delay = '30ms'\n"), 1).flows[0].min_rtt_us;
        let (near, far) = (near.unwrap(), far.unwrap());
        // What the air takes differs a little with the instants at which packets come to it.
        assert!((20_100..22_000).contains(&near), "{ends}: {near}");
        assert!(
            (59_500..60_500).contains(&(far - near)),
            "{ends}: {near}, {far}"
        );
    }
}

/// One fault at a time, harsher than in the mixes.
#[test]
fn a_transfer_lives_through_each_fault() {
    let faults = [
        "loss = 0.2\nloss_reverse = 0.2",
        "ack_loss_reverse = 0.7",
        "reorder = 0.5\nreorder_delay = '30ms'",
        "duplicate = 1.0\nduplicate_reverse = 1.0",
        "corrupt = 0.1\ncorrupt_reverse = 0.1",
        "mtu_black_hole = 1200",
        "mtu_black_hole = 600",
        "clock_skew_ppm = 10000",
        "late_timers = '50ms'\nlate_timers_reverse = '50ms'",
        "late_processing = '50ms'\nlate_processing_reverse = '50ms'",
        "short_sends = 0.5\nshort_sends_reverse = 0.5\nbatch = 16",
        "strip_options = [2, 3, 4, 5, 8]\nstrip_options_reverse = [2, 3, 4, 5, 8]",
        "strip_options = [4]",
        "strip_options_reverse = [5]\nstrip_options_from_reverse = 'rest'",
        "isn_rewrite = 'with_sack'\nloss = 0.02",
        "isn_rewrite = 'without_sack'\nloss = 0.02",
        "ecn_mark = 0.3\necn_mark_reverse = 0.3",
        "ecn_threshold = '20p'",
        "queue = '2p'",
        "[wired.blackout]\nstart = '300ms'\nduration = '20s'",
        "[[wired.blackout]]\nstart = '0s'\nduration = '4s'\n[[wired.blackout_reverse]]\nstart = '5s'\nduration = '4s'",
        "[wired.suspension]\nperiod = '300ms'\nduration = '100ms'\nduration_max = '250ms'",
        "[wired.gilbert_elliott]\ngood_to_bad = 0.02\nbad_to_good = 0.3",
    ];
    for controller in ["new_reno", "cubic", "bbr"] {
        for fault in faults {
            let queue = if fault.contains("queue") {
                ""
            } else {
                "queue = '1.0bdp'\n"
            };
            let text = format!(
                "duration = '1000s'\n[wired]\nrate = '20Mbps'\ndelay = '10ms'\n{queue}{fault}\n[[flow]]\napp = 'duplex'\nbytes = '1MiB'\ncongestion = '{controller}'\n"
            );
            let report =
                attempt(&text, 1).unwrap_or_else(|error| panic!("{controller}, {fault}: {error}"));
            let flow = &report.flows[0];
            println!(
                "{controller}, {}: {:?} s, {} retransmitted",
                fault.replace('\n', ", "),
                flow.completion_s,
                flow.retransmitted_segments
            );
            assert!(
                flow.completion_s.is_some(),
                "{controller}, {fault}: {} bytes",
                flow.bytes_delivered
            );
            assert_eq!(flow.closed, [Some("graceful"); 2], "{controller}, {fault}");
        }
    }
}

/// The same video over the same path, by `flow` settings.
fn video(wired: &str, flow: &str) -> tack_sim::report::VideoReport {
    let text = format!(
        "duration = '30s'\nwarmup = '1s'\n[wired]\ndelay = '10ms'\n{wired}\n[[flow]]\napp = 'video'\n{flow}\n"
    );
    report(&text, 1).flows[0].video.expect("it is a video")
}

#[test]
fn a_video_runs_smoothly_where_there_is_room_and_suffers_where_there_is_none() {
    let (wide, narrow) = ("rate = '300Mbps'", "rate = '60Mbps'\nqueue = '1.0bdp'");
    let flows = [
        "congestion = 'bbr'",
        "transport = 'udp'",
        "congestion = 'cubic'",
    ];
    let count = if crate::is_long() { 3 } else { 2 };
    for flow in &flows[..count] {
        let good = video(wide, flow);
        // 29 s of 60 frames a second.
        assert!((1_739..=1_741).contains(&good.frames), "{flow}: {good:?}");
        assert!(good.frames_late <= 17, "{flow}: {good:?}");
        let startup = good.startup_s.unwrap();
        assert!((0.1..0.3).contains(&startup), "{flow}: {good:?}");
        let bad = video(narrow, flow);
        println!("{flow}: {good:?}\n{bad:?}");
        assert!(bad.frames_late > bad.frames / 3, "{flow}: {bad:?}");
        if flow.contains("udp") {
            assert_eq!((good.rebuffering_share, good.rebufferings), (None, None));
            assert!(good.macroblocking_share.unwrap() < 0.01, "{good:?}");
            assert!(bad.macroblocking_share.unwrap() > 0.3, "{bad:?}");
        } else {
            assert_eq!(good.macroblocking_share, None);
            assert!(good.rebuffering_share.unwrap() < 0.02, "{flow}: {good:?}");
            // A hundred megabits a second on average, through sixty less headers.
            let share = bad.rebuffering_share.unwrap();
            assert!((0.2..0.7).contains(&share), "{flow}: {bad:?}");
        }
    }
}

#[test]
fn a_video_that_stops_is_played_to_its_end() {
    let flow = |transport| format!("stop = '5s'\ntransport = '{transport}'");
    for transport in ["tcp", "udp"] {
        let text = format!(
            "duration = '30s'\n[wired]\nrate = '60Mbps'\ndelay = '10ms'\n[[flow]]\napp = 'video:rate=20Mbps'\n{}\n",
            flow(transport)
        );
        let report = report(&text, 1);
        let video = report.flows[0].video.unwrap();
        assert!(
            (299..=300).contains(&video.frames),
            "{transport}: {video:?}"
        );
        assert_eq!(video.frames_late, 0, "{transport}: {video:?}");
        assert!(report.virtual_seconds < 6.0, "{transport}");
        // 20 Mbit/s for five seconds.
        let megabytes = report.flows[0].bytes_delivered as f64 / 1e6;
        assert!((6.0..20.0).contains(&megabytes), "{transport}: {megabytes}");
    }
}

#[test]
fn acknowledgements_of_datagrams_are_named_as_in_the_scenario() {
    let report = report(
        "duration = '1s'\n[[flow]]\ntransport = 'udp'\nrate = '1Mbps'\nack_every = 2\n",
        1,
    );
    assert_eq!(
        report.flows[0].ack.as_deref(),
        Some("ack_every=2,ack_size=64")
    );
}

#[test]
fn a_server_that_cannot_be_reached_is_given_up() {
    let report = report(
        "duration = '600s'\n[[wired.blackout]]\nstart = '0s'\nduration = '600s'\n[[flow]]\nbytes = '1KiB'\n",
        1,
    );
    assert_eq!(report.flows[0].closed, [Some("timed_out"), None]);
    assert!(report.virtual_seconds < 200.0, "{}", report.virtual_seconds);
}

/// Every scenario that comes with the project runs, shortened, and moves data.
#[test]
fn the_scenarios_that_come_along_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let overrides = ["duration=2s", "warmup=100ms"].map(String::from);
        let scenario =
            Scenario::from_file(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
        let report = run(&scenario, 1, &mut Observers::default()).unwrap();
        assert!(
            report.flows.iter().all(|flow| flow.bytes_delivered > 0),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count >= 6, "{count}");
}

/// A year of virtual time would take days; the caller's wish ends it within some thousand events.
#[test]
fn a_run_ends_when_its_caller_wants() {
    let text = "duration = '8000h'\n[[flow]]";
    let scenario = Scenario::from_toml("stopped.toml", text, &[]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(true);
    let ended = run(&scenario, 1, &mut Observers::default().until(&stop));
    assert!(matches!(ended, Err(RunError::Stopped)), "{ended:?}");
}
