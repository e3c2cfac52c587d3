use super::*;
use crate::link::{Bound, LinkRate};
use tack_base::Rate;

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::from_toml("dir/test.toml", text, &[])
}

fn with(text: &str, overrides: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<_> = overrides.iter().map(ToString::to_string).collect();
    Scenario::from_toml("dir/test.toml", text, &overrides)
}

#[test]
fn each_station_gets_a_flow() {
    let text = "[wlan]\nstations = 3\n[[flow]]\nto = 'each'\nstart = '1s'\nstagger = '200ms'\n[[flow]]\nfrom = 'each'\nack = 'tack'\n\
                [[flow]]\nfrom = 'sta1'\nto = 'each'\n";
    let scenario = Scenario::from_toml("each.toml", text, &[]).unwrap();
    let flows: Vec<_> = scenario
        .flows
        .iter()
        .map(|flow| (flow.from.name(), flow.to.name(), flow.start.as_millis()))
        .collect();
    let wanted = [
        ("server", "sta0", 1_000),
        ("server", "sta1", 1_200),
        ("server", "sta2", 1_400),
        ("sta0", "server", 0),
        ("sta1", "server", 0),
        ("sta2", "server", 0),
        ("sta1", "sta0", 0),
        ("sta1", "sta2", 0),
    ];
    let wanted = wanted.map(|(from, to, start)| (from.into(), to.into(), start));
    assert_eq!(flows, wanted);
}

#[test]
fn the_smallest_scenario_is_one_flow() {
    let scenario = read("[[flow]]\n").unwrap();
    assert_eq!(scenario.name, "test");
    assert_eq!(
        (scenario.seed, scenario.duration),
        (1, Duration::from_secs(10))
    );
    assert_eq!(
        scenario.wired.forward.bottleneck.rate,
        LinkRate::Fixed(Rate::from_bits_per_sec(1_000_000_000))
    );
    let flow = &scenario.flows[0];
    assert_eq!((flow.from, flow.to), (Party::Server, Party::Client));
    assert!(
        matches!(&flow.transport, Transport::Tcp(tcp) if tcp.app == App::Bulk { pauses: vec![] })
    );
}

#[test]
fn keys_for_the_other_direction() {
    let scenario = read(
        "[wired]\nrate = '10Mbps'\ndelay = '20ms'\nqueue = '0.5bdp'\nqueue_reverse = '7p'\nloss = 0.1\nloss_reverse = 0.2\n[[flow]]\n",
    )
    .unwrap();
    let (forward, reverse) = (&scenario.wired.forward, &scenario.wired.reverse);
    // Half of 10 Mbit/s times 40 ms.
    assert_eq!(forward.bottleneck.queue, Bound::Bytes(25_000));
    assert_eq!(reverse.bottleneck.queue, Bound::Packets(7));
    assert_eq!(
        reverse.bottleneck.rate, forward.bottleneck.rate,
        "what the path is made of is mirrored"
    );
    assert_eq!((forward.loss.bernoulli, reverse.loss.bernoulli), (0.1, 0.2));
    let scenario = read("[wired]\nloss = 0.1\n[[flow]]\n").unwrap();
    assert_eq!(scenario.wired.reverse.loss.bernoulli, 0.0, "faults are not");
}

#[test]
fn a_flow_may_have_a_delay_of_its_own() {
    let scenario = with(
        "[[flow]]\nextra_delay = '40ms'\n[[flow]]\n[[flow]]\n",
        &["flow.2.extra_delay=1.5s"],
    )
    .unwrap();
    let delays: Vec<_> = scenario.flows.iter().map(|flow| flow.extra_delay).collect();
    assert_eq!(delays, [40, 0, 1_500].map(Duration::from_millis));
    let uplink = read("[wlan]\n[[flow]]\nfrom = 'sta0'\nextra_delay = '1ms'\n").unwrap();
    assert_eq!(uplink.flows[0].extra_delay, Duration::from_millis(1));
    let between =
        "[wlan]\nstations = 2\n[[flow]]\nfrom = 'sta0'\nto = 'sta1'\nextra_delay = '50ms'\n";
    let between = read(between).unwrap();
    assert_eq!(between.flows[0].extra_delay, Duration::from_millis(50));
}

