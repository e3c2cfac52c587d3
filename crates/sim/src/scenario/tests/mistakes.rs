//! Mistakes in scenario files and overrides: what is said about each.

use super::*;

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
            "dir/test.toml:2: wired.rate: \"54mbps\" is not a rate",
            "\"54Mbps\"",
        ),
        (
            "[wired]\nrate = 54\n[[flow]]\n",
            "dir/test.toml:2: wired.rate: 54 is not a rate",
            "\"54Mbps\"",
        ),
        (
            "[wired]\nrate = '0bps'\n[[flow]]\n",
            "wired.rate: \"0bps\" is not a rate above zero",
            "",
        ),
        (
            "[wired]\ndelay = '20'\n[[flow]]\n",
            "wired.delay: \"20\" is not a duration",
            "\"200ms\"",
        ),
        (
            "[wired]\ndelay = '2h'\n[[flow]]\n",
            "wired.delay: must be at most 3600s",
            "",
        ),
        (
            "[wired]\nqueue = '5'\n[[flow]]\n",
            "wired.queue: \"5\" is not a queue bound",
            "\"1.0bdp\"",
        ),
        (
            "[wired]\nloss = 2\n[[flow]]\n",
            "wired.loss: 2 is not a probability",
            "from 0 to 1",
        ),
        (
            "[wired]\nloss = '1%'\n[[flow]]\n",
            "wired.loss: \"1%\" is not a probability",
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
            "[wired]\nclear_ecn_flags_from_reverse = 'syn'\n[[flow]]\n",
            "wired.clear_ecn_flags_from_reverse: has no effect without clear_ecn_flags_reverse",
            "",
        ),
        (
            "[wired]\necn_rewrite = 'none'\n[[flow]]\n",
            "wired.ecn_rewrite: ",
            "not_ect, ect1, ect0, ce",
        ),
        (
            "[[flow]]\necn = false\naccurate_ecn = 'offer'\n",
            "flow.0.accurate_ecn: has no effect with ecn = false",
            "",
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
            "dir/test.toml:1: wired: 3 is not a table",
            "[wired]",
        ),
        (
            "[[flow]]\nto = 'sta0'\n",
            "dir/test.toml:2: flow.0.to: ",
            "[wlan]",
        ),
        (
            "[wlan]\nstations = 2\n[[flow]]\nto = 'sta2'\n",
            "dir/test.toml:4: flow.0.to: \"sta2\" is not a host",
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
            "flow.0.to: \"client\" is not a host",
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
            "[wlan]\nstandard = '802.11g'\nblock_ack_agreement = 'negotiated'\n[[flow]]\n",
            "wlan.block_ack_agreement: 802.11g has no Block ACK",
            "leave it out",
        ),
        (
            "[wlan]\nblock_ack_agreement = 'none'\n[[flow]]\n",
            "wlan.block_ack_agreement: ",
            "negotiated",
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
            "dir/test.toml:2: flow.0.extra_delay: \"40\" is not a duration",
            "200ms",
        ),
        (
            "[[flow]]\nextra_delay = '2h'\n",
            "flow.0.extra_delay: must be at most 3600s",
            "",
        ),
        (
            "[[flow]]\nextra_delay = '-1ms'\n",
            "flow.0.extra_delay: \"-1ms\" is not a duration",
            "",
        ),
        (
            "[[flow]]\nto = 'moon'\n",
            "flow.0.to: \"moon\" is not a host",
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
            "2 to 255",
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
            "flow.0.bytes: 5 is not a size",
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
            "flow.0.mss: has no effect for transport = \"udp\"",
            "",
        ),
        (
            "[[flow]]\ntransport = 'sctp'\n",
            "flow.0.transport: ",
            "tcp, udp",
        ),
        (
            "[[flow]]\nmss = 50\n",
            "flow.0.mss: 50 is not a whole number from 88 to 65475",
            "",
        ),
        (
            "[[flow]]\nsack = 1\n",
            "flow.0.sack: 1 is not a choice",
            "true or false",
        ),
        (
            "[[flow]]\nreceive_buffer = '1B'\n",
            "flow.0.receive_buffer: must be from 2KiB to 1GiB",
            "",
        ),
        (
            "[[flow]]\nreceive_buffer = '64KiB'\nleast_receive_buffer = '65KiB'\n",
            "flow.0.least_receive_buffer: must be at most receive_buffer",
            "",
        ),
        (
            "[[flow]]\nleast_receive_buffer = '64KiB'\nreceive_window = 'fixed'\n",
            "flow.0.receive_window: a fixed one does not shrink; leave least_receive_buffer out",
            "",
        ),
        (
            "[[flow]]\napp = 'duplex'\n",
            "flow.0.app: duplex needs bytes",
            "",
        ),
        (
            "[[flow]]\napp = 'request:1B,1B'\nbytes = '5B'\n",
            "flow.0.bytes: has no effect for a request app",
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
        (
            "seed = -1\n[[flow]]\n",
            "seed: -1 is not a whole number",
            "",
        ),
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
        (
            "flow.x.ack=every",
            "--set: flow.x.ack: \"x\" is not an index",
        ),
        ("wired.rat=5", "--set: wired.rat: unknown key"),
        (
            "seed",
            "--set: \"seed\" is not an override; write KEY=VALUE",
        ),
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
