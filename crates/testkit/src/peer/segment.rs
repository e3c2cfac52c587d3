//! Segments that left, compared with what was expected, and segments to inject.

use std::fmt::Write as _;
use std::time::Duration;

use tack_wire::{Ecn, Flags, Header, SeqNum};

use crate::script::SegmentSpec;
use crate::trace::Origins;

/// Port of the connection under test.
pub(super) const LOCAL_PORT: u16 = 1000;
/// Port of the peer.
pub(super) const REMOTE_PORT: u16 = 2000;

/// A segment that left.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// When, since the beginning.
    pub at: Duration,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: Vec<u8>,
    /// ECN codepoint of its packet.
    pub ecn: Ecn,
}

/// Where a segment is not as a line has it, one line each; empty when it is.
pub(super) fn difference(
    output: &Output,
    spec: &SegmentSpec,
    at: Duration,
    origins: Origins,
) -> String {
    let mut text = String::new();
    let mut demand = |what: &str, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
        let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
        if found != expected {
            writeln!(text, "    {what}: {found}, expected {expected}")
                .expect("strings take everything");
        }
    };
    let header = &output.header;
    let without_push = |flags: Flags| Flags(flags.0 & !Flags::PSH.0);
    demand("time", &output.at, &at);
    demand(
        "flags",
        &without_push(header.flags),
        &without_push(spec.flags),
    );
    demand("seq", &header.seq.0.wrapping_sub(origins.seq.0), &spec.seq);
    demand("length", &output.payload.len(), &spec.len);
    demand(
        "ports",
        &(header.src_port, header.dst_port),
        &(LOCAL_PORT, REMOTE_PORT),
    );
    if let Some(ack) = spec.ack {
        demand("ack", &header.ack.0.wrapping_sub(origins.ack.0), &ack);
    }
    if let Some(window) = spec.window {
        demand("win", &header.window, &window);
    }
    if let Some(urgent) = spec.urgent {
        demand("urg", &header.urgent, &urgent);
    }
    if let Some(ecn) = spec.ecn {
        demand("ecn", &output.ecn, &ecn);
    }
    if let Some(options) = &spec.options {
        let found = &header.options;
        let closed = !options.open;
        if closed || options.mss.is_some() {
            demand("mss", &found.mss, &options.mss);
        }
        if closed || options.window_scale.is_some() {
            demand("wscale", &found.window_scale, &options.window_scale);
        }
        if closed || options.sack_permitted {
            demand("sackOK", &found.sack_permitted, &options.sack_permitted);
        }
        if closed || !options.sack.is_empty() {
            let relative = |n: SeqNum| n.0.wrapping_sub(origins.ack.0);
            let blocks: Vec<_> = found
                .sack
                .iter()
                .map(|b| (relative(b.start), relative(b.end)))
                .collect();
            demand("sack", &blocks, &options.sack);
        }
        match (found.timestamps, options.timestamps) {
            (Some(found), Some((value, echo))) => {
                demand("TS val", &found.value, &value.unwrap_or(found.value));
                demand("TS ecr", &found.echo, &echo.unwrap_or(found.echo));
            }
            (found, expected) if closed || expected.is_some() => {
                demand("TS", &found.is_some(), &expected.is_some());
            }
            _ => {}
        }
    }
    text
}

/// The bytes of a segment; `unknown` is put in front of the options as it is, padded to words.
pub(super) fn encode(header: &Header, unknown: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header.encoded_len()];
    header.emit(&mut bytes);
    let mut unknown = unknown.to_vec();
    unknown.resize(unknown.len().next_multiple_of(4), 1);
    bytes.splice(20..20, unknown);
    assert!(bytes.len() <= 60, "40 bytes of options at most");
    bytes[12] = ((bytes.len() / 4) as u8) << 4 | (bytes[12] & 0x0f);
    bytes.extend_from_slice(payload);
    bytes
}