#[test]
fn radios_have_the_defaults_of_the_standard_and_of_drivers() {
    let mac = |keys: &str| {
        let text = format!("[wlan]\n{keys}\n[[flow]]\n");
        read(&text).unwrap().wlan.unwrap().world.mac
    };
    let micros = |mac: tack_wlan::MacConfig| mac.txop_limit.map(|limit| limit.as_micros());
    assert_eq!(micros(mac("")), [0, 0, 4_096, 2_080]);
    assert_eq!(micros(mac("standard = '802.11a'")), [0; 4]);
    assert_eq!(micros(mac("txop_limit = '1ms'")), [1_000; 4]);
    assert_eq!(mac("").reorder_timeout, Some(Duration::from_millis(100)));
    assert_eq!(mac("reorder_timeout = 'off'").reorder_timeout, None);
    assert_ne!(
        mac("missed_block_ack = 'resend'").missed_block_ack,
        mac("").missed_block_ack
    );
}

#[test]
fn overrides_reach_everything_and_need_no_quotes() {
    let text = "seed = 3\n[wired]\nrate = '1Mbps'\n[[flow]]\n[[flow]]\nack = 'every'\n";
    let scenario = with(
        text,
        &[
            "wired.rate=10Mbps",
            "flow.1.ack=delayed:4",
            "duration=5s",
            "wired.loss=0.25",
            "flow.0.sack=false",
        ],
    )
    .unwrap();
    assert_eq!(
        scenario.wired.forward.bottleneck.rate,
        LinkRate::Fixed(Rate::from_bits_per_sec(10_000_000))
    );
    assert_eq!(scenario.wired.forward.loss.bernoulli, 0.25);
    let kinds: Vec<_> = scenario
        .flows
        .iter()
        .map(|flow| match &flow.transport {
            Transport::Tcp(tcp) => (tcp.config.ack.to_string(), tcp.config.sack),
            Transport::Udp(_) => unreachable!("both are TCP"),
        })
        .collect();
    assert_eq!(
        kinds,
        [("delayed:2".into(), false), ("delayed:4".into(), true)]
    );
    // Tables and flows that the file does not have are made.
    let scenario = with(
        "",
        &[
            "flow.0.transport=udp",
            "wired.gilbert_elliott.good_to_bad=0.1",
            "wired.gilbert_elliott.bad_to_good=0.5",
        ],
    );
    assert!(
        scenario
            .unwrap()
            .wired
            .forward
            .loss
            .gilbert_elliott
            .is_some()
    );
}

