//! The figures of the TCP/HACK paper (ATC 2014).

pub(super) mod cross_validation;
pub(super) mod fig10_downloads;
pub(super) mod fig11_12_noise;
pub(super) mod fig1_analytic;
pub(super) mod fig9_goodput;
mod prototype;
pub(super) mod table1_first_attempts;
pub(super) mod table2_3_transfer;

use crate::measure::Values;
use crate::point::Cell;
use crate::scenarios::HACK_CLIENTS;

/// Packets in the access point's queue for each client: three batches of 42, and one on the air.
const QUEUE: usize = 168;

/// So many clients of 802.11n that download.
fn clients(count: usize, is_tcp: bool) -> Cell {
    let cell = Cell::new(&HACK_CLIENTS)
        .set(format!("wlan.stations={count}"))
        .set(format!("wlan.ap_queue={}p", QUEUE * count));
    if is_tcp {
        cell.set("flow.0.congestion=new_reno")
            .set("flow.0.ack=delayed:2")
    } else {
        cell
    }
}

/// Goodput of all flows, Mbit/s.
fn total(values: &Values, flows: usize) -> f64 {
    (0..flows)
        .map(|flow| values.get(&format!("flows.{flow}.goodput_bps")) / 1e6)
        .sum()
}

/// Failed CRCs, contexts that were missing, and rebuilt acknowledgements that differ.
fn mistaken(values: &Values) -> f64 {
    values.get("wlan.hack.crc_failures")
        + values.get("wlan.hack.decode_failures")
        + values.get("wlan.hack.differing")
}
