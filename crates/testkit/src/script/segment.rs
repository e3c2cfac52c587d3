//! A segment of a script as packets have it: the header that it stands for, and where another one
//! differs.

use std::fmt::Write as _;

use tack_wire::{Ecn, Flags, Header, SackBlock, SeqNum, TcpOptions, Timestamps};

use super::{OptionsSpec, SegmentSpec};
use crate::trace::Origins;

impl SegmentSpec {
    /// The header, between `ports` (source, destination). `clock` is what the timestamps say that
    /// the line leaves out; a line without options has them where `stamps` is set.
    pub fn header(
        &self,
        ports: (u16, u16),
        origins: Origins,
        clock: Timestamps,
        stamps: bool,
    ) -> Header {
        let options = match &self.options {
            Some(options) => options.options(origins.ack, clock),
            None => TcpOptions {
                timestamps: stamps.then_some(clock),
                ..TcpOptions::default()
            },
        };
        Header {
            src_port: ports.0,
            dst_port: ports.1,
            seq: origins.seq + self.seq,
            ack: self.ack.map_or(SeqNum(0), |ack| origins.ack + ack),
            flags: self.flags,
            window: self.window.unwrap_or(u16::MAX),
            urgent: self.urgent.unwrap_or(0),
            options,
        }
    }

    /// Where a segment of so many bytes is not as the line has it, one line each; empty when it
    /// is. PSH is not compared. The sender shifts its window by `shift`.
    pub fn difference(
        &self,
        header: &Header,
        len: usize,
        ecn: Ecn,
        origins: Origins,
        shift: u8,
    ) -> String {
        let mut text = String::new();
        let mut demand =
            |what: &str, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
                let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
                if found != expected {
                    writeln!(text, "    {what}: {found}, expected {expected}")
                        .expect("strings take everything");
                }
            };
        let without_push = |flags: Flags| Flags(flags.0 & !Flags::PSH.0);
        demand(
            "flags",
            &without_push(header.flags),
            &without_push(self.flags),
        );
        demand("seq", &header.seq.0.wrapping_sub(origins.seq.0), &self.seq);
        demand("length", &len, &self.len);
        if let Some(ack) = self.ack {
            demand("ack", &header.ack.0.wrapping_sub(origins.ack.0), &ack);
        }
        if let Some(window) = self.window {
            demand("win", &header.window, &window);
        }
        if let Some(range) = &self.receive_window {
            let window = scaled_window(header, shift);
            demand(
                "rcv_wnd",
                &window,
                &window.clamp(*range.start(), *range.end()),
            );
        }
        if let Some(urgent) = self.urgent {
            demand("urg", &header.urgent, &urgent);
        }
        if let Some(expected) = self.ecn {
            demand("ecn", &ecn, &expected);
        }
        let Some(options) = &self.options else {
            return text;
        };
        let found = &header.options;
        let closed = !options.open;
        if closed || options.mss.is_some() {
            demand("mss", &found.mss, &options.mss);
        }
        match (found.window_scale, options.window_scale) {
            (Some(_), Some(None)) => {}
            (found, expected) if closed || expected.is_some() => {
                demand("wscale", &found.map(Some), &expected);
            }
            _ => {}
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
        text
    }
}

/// The bytes that a window field stands for where its sender shifts by `shift`: one of a SYN is not
/// scaled (RFC 7323 §2.2).
pub fn scaled_window(header: &Header, shift: u8) -> u32 {
    let shift = if header.flags.syn() { 0 } else { shift };
    u32::from(header.window) << shift
}

impl OptionsSpec {
    /// The options that are known. SACK blocks count from `receiver`, the initial sequence number
    /// of who gets them.
    fn options(&self, receiver: SeqNum, clock: Timestamps) -> TcpOptions {
        let mut options = TcpOptions {
            mss: self.mss,
            window_scale: self.window_scale.flatten(),
            sack_permitted: self.sack_permitted,
            timestamps: self.timestamps.map(|(value, echo)| Timestamps {
                value: value.unwrap_or(clock.value),
                echo: echo.unwrap_or(clock.echo),
            }),
            ..TcpOptions::default()
        };
        for (start, end) in &self.sack {
            options.sack.push(SackBlock {
                start: receiver + *start,
                end: receiver + *end,
            });
        }
        options
    }
}
