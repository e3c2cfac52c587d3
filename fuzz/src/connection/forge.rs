//! Segments that nobody sent, near what a connection expects.

use tack_testkit::Side;
use tack_testkit::hosts::PORT;
use tack_wire::options::MAX_OPTIONS_LEN;
use tack_wire::tack::{
    DataStamp, ListsWriter, LossReport, Report, ReportKind, Sync, TackOption, TackSyn, TimingEcho,
};
use tack_wire::{Flags, Header, SackBlock, TcpOptions, Timestamps};

use super::World;
use super::operation::{Forged, ForgedTack};

impl World {
    pub(super) fn forge(&self, to: Side, forged: &Forged) -> Vec<u8> {
        // What the receiver saw last from the other side, and what it sent last, are where it
        // hurts.
        let (theirs, own) = (&self.seen[to.other() as usize], &self.seen[to as usize]);
        let clock = |header: &Header, offset: i16| {
            header
                .options
                .timestamps
                .map_or(0, |timestamps| timestamps.value)
                .wrapping_add_signed(offset.into())
        };
        let mut options = TcpOptions {
            mss: forged.mss,
            window_scale: forged.window_scale,
            sack_permitted: forged.sack_permitted,
            tack: forged.tack.map(|tack| self.forge_tack(to, tack)),
            timestamps: forged.timestamps.map(|(value, echo)| Timestamps {
                value: clock(theirs, value),
                echo: clock(own, echo),
            }),
            ..TcpOptions::default()
        };
        for &(offset, len) in forged.sack.iter().take(options.sack_capacity()) {
            let start = own.seq + offset as u32;
            options.sack.push(SackBlock {
                start,
                end: start + u32::from(len),
            });
        }
        if options.encoded_len() > MAX_OPTIONS_LEN {
            options = TcpOptions {
                tack: options.tack,
                ..TcpOptions::default()
            };
        }
        let mut payload = vec![0x66; usize::from(forged.len % 2_000)];
        if options.tack.is_some_and(|option| option.has_lists()) {
            payload.resize(payload.len().max(16), 0);
            let mut lists = ListsWriter::new(&mut payload);
            // Small offsets are within what is in flight, and sometimes in order.
            for &(start, len) in &forged.sack {
                let start = u64::from(start.unsigned_abs() % 65_536);
                lists.block(start..start + u64::from(len));
            }
            lists.gap((forged.window % 128).into(), (forged.urgent % 32).into());
            lists.gap((forged.window / 128 % 32).into(), 1);
            let len = lists.finish();
            payload.truncate(len);
        }
        let header = Header {
            src_port: if forged.other_port {
                own.dst_port.wrapping_add(forged.urgent % 8)
            } else {
                own.dst_port
            },
            dst_port: if to == Side::Server {
                PORT
            } else {
                own.src_port
            },
            seq: theirs.seq + forged.seq_offset as u32,
            ack: own.seq + i32::from(forged.ack_offset) as u32,
            flags: Flags(u16::from(forged.flags)),
            window: forged.window,
            urgent: forged.urgent,
            options,
        };
        let mut bytes = vec![0; header.encoded_len()];
        header.emit(&mut bytes);
        bytes.extend_from_slice(&payload);
        bytes
    }

    fn forge_tack(&self, to: Side, forged: ForgedTack) -> TackOption {
        let near = |number: u32, offset: i16| number.wrapping_add_signed(offset.into());
        // Mostly what may be in flight, sometimes just beyond, now and then nonsense.
        let sent = |number: u32, offset: i16| match offset % 16 {
            0 => near(number, offset),
            _ => near(number, 1 - (offset & 63)),
        };
        let (own, theirs) = (self.numbers[to as usize], self.numbers[to.other() as usize]);
        let (loss_rate, largest) = (forged.above as u16, sent(own, forged.largest));
        // What the other side reported last is what a liar has to outdo.
        let report = near(self.reports[to.other() as usize], forged.number);
        match forged.shape % 8 {
            0 => TackOption::Syn(TackSyn {
                segments: forged.lists.into(),
                beta: forged.delay as u8,
            }),
            1 => TackOption::Data(DataStamp {
                number: near(theirs, forged.number),
                departure: forged.delay,
            }),
            2 => TackOption::Sync(Sync {
                startup: forged.timing,
                ack_loss_rate: loss_rate,
                number: forged.above,
                rtt_min: forged.delay,
                rtt: forged.above,
            }),
            3 => TackOption::Loss(LossReport {
                lists: forged.lists,
                loss_rate,
                number: report,
                largest,
                largest_delay: forged.delay,
                above: forged.above,
                before_gap: sent(own, forged.gap.0),
                after_gap: sent(own, forged.gap.1),
            }),
            shape => TackOption::Report(Report {
                kind: match shape {
                    4 => ReportKind::Tack,
                    5 => ReportKind::Window,
                    6 => ReportKind::Event,
                    _ => ReportKind::Frequency,
                },
                lists: forged.lists,
                repeated: forged.lists != forged.timing,
                sync_echo: shape,
                loss_rate,
                number: report,
                largest,
                largest_delay: forged.delay,
                timing: forged.timing.then_some(TimingEcho {
                    departure: sent(self.departures[to as usize], forged.gap.0),
                    delay: forged.delay,
                }),
                rate: forged.rate,
                above: forged.above,
                period: forged.delay,
            }),
        }
    }
}
