//! Boxes in the middle, and what others read of it.

use std::process::Command;

use tack_sim::Capture;

use super::{observe, report, seeds, set};

#[test]
fn a_path_that_strips_the_option_falls_back() {
    let legacy = report("stripped", &set!["flow.0.ack=delayed:2"]);
    let expected = legacy.flows[0].completion_s.expect("it ends");
    for (way, reverse) in [
        ("rest", "rest"),
        ("syn", "all"),
        ("all", "syn"),
        ("rest", "syn"),
    ] {
        let result = report(
            "stripped",
            &set![
                format_args!("wired.strip_options_from={way}"),
                format_args!("wired.strip_options_from_reverse={reverse}"),
            ],
        );
        let flow = &result.flows[0];
        let seconds = flow.completion_s.expect("it ends");
        println!(
            "stripped from {way} / {reverse}: {seconds:.2} s ({expected:.2} s as delayed:2), {} segments again, closed {:?}",
            flow.retransmitted_segments, flow.closed
        );
        assert_eq!(flow.closed, [Some("graceful"); 2]);
        assert!(seconds <= 1.25 * expected, "{way} / {reverse}: {seconds}");
    }
}

#[test]
fn one_way_stripping_falls_back_too() {
    // Data lose their numbers, or reports their contents, in one direction only, and losses happen
    // beside it.
    for (key, other) in [
        ("wired.strip_options_reverse=[254]", "lists pass"),
        ("wired.strip_options=[254]", "numbers pass"),
    ] {
        for seed in seeds() {
            let overrides = set![
                key,
                "wired.loss=0.005",
                "duration=60s",
                format_args!("seed={seed}")
            ];
            let result = report("stripped", &overrides);
            let flow = &result.flows[0];
            println!("{other}, seed {seed}: {:?} s", flow.completion_s);
            assert!(flow.completion_s.is_some(), "{other}");
            assert_eq!(flow.closed, [Some("graceful"); 2]);
        }
    }
}

#[test]
fn moved_sequence_numbers_do_no_harm() {
    for isn in ["with_sack", "without_sack"] {
        let result = report(
            "loss-iack",
            &set![
                format_args!("wired.isn_rewrite={isn}"),
                "flow.0.bytes=20MB",
                "warmup=0s",
            ],
        );
        let flow = &result.flows[0];
        println!(
            "{isn}: {:?} s, {} timeouts",
            flow.completion_s, flow.rto_count
        );
        assert!(flow.completion_s.is_some());
        assert_eq!(flow.rto_count, 0, "{isn}");
        assert!(flow.acks_by_kind.tack > 0 && flow.acks_by_kind.iack_loss > 0);
    }
}

#[test]
fn tshark_finds_nothing_malformed() {
    let Ok(version) = Command::new("tshark").arg("--version").output() else {
        tack_skip::skipped("tshark is not installed");
        return;
    };
    assert!(version.status.success());
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("tack.pcapng");
    let out = std::io::BufWriter::new(std::fs::File::create(&file).expect("a scratch file"));
    let mut capture = Capture::new(out).expect("the header is written");
    // Losses both ways, so that lists and all kinds of reports are there.
    observe(
        "lossy-both-ways",
        &set![
            "flow.0.bytes=4MB",
            "warmup=0s",
            "wired.delay=10ms",
            "wired.rate=50Mbps",
        ],
        &mut capture,
    );
    drop(capture);
    let dissect = |filter: &str| {
        let output = Command::new("tshark")
            .args([
                "-r",
                file.to_str().expect("a plain path"),
                "-o",
                "tcp.check_checksum:TRUE",
            ])
            .args(["-Y", filter, "-T", "fields", "-e", "frame.number"])
            .output()
            .expect("tshark runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).lines().count()
    };
    let experiment = tack_wire::tack::EXPERIMENT_ID;
    let ours = dissect(&format!("tcp.options.experimental.exid == {experiment}"));
    let malformed =
        dissect("_ws.malformed || tcp.option.len.invalid || tcp.checksum.status == \"Bad\"");
    println!("{ours} packets with our option, {malformed} malformed");
    assert!(ours > 1_000);
    assert_eq!(malformed, 0);
}
