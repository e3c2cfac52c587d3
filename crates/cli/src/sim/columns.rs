//! The columns of the Parquet file: the same as the CSV output has, under the same names.

use tack_sim::{FlowReport, Report};

/// How a column is read from a run and one of its flows.
pub(crate) enum Value {
    Text(fn(&Report, &FlowReport) -> Option<String>),
    Integer(fn(&Report, &FlowReport) -> Option<u64>),
    Float(fn(&Report, &FlowReport) -> Option<f64>),
}

use Value::{Float, Integer, Text};

/// All columns, in order.
pub(crate) const COLUMNS: &[(&str, Value)] = &[
    ("name", Text(|run, _| Some(run.name.clone()))),
    ("seed", Integer(|run, _| Some(run.seed))),
    ("virtual_seconds", Float(|run, _| Some(run.virtual_seconds))),
    ("wall_seconds", Float(|run, _| Some(run.wall_seconds))),
    ("events", Integer(|run, _| Some(run.events))),
    ("flow", Integer(|_, flow| Some(flow.id as u64))),
    ("from", Text(|_, flow| Some(flow.from.to_string()))),
    ("to", Text(|_, flow| Some(flow.to.to_string()))),
    (
        "transport",
        Text(|_, flow| Some(flow.transport.to_string())),
    ),
    ("congestion", Text(|_, flow| flow.congestion.clone())),
    ("ack", Text(|_, flow| flow.ack.clone())),
    ("goodput_bps", Float(|_, flow| Some(flow.goodput_bps))),
    (
        "bytes_delivered",
        Integer(|_, flow| Some(flow.bytes_delivered)),
    ),
    ("data_segments", Integer(|_, flow| Some(flow.data_segments))),
    (
        "retransmitted_segments",
        Integer(|_, flow| Some(flow.retransmitted_segments)),
    ),
    (
        "spurious_retransmissions",
        Integer(|_, flow| Some(flow.spurious_retransmissions)),
    ),
    ("acks", Integer(|_, flow| Some(flow.acks))),
    ("acks_tack", Integer(|_, flow| Some(flow.acks_by_kind.tack))),
    (
        "acks_iack_loss",
        Integer(|_, flow| Some(flow.acks_by_kind.iack_loss)),
    ),
    (
        "acks_iack_window",
        Integer(|_, flow| Some(flow.acks_by_kind.iack_window)),
    ),
    (
        "acks_iack_sync",
        Integer(|_, flow| Some(flow.acks_by_kind.iack_sync)),
    ),
    (
        "acks_iack_event",
        Integer(|_, flow| Some(flow.acks_by_kind.iack_event)),
    ),
    (
        "acks_delayed",
        Integer(|_, flow| Some(flow.acks_by_kind.delayed)),
    ),
    ("ack_bytes", Integer(|_, flow| Some(flow.ack_bytes))),
    ("syncs", Integer(|_, flow| Some(flow.syncs))),
    ("tlp_count", Integer(|_, flow| Some(flow.tlp_count))),
    ("rto_count", Integer(|_, flow| Some(flow.rto_count))),
    ("min_rtt_us", Integer(|_, flow| flow.min_rtt_us)),
    ("srtt_us", Integer(|_, flow| flow.srtt_us)),
    ("owd_p50_us", Integer(|_, flow| flow.owd_p50_us)),
    ("owd_p95_us", Integer(|_, flow| flow.owd_p95_us)),
    (
        "blocked_bytes_p50",
        Integer(|_, flow| Some(flow.blocked_bytes_p50)),
    ),
    (
        "blocked_bytes_p99",
        Integer(|_, flow| Some(flow.blocked_bytes_p99)),
    ),
    ("completion_s", Float(|_, flow| flow.completion_s)),
    (
        "limited_by_cwnd",
        Float(|_, flow| Some(flow.limited_by.cwnd)),
    ),
    (
        "limited_by_rwnd",
        Float(|_, flow| Some(flow.limited_by.rwnd)),
    ),
    (
        "limited_by_pacing",
        Float(|_, flow| Some(flow.limited_by.pacing)),
    ),
    ("limited_by_app", Float(|_, flow| Some(flow.limited_by.app))),
];