#[test]
fn each_app_reads() {
    let app = |text: &str| -> Result<App, String> {
        let scenario = read(&format!("[[flow]]\n{text}\n")).map_err(|error| error.to_string())?;
        match &scenario.flows[0].transport {
            Transport::Tcp(tcp) => Ok(tcp.app.clone()),
            Transport::Udp(_) => Err("udp".into()),
        }
    };
    let request = |gap| App::Request {
        request: 1_024,
        response: 10_000,
        gap: Duration::from_millis(gap),
    };
    assert_eq!(app("app = 'request:1KiB,10kB'"), Ok(request(0)));
    assert_eq!(app("app = 'request:1KiB,10kB,gap=5ms'"), Ok(request(5)));
    assert_eq!(app("app = 'duplex'\nbytes = '1MiB'"), Ok(App::Duplex));
    assert_eq!(app("app = 'video'"), Ok(App::Video(Video::default())));
    let video = Video {
        fps: 30,
        rate: Rate::from_bits_per_sec(8_000_000),
        peak: Rate::from_bits_per_sec(16_000_000),
        buffer: Duration::from_secs(1),
    };
    assert_eq!(
        app("app = 'video:fps=30,rate=8Mbps,buffer=1s'"),
        Ok(App::Video(video))
    );
    let udp = read("[[flow]]\ntransport = 'udp'\napp = 'video'\n").unwrap();
    assert!(
        matches!(&udp.flows[0].transport, Transport::Udp(udp) if udp.video == Some(Video::default()))
    );
    for wrong in [
        "app = 'bulk'",
        "app = 'video'\nrate = '1Mbps'",
        "app = 'video'\nbytes = '1B'",
    ] {
        let text = format!("[[flow]]\ntransport = 'udp'\n{wrong}\n");
        assert!(read(&text).is_err(), "{wrong}");
    }
    let at = |ms| tack_base::Instant::from_millis(ms);
    let pauses = vec![(at(1_000), at(3_000))];
    assert_eq!(
        app("app = 'bulk:pause=1s,resume=3s'"),
        Ok(App::Bulk { pauses })
    );
    for wrong in [
        "bulk:pause=3s,resume=1s",
        "bulk:stop=1s",
        "request:1KiB",
        "request:0B,1B",
        "video:x",
        "video:fps=0",
        "video:rate=100Mbps,peak=201Mbps",
        "video:rate=100Mbps,peak=99Mbps",
        "video:rate=1kbps",
        "video:buffer=2min",
        "tea",
    ] {
        let error = app(&format!("app = '{wrong}'")).unwrap_err();
        assert!(
            error.starts_with("dir/test.toml:2: flow.0.app: "),
            "{error}"
        );
    }
}

