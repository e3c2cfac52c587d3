//! The option's bytes: read and written.

use super::{
    DATA_LEN, DataStamp, EXPERIMENT_ID, LOSS_LEN, LossReport, OPTION_KIND, REPORT_LEN, Report,
    ReportKind, SYN_LEN, SYNC_LEN, Sync, TackOption, TackSyn, TimingEcho, VERSION,
};

const TYPE_LOSS: u8 = 8;
const TYPE_SYNC: u8 = 9;

const FLAG_LISTS: u8 = 1;
const FLAG_TIMING: u8 = 2;
const FLAG_RATE: u8 = 4;
const FLAG_REPEATED: u8 = 8;
const FLAG_STARTUP: u8 = 1;

/// Unit of the delivery rate on the wire, bytes per second.
pub(super) const RATE_UNIT: u64 = 16;

impl TackOption {
    /// Reads the body of an option of kind 253 (what follows kind and length); `None` when it is
    /// another experiment, another version, or of no known shape.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let (id, body) = body.split_first_chunk::<2>()?;
        if u16::from_be_bytes(*id) != EXPERIMENT_ID {
            return None;
        }
        match body.len() + 4 {
            SYN_LEN if body[0] == VERSION && body[1] > 0 && body[2] > 1 => {
                Some(Self::Syn(TackSyn {
                    segments: body[1],
                    beta: body[2],
                }))
            }
            DATA_LEN => Some(Self::Data(DataStamp {
                number: word(body, 0),
                departure: word(body, 4),
            })),
            SYNC_LEN if body[0] == TYPE_SYNC => Some(Self::Sync(Sync {
                startup: body[1] & FLAG_STARTUP != 0,
                ack_loss_rate: half(body, 2),
                number: word(body, 4),
                rtt_min: word(body, 8),
                rtt: word(body, 12),
            })),
            LOSS_LEN if body[0] == TYPE_LOSS => Some(Self::Loss(LossReport {
                lists: body[1] & FLAG_LISTS != 0,
                loss_rate: half(body, 2),
                number: word(body, 4),
                largest: word(body, 8),
                largest_delay: word(body, 12),
                above: word(body, 16),
                before_gap: word(body, 20),
                after_gap: word(body, 24),
            })),
            REPORT_LEN => {
                let kind = match body[0] {
                    0 => ReportKind::Tack,
                    1 => ReportKind::Window,
                    2 => ReportKind::Event,
                    3 => ReportKind::Frequency,
                    _ => return None,
                };
                Some(Self::Report(Report {
                    kind,
                    lists: body[1] & FLAG_LISTS != 0,
                    repeated: body[1] & FLAG_REPEATED != 0,
                    sync_echo: body[1] >> 4,
                    loss_rate: half(body, 2),
                    number: word(body, 4),
                    largest: word(body, 8),
                    largest_delay: word(body, 12),
                    timing: (body[1] & FLAG_TIMING != 0).then(|| TimingEcho {
                        departure: word(body, 16),
                        delay: word(body, 20),
                    }),
                    rate: (body[1] & FLAG_RATE != 0).then(|| u64::from(word(body, 24)) * RATE_UNIT),
                    above: word(body, 28),
                    period: word(body, 32),
                }))
            }
            _ => None,
        }
    }

    /// Writes the option, kind and length included, to the start of `out`; returns
    /// [`TackOption::len`].
    ///
    /// # Panics
    /// When `out` is shorter than that.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let len = self.len();
        let out = &mut out[..len];
        out.fill(0);
        out[0] = OPTION_KIND;
        out[1] = len as u8;
        out[2..4].copy_from_slice(&EXPERIMENT_ID.to_be_bytes());
        let body = &mut out[4..];
        let put = |body: &mut [u8], at: usize, value: u32| {
            body[at..at + 4].copy_from_slice(&value.to_be_bytes())
        };
        match self {
            Self::Syn(syn) => body.copy_from_slice(&[VERSION, syn.segments, syn.beta]),
            Self::Data(stamp) => {
                put(body, 0, stamp.number);
                put(body, 4, stamp.departure);
            }
            Self::Sync(sync) => {
                body[0] = TYPE_SYNC;
                body[1] = if sync.startup { FLAG_STARTUP } else { 0 };
                body[2..4].copy_from_slice(&sync.ack_loss_rate.to_be_bytes());
                put(body, 4, sync.number);
                put(body, 8, sync.rtt_min);
                put(body, 12, sync.rtt);
            }
            Self::Loss(report) => {
                body[0] = TYPE_LOSS;
                body[1] = if report.lists { FLAG_LISTS } else { 0 };
                body[2..4].copy_from_slice(&report.loss_rate.to_be_bytes());
                let words = [
                    report.number,
                    report.largest,
                    report.largest_delay,
                    report.above,
                    report.before_gap,
                    report.after_gap,
                ];
                for (index, value) in words.into_iter().enumerate() {
                    put(body, 4 + 4 * index, value);
                }
            }
            Self::Report(report) => {
                let timing = report.timing.unwrap_or(TimingEcho {
                    departure: 0,
                    delay: 0,
                });
                let rate = report
                    .rate
                    .map(|rate| u32::try_from(rate / RATE_UNIT).unwrap_or(u32::MAX));
                body[0] = report.kind as u8;
                body[1] = if report.lists { FLAG_LISTS } else { 0 }
                    | if report.timing.is_some() {
                        FLAG_TIMING
                    } else {
                        0
                    }
                    | if rate.is_some() { FLAG_RATE } else { 0 }
                    | if report.repeated { FLAG_REPEATED } else { 0 }
                    | report.sync_echo << 4;
                body[2..4].copy_from_slice(&report.loss_rate.to_be_bytes());
                let words = [
                    report.number,
                    report.largest,
                    report.largest_delay,
                    timing.departure,
                    timing.delay,
                    rate.unwrap_or(0),
                    report.above,
                    report.period,
                ];
                for (index, value) in words.into_iter().enumerate() {
                    put(body, 4 + 4 * index, value);
                }
            }
        }
        len
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
