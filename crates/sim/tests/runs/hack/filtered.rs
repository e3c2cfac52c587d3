//! TCP/HACK and a filter of acknowledgements at once: the filter reads the transmit queue, in which
//! only native copies are.

use super::figures::figures;

/// The filter that is recommended, and all of them in the long form.
fn filters() -> &'static [&'static str] {
    if crate::is_long() {
        &["safe", "paper", "cake"]
    } else {
        &["safe"]
    }
}

/// Four stations, or one, over 802.11n.
fn network(stations: u32, flows: &[&str]) -> String {
    let mut text = format!(
        "duration = '3s'\nwarmup = '1s'\n[wired]\nrate = '500Mbps'\ndelay = '1ms'\nqueue = '10000p'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nstations = {stations}\nqueue = '200p'\nhost_interrupt = 'ppdu'\n"
    );
    for flow in flows {
        text += &format!("[[flow]]\n{flow} = 'each'\nack = 'delayed:2'\ntimestamps = true\n");
    }
    text
}

/// Where responses carry all, the queue holds nothing that a filter could drop.
#[test]
fn a_filter_has_nothing_to_drop_where_responses_carry_all() {
    if !crate::is_long() {
        return;
    }
    for flow in ["from", "to"] {
        let text = network(if flow == "to" { 4 } else { 1 }, &[flow]);
        let alone = figures(&text, &["wlan.hack=more-data"]);
        for filter in filters() {
            let filter = format!("wlan.ack_filter={filter}");
            let plain = figures(&text, &[&filter]);
            assert!(plain.filtered > 1_000, "{filter} alone drops most of them");
            let both = figures(&text, &["wlan.hack=more-data", &filter]);
            assert!(
                both.filtered < plain.filtered / 100,
                "{filter}: {}",
                both.filtered
            );
            assert!(both.native_share() < 0.01, "{filter}");
            assert!(both.mbps > 0.98 * alone.mbps, "{filter}: {}", both.mbps);
            assert_eq!(both.timeouts, 0, "{filter}");
        }
    }
}

/// With opportunism each acknowledgement is in the queue, too. A filter drops nearly all of these
/// copies; the compressed ones arrive as if there were none.
#[test]
fn copies_that_a_filter_drops_arrive_compressed() {
    let text = network(1, &["from"]);
    let alone = figures(&text, &["wlan.hack=opportunistic"]);
    for filter in filters() {
        let keys = [
            "wlan.hack=opportunistic",
            &format!("wlan.ack_filter={filter}"),
        ];
        let both = figures(&text, &keys);
        assert!(
            both.filtered > both.hack.rebuilt * 8 / 10,
            "{filter}: {}",
            both.filtered
        );
        let share = both.hack.rebuilt as f64 / alone.hack.rebuilt as f64;
        assert!((0.98..1.02).contains(&share), "{filter}: {share}");
        assert!((both.mbps / alone.mbps - 1.0).abs() < 0.01, "{filter}");
        assert_eq!(both.timeouts, 0, "{filter}");
    }
}

/// Several flows go up and down. Native acknowledgements wait behind data, the filter drops some,
/// and HACK compresses the rest. Except for chance, both together are no worse than the better one
/// alone.
#[test]
fn several_flows_up_and_down_have_both() {
    if !crate::is_long() {
        return;
    }
    for stations in [1, 4] {
        let text = network(stations, &["from", "to"]);
        let alone = figures(&text, &["wlan.hack=more-data"]);
        for filter in filters() {
            let filter = format!("wlan.ack_filter={filter}");
            let plain = figures(&text, &[&filter]);
            let both = figures(&text, &["wlan.hack=more-data", &filter]);
            assert!(both.filtered > 100, "{filter}: {}", both.filtered);
            assert!(
                both.filtered < plain.filtered / 2,
                "{filter}: {}",
                both.filtered
            );
            assert!(
                both.native_share() < 0.05,
                "{filter}: {}",
                both.native_share()
            );
            assert!(both.mbps > 0.93 * alone.mbps.max(plain.mbps), "{filter}");
        }
    }
}