/// Each mistake, and what its message must say: line, key, and what would be right.
#[test]
fn mistakes_are_named_with_file_line_key_and_remedy() {
    let flow = "[[flow]]\n";
    let cases = [
        ("[[flow]\n", "dir/test.toml:1: ", ""),
        (
            "x = 1\n[[flow]]\n",
            "dir/test.toml:1: x: unknown key",
            "Keys here: duration, flow, name",
        ),
        (
            "\n[wired]\nrat = '1Mbps'\n[[flow]]\n",
            "dir/test.toml:3: wired.rat: unknown key; did you mean \"rate\"?",
            "",
        ),
        (
            "[[flow]]\n[[flow]]\ncongestoin = 'bbr'\n",
            "dir/test.toml:3: flow.1.congestoin: ",
            "did you mean \"congestion\"?",
        ),
        (
            "[wired]\nrate = '54mbps'\n[[flow]]\n",
            "dir/test.toml:2: wired.rate: \"54mbps\" is no rate",
            "\"54Mbps\"",
        ),
        (
            "[wired]\nrate = 54\n[[flow]]\n",
            "dir/test.toml:2: wired.rate: 54 is no rate",
            "\"54Mbps\"",
        ),
        (
            "[wired]\nrate = '0bps'\n[[flow]]\n",
            "wired.rate: \"0bps\" is no rate above zero",
            "",
        ),
        (
            "[wired]\ndelay = '20'\n[[flow]]\n",
            "wired.delay: \"20\" is no duration",
            "\"200ms\"",
        ),
        (
            "[wired]\ndelay = '2h'\n[[flow]]\n",
            "wired.delay: must be at most 3600s",
            "",
        ),
        (
            "[wired]\nqueue = '5'\n[[flow]]\n",
            "wired.queue: \"5\" is no queue bound",
            "\"1.0bdp\"",
        ),
        (
            "[wired]\nloss = 2\n[[flow]]\n",
            "wired.loss: 2 is no probability",
            "from 0 to 1",
        ),
        (
            "[wired]\nloss = '1%'\n[[flow]]\n",
            "wired.loss: \"1%\" is no probability",
            "from 0 to 1",
        ),
        (
            "[wired]\nreorder_delay = '1ms'\n[[flow]]\n",
            "wired.reorder_delay: has no effect without reorder",
            "",
        ),
        (
            "[wired]\nstrip_options = [1]\n[[flow]]\n",
            "wired.strip_options: ",
            "SACK",
        ),
        (
            "[wired]\nisn_rewrite = 'yes'\n[[flow]]\n",
            "wired.isn_rewrite: ",
            "off, with_sack, without_sack",
        ),
        (
            "[wired]\nrate = '1Mbps'\n[wired.trace]\nfile = 'x'\n[[flow]]\n",
            "dir/test.toml:3: wired.trace: ",
            "leave out",
        ),
        (
            "[wired.trace]\nfile = 'none'\n[[flow]]\n",
            "dir/test.toml:2: wired.trace.file: dir/none cannot be read",
            "",
        ),
        (
            "[wired.trace]\n[[flow]]\n",
            "wired.trace: needs the key file",
            "",
        ),
        (
            "[wired.gilbert_elliott]\ngood_to_bad = 0.1\n[[flow]]\n",
            "dir/test.toml:1: wired.gilbert_elliott: needs the key bad_to_good",
            "",
        ),
        (
            "[wired.suspension]\nperiod = '1s'\nduration = '2s'\n[[flow]]\n",
            "wired.suspension: ",
            "shorter than their period",
        ),
        (
            "[wired.blackout]\nstart = '1s'\n[[flow]]\n",
            "wired.blackout: needs the keys start and duration",
            "",
        ),
        (
            "wired = 3\n[[flow]]\n",
            "dir/test.toml:1: wired: 3 is no table",
            "[wired]",
        ),
        (
            "[[flow]]\nto = 'sta0'\n",
            "dir/test.toml:2: flow.0.to: ",
            "[wlan]",
        ),
        (
            "[wlan]\nstations = 2\n[[flow]]\nto = 'sta2'\n",
            "dir/test.toml:4: flow.0.to: \"sta2\" is no host",
            "sta0 to sta1",
        ),
        (
            "[[flow]]\nto = 'each'\n",
            "flow.0.to: \"each\" needs a wireless network",
            "add a [wlan] table",
        ),
        (
            "[wlan]\n[[flow]]\nfrom = 'each'\nto = 'each'\n",
            "flow.0.to: only one end",
            "\"each\"",
        ),
        (
            "[wlan]\n[[flow]]\nstagger = '1s'\n",
            "flow.0.stagger: is for flows of each station",
            "to = \"each\"",
        ),
        (
            "[wlan]\n[[flow]]\nto = 'client'\n",
            "flow.0.to: \"client\" is no host",
            "server, sta0",
        ),
        (
            "[wlan]\nhack_timer = '1ms'\n[[flow]]\n",
            "dir/test.toml:2: wlan.hack_timer: has no effect with hack = \"off\"",
            "\"off\"",
        ),
        (
            "[wlan]\nack_filter = 'unsafe'\n[[flow]]\n",
            "dir/test.toml:2: wlan.ack_filter: ",
            "off, paper, safe, cake, cake_aggressive",
        ),
        (
            "[[flow]]\naccess_category = 'voice'\n",
            "dir/test.toml:2: flow.0.access_category: has no effect without a wireless network",
            "add a [wlan] table",
        ),
        (
            "[[flow]]\ncongestion = 'cubic'\nbyte_counting = false\n",
            "dir/test.toml:3: flow.0.byte_counting: ",
            "new_reno only",
        ),
        (
            "[wlan]\ncw_adaptation = 'aimd'\n[[flow]]\n",
            "wlan.cw_adaptation: ",
            "standard, mimd",
        ),
        (
            "[wlan]\nstandard = '802.11a'\nrate = '55Mbps'\n[[flow]]\n",
            "dir/test.toml:3: wlan.rate: 802.11a has no such rate",
            "near it are 24Mbps, 36Mbps, 48Mbps, 54Mbps",
        ),
        (
            "[wlan]\nstandard = '802.11n'\nmcs = 32\n[[flow]]\n",
            "wlan.mcs: ",
            "from 0 to 31",
        ),
        (
            "[wlan]\nstandard = '802.11ac'\nmcs = 9\nchannel_width = '20MHz'\nspatial_streams = 1\n[[flow]]\n",
            "wlan.mcs: 802.11ac has no such mode",
            "",
        ),
        (
            "[wlan]\nstandard = '802.11g'\npreamble = 'short'\n[[flow]]\n",
            "wlan.preamble: ",
            "only 802.11b",
        ),
        (
            "[wlan]\nstandard = '802.11a'\nmissed_block_ack = 'resend'\n[[flow]]\n",
            "wlan.missed_block_ack: 802.11a has no Block ACK",
            "leave it out",
        ),
        (
            "[wlan]\nreorder_timeout = '1us'\n[[flow]]\n",
            "wlan.reorder_timeout: expected \"off\" or a time of at least 1ms",
            "100ms",
        ),
        (
            "[wlan]\nstandard = '802.11a'\nampdu_max_bytes = 65535\n[[flow]]\n",
            "wlan.ampdu_max_bytes: ",
            "does not aggregate",
        ),
        (
            "[wlan]\ncw_min = 16\n[[flow]]\n",
            "wlan.cw_min: ",
            "power of two less one",
        ),
        (
            "[wlan]\nstandard = '802.11b'\ncontrol_rate = '6Mbps'\n[[flow]]\n",
            "wlan.control_rate: ",
            "1Mbps, 2Mbps, 5.5Mbps, 11Mbps",
        ),
        (
            "[wlan]\ncontender_rate = '1Mbps'\n[[flow]]\n",
            "dir/test.toml:2: wlan.contender_rate: ",
            "has no effect without contenders",
        ),
        (
            "[wlan]\ncontenders = 2\ncontender_rate = '0Mbps'\n[[flow]]\n",
            "wlan.contender_rate: ",
            "rate above zero",
        ),
        (
            "[wlan]\ncontenders = 2\ncontender_rate = '20Gbps'\n[[flow]]\n",
            "wlan.contender_rate: ",
            "at most 11776Mbps, or leave it out",
        ),
        (
            "[wlan]\nqueue = '64KiB'\n[[flow]]\n",
            "wlan.queue: ",
            "1000p",
        ),
        (
            "[wlan]\nstations = 2\nhidden = ['sta0-sta2']\n[[flow]]\n",
            "wlan.hidden: ",
            "sta0-sta1",
        ),
        (
            "[wlan]\nframe_error_rate = 0.1\n[wlan.error_model]\nsnr_db = 20\n[[flow]]\n",
            "wlan.error_model: ",
            "not both",
        ),
        (
            "[wlan]\npreset = 'tack-n'\nstandard = '802.11b'\n[[flow]]\n",
            "wlan.standard: ",
            "802.11n",
        ),
        (
            "[[flow]]\nextra_delay = '40'\n",
            "dir/test.toml:2: flow.0.extra_delay: \"40\" is no duration",
            "200ms",
        ),
        (
            "[[flow]]\nextra_delay = '2h'\n",
            "flow.0.extra_delay: must be at most 3600s",
            "",
        ),
        (
            "[[flow]]\nextra_delay = '-1ms'\n",
            "flow.0.extra_delay: \"-1ms\" is no duration",
            "",
        ),
        (
            "[[flow]]\nto = 'moon'\n",
            "flow.0.to: \"moon\" is no host",
            "server, client",
        ),
        (
            "[[flow]]\nfrom = 'client'\nto = 'client'\n",
            "dir/test.toml:3: flow.0.to: ",
            "must differ",
        ),
        (
            "[[flow]]\nack = 'tack:beta=1'\n",
            "flow.0.ack: ",
            "from 2 to 255",
        ),
        ("[[flow]]\nack = 'delayed:0'\n", "flow.0.ack: ", "1 to 255"),
        (
            "[[flow]]\ncongestion = 'quick'\n",
            "flow.0.congestion: unknown congestion control `quick`",
            "new_reno, cubic, bbr, vegas, compound",
        ),
        (
            "[[flow]]\nbytes = '1MiB'\nstop = '5s'\n",
            "flow.0.stop: ",
            "either stop or bytes",
        ),
        (
            "[[flow]]\nbytes = 5\n",
            "flow.0.bytes: 5 is no size",
            "\"64KiB\"",
        ),
        (
            "[[flow]]\nstart = '5s'\nstop = '4s'\n",
            "flow.0.stop: must be later than start",
            "",
        ),
        (
            "[[flow]]\nstart = '10s'\n",
            "flow: flow 0 starts at 10s",
            "",
        ),
        (
            "[[flow]]\nrate = '1Mbps'\n",
            "flow.0.rate: is for transport = \"udp\"",
            "",
        ),
        (
            "[[flow]]\ntransport = 'udp'\nmss = 500\n",
            "flow.0.mss: means nothing for transport = \"udp\"",
            "",
        ),
        (
            "[[flow]]\ntransport = 'sctp'\n",
            "flow.0.transport: ",
            "tcp, udp",
        ),
        (
            "[[flow]]\nmss = 50\n",
            "flow.0.mss: 50 is no whole number from 88 to 65475",
            "",
        ),
        (
            "[[flow]]\nsack = 1\n",
            "flow.0.sack: 1 is no choice",
            "true or false",
        ),
        (
            "[[flow]]\nreceive_buffer = '1B'\n",
            "flow.0.receive_buffer: must be from 2KiB to 1GiB",
            "",
        ),
        (
            "[[flow]]\napp = 'duplex'\n",
            "flow.0.app: duplex needs bytes",
            "",
        ),
        (
            "[[flow]]\napp = 'request:1B,1B'\nbytes = '5B'\n",
            "flow.0.bytes: means nothing for a request app",
            "",
        ),
        (
            "duration = '0s'\n[[flow]]\n",
            "duration: must be above zero",
            "",
        ),
        (
            "warmup = '10s'\n[[flow]]\n",
            "dir/test.toml:1: warmup: must be shorter than the duration",
            "",
        ),
        ("seed = -1\n[[flow]]\n", "seed: -1 is no whole number", ""),
        ("", "flow: a scenario needs at least one [[flow]]", ""),
    ];
    assert!(read(flow).is_ok());
    for (text, begins, contains) in cases {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(begins), "{text}\nsays {error}\nnot {begins}");
        assert!(
            error.contains(contains),
            "{text}\nsays {error}\nnot {contains}"
        );
        assert!(error.starts_with("dir/test.toml"), "{error}");
    }
}

