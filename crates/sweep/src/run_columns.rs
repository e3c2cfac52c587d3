//! What a row says of a run: totals, the wireless network, and each flow.

use serde_json::Value;
use tack_sim::Report;

use crate::parquet_file::{Column, Kind};
use crate::table::Cell;

use Kind::{Float, Integer, Text};

/// Most flows that have columns of their own; the totals are of all.
pub const MOST_FLOWS: usize = 16;

/// Of the whole run.
const RUN: [(&str, Kind); 9] = [
    ("virtual_seconds", Float),
    ("events", Integer),
    ("owd_p95_us", Integer),
    ("wired.forward.queue_drops", Integer),
    ("wired.forward.lost", Integer),
    ("wired.reverse.queue_drops", Integer),
    ("wired.reverse.lost", Integer),
    ("wired.checksum_drops", Integer),
    ("trace_hash", Text),
];

/// Sums over all flows.
const TOTALS: [(&str, Kind); 10] = [
    ("goodput_bps", Float),
    ("bytes_delivered", Integer),
    ("data_segments", Integer),
    ("retransmitted_segments", Integer),
    ("spurious_retransmissions", Integer),
    ("acks", Integer),
    ("ack_bytes", Integer),
    ("tlp_count", Integer),
    ("rto_count", Integer),
    ("stalls", Integer),
];

/// Of the wireless network.
const WLAN: [(&str, Kind); 20] = [
    ("wlan.ppdus", Integer),
    ("wlan.collisions", Integer),
    ("wlan.collision_probability", Float),
    ("wlan.access_collision_probability", Float),
    ("wlan.unanswered_probability", Float),
    ("wlan.airtime.data", Float),
    ("wlan.airtime.tcp_ack", Float),
    ("wlan.airtime.control", Float),
    ("wlan.airtime.collision", Float),
    ("wlan.airtime.access", Float),
    ("wlan.airtime.idle", Float),
    ("wlan.airtime.neighbour", Float),
    ("wlan.ap_queue_p50", Integer),
    ("wlan.ap_queue_max", Integer),
    ("wlan.queue_drops", Integer),
    ("wlan.retries", Integer),
    ("wlan.retry_drops", Integer),
    ("wlan.mpdus_per_ppdu", Float),
    ("wlan.acks_filtered", Integer),
    ("wlan.acks_in_link_acks", Integer),
];

/// Of a flow, after `flows.NUMBER.`.
const FLOW: [(&str, Kind); 46] = [
    ("from", Text),
    ("to", Text),
    ("transport", Text),
    ("congestion", Text),
    ("ack", Text),
    ("goodput_bps", Float),
    ("bytes_delivered", Integer),
    ("data_segments", Integer),
    ("retransmitted_segments", Integer),
    ("spurious_retransmissions", Integer),
    ("acks", Integer),
    ("acks_by_kind.tack", Integer),
    ("acks_by_kind.iack_loss", Integer),
    ("acks_by_kind.iack_window", Integer),
    ("acks_by_kind.iack_sync", Integer),
    ("acks_by_kind.iack_event", Integer),
    ("acks_by_kind.delayed", Integer),
    ("acks_by_timer", Integer),
    ("invalid_reports", Integer),
    ("ack_bytes", Integer),
    ("syncs", Integer),
    ("tlp_count", Integer),
    ("rto_count", Integer),
    ("min_rtt_us", Integer),
    ("srtt_us", Integer),
    ("owd_p50_us", Integer),
    ("owd_p95_us", Integer),
    ("blocked_bytes_p50", Integer),
    ("blocked_bytes_p99", Integer),
    ("completion_s", Float),
    ("limited_by.cwnd", Float),
    ("limited_by.rwnd", Float),
    ("limited_by.pacing", Float),
    ("limited_by.app", Float),
    ("stalls", Integer),
    ("no_progress_max_s", Float),
    ("requests.completed", Integer),
    ("requests.latency_p50_us", Integer),
    ("requests.latency_p95_us", Integer),
    ("requests.latency_p99_us", Integer),
    ("requests.latency_max_us", Integer),
    ("video.frames", Integer),
    ("video.frames_late", Integer),
    ("video.startup_s", Float),
    ("video.rebufferings", Integer),
    ("video.rebuffering_share", Float),
];

