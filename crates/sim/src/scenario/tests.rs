mod mistakes;

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
    let agreements = |keys: &str| mac(keys).agreements;
    assert_eq!(
        agreements(""),
        agreements("block_ack_agreement = 'established'")
    );
    assert_ne!(
        agreements(""),
        agreements("block_ack_agreement = 'negotiated'")
    );
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