#[test]
fn mistakes_in_overrides_are_named_as_such() {
    let text = "[[flow]]\n";
    for (setting, says) in [
        ("flow.0.ack=sometimes", "--set: flow.0.ack: "),
        (
            "flow.5.ack=every",
            "--set: flow.5.ack: there is no element 5; the highest is 0",
        ),
        ("flow.x.ack=every", "--set: flow.x.ack: \"x\" is no index"),
        ("wired.rat=5", "--set: wired.rat: unknown key"),
        ("seed", "--set: \"seed\" is no override; write KEY=VALUE"),
        (
            "flow..ack=every",
            "--set: flow..ack: the key has an empty part",
        ),
        ("seed.x=1", "--set: seed.x: "),
    ] {
        let error = with(&format!("seed = 1\n{text}"), &[setting])
            .expect_err(setting)
            .to_string();
        assert!(error.starts_with(says), "{setting} says {error}");
    }
}

/// The manual names every key that the reader knows.
#[test]
fn the_manual_is_complete() {
    let manual = include_str!("../../../../docs/scenario.md");
    for text in [
        "x = 1\n[[flow]]\n",
        "[wired]\nx = 1\n[[flow]]\n",
        "[wired.suspension]\nx = 1\n[[flow]]\n",
        "[[flow]]\nx = 1\n",
        "[[flow]]\ntransport = 'udp'\nx = 1\n",
    ] {
        let error = read(text).expect_err(text).to_string();
        let (_, known) = error.split_once("Keys here: ").expect(&error);
        for key in known.split(", ") {
            let key = key.strip_suffix("_reverse").unwrap_or(key);
            let named = [
                format!("`{key}`"),
                format!("[wired.{key}]"),
                format!("[{key}]"),
            ]
            .iter()
            .any(|form| manual.contains(form));
            assert!(named, "docs/scenario.md does not explain {key}");
        }
    }
}