/// What runs of a plan may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Extent {
    /// Flows with columns of their own.
    pub(crate) flows: usize,
    /// Whether a run has a wireless network.
    pub(crate) wlan: bool,
}

impl Extent {
    /// The columns, in order.
    pub(crate) fn columns(self) -> Vec<Column> {
        let named = |(name, kind): &(&'static str, Kind)| Column::optional(name, *kind);
        let mut columns = vec![Column::optional("flows", Integer)];
        columns.push(Column::optional("fairness", Float));
        columns.extend(TOTALS.iter().map(named));
        columns.extend(RUN.iter().map(named));
        if self.wlan {
            columns.extend(WLAN.iter().map(named));
        }
        for flow in 0..self.flows {
            columns.extend(
                FLOW.iter()
                    .map(|(name, kind)| Column::named(format!("flows.{flow}.{name}"), *kind)),
            );
        }
        columns
    }

    /// The cells of these columns for one run.
    pub(crate) fn cells(self, report: &Report) -> Vec<Cell> {
        let value = serde_json::to_value(report).unwrap_or_default();
        let flows = value["flows"].as_array().map_or(&[][..], Vec::as_slice);
        let mut cells = vec![
            Cell::Integer(flows.len() as i64),
            Cell::finite(report.fairness()),
        ];
        for (name, kind) in TOTALS {
            let each = flows.iter().map(|flow| cell(flow, name, kind));
            cells.push(match kind {
                Integer => Cell::Integer(
                    each.map(|cell| match cell {
                        Cell::Integer(number) => number,
                        _ => 0,
                    })
                    .sum(),
                ),
                _ => Cell::finite(each.filter_map(|cell| cell.number()).sum()),
            });
        }
        cells.extend(RUN.iter().map(|(name, kind)| cell(&value, name, *kind)));
        if self.wlan {
            cells.extend(WLAN.iter().map(|(name, kind)| cell(&value, name, *kind)));
        }
        for flow in 0..self.flows {
            let flow = flows.get(flow).unwrap_or(&Value::Null);
            cells.extend(FLOW.iter().map(|(name, kind)| cell(flow, name, *kind)));
        }
        cells
    }
}

/// What stands in `value` under a dotted name.
fn cell(value: &Value, name: &str, kind: Kind) -> Cell {
    let found = name.split('.').fold(value, |value, part| &value[part]);
    match kind {
        Text => found
            .as_str()
            .map_or(Cell::Null, |text| Cell::Text(text.into())),
        Integer => found.as_i64().map_or(Cell::Null, Cell::Integer),
        Float => found.as_f64().map_or(Cell::Null, Cell::finite),
    }
}

#[cfg(test)]
mod tests {
    use tack_sim::{Observers, Scenario, run};

    use super::*;

    /// Columns that only some runs have.
    fn is_optional(name: &str) -> bool {
        ["requests.", "video.", "completion_s", "_us", "rebuffering"]
            .iter()
            .any(|part| name.contains(part))
    }

    #[test]
    fn every_column_is_in_a_report() {
        let text = "
            duration = '300ms'
            [wlan]
            [[flow]]
            ack = 'tack'
            bytes = '10kB'
            [[flow]]
            app = 'request:1KiB,10KiB'
            [[flow]]
            app = 'video'
        ";
        let scenario = Scenario::from_toml("test.toml", text, &[]).unwrap();
        let report = run(&scenario, 1, &mut Observers::default()).unwrap();
        let extent = Extent {
            flows: 3,
            wlan: true,
        };
        let (columns, cells) = (extent.columns(), extent.cells(&report));
        assert_eq!(columns.len(), cells.len());
        for (column, cell) in columns.iter().zip(&cells) {
            assert!(
                *cell != Cell::Null || is_optional(&column.name),
                "{} is in no report",
                column.name
            );
        }
        // What is optional is in the report of the flow that has it.
        for (flow, name) in [
            (0, "completion_s"),
            (0, "srtt_us"),
            (1, "requests.latency_p95_us"),
            (2, "video.startup_s"),
            (2, "video.rebuffering_share"),
        ] {
            let name = format!("flows.{flow}.{name}");
            let at = columns.iter().position(|column| column.name == name);
            assert_ne!(cells[at.unwrap()], Cell::Null, "{name}");
        }
        let mut names: Vec<_> = columns.iter().map(|column| &column.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), columns.len());
    }
}
