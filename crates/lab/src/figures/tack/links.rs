//! The paper's wireless links, and its UDP tool over them.

use crate::figure::Depth;
use crate::point::Cell;
use crate::scenarios::WLAN_UDP;

/// The paper's wireless links, with the goodput of UDP over them, Mbit/s (figure 7).
pub(in crate::figures) const LINKS: [Link; 4] = [
    Link {
        name: "802.11b",
        preset: "tack-b",
        baseline: 7.0,
        exchange_us: 1_320.0,
    },
    Link {
        name: "802.11g",
        preset: "tack-g",
        baseline: 26.0,
        exchange_us: 338.0,
    },
    Link {
        name: "802.11n",
        preset: "tack-n",
        baseline: 210.0,
        exchange_us: 112.0,
    },
    Link {
        name: "802.11ac",
        preset: "tack-ac",
        baseline: 590.0,
        exchange_us: 88.0,
    },
];

/// A wireless link of the paper.
#[derive(Clone, Copy, Debug)]
pub(in crate::figures) struct Link {
    pub(in crate::figures) name: &'static str,
    pub(in crate::figures) preset: &'static str,
    pub(in crate::figures) baseline: f64,
    /// Air that a packet of 1,500 bytes sent alone takes with its link acknowledgement,
    /// microseconds.
    pub(in crate::figures) exchange_us: f64,
}

/// The UDP tool over a link, with an acknowledgement for so many datagrams; 0 is none.
pub(in crate::figures) fn udp_tool(depth: &Depth, link: Link, ack_every: u64) -> Cell {
    let cell = Cell::new(&WLAN_UDP)
        .set(format!("wlan.preset={}", link.preset))
        .set(depth.pick("duration=11s", "duration=41s"));
    if ack_every == 0 {
        cell
    } else {
        cell.set(format!("flow.0.ack_every={ack_every}"))
            .set("flow.0.ack_size=64")
    }
}

/// Datagrams for each acknowledgement when there are as many as TACK sends at 80 ms: equation (3)
/// with the baseline.
pub(in crate::figures) fn as_rare_as_tack(link: Link) -> u64 {
    let datagrams_per_second = link.baseline * 1e6 / 8.0 / 1_472.0;
    ((datagrams_per_second * 0.08 / 4.0).round() as u64).max(2)
}
