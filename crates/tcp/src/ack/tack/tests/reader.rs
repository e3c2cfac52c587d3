//! What the sender believes of reports, and what it learns from those that get lost.

use tack_wire::options::TcpOptions;
use tack_wire::tack::{Report, ReportKind};
use tack_wire::{Flags, Header, Segment, SeqNum};

use super::*;
use crate::ack::feedback::{AckInfo, FeedbackReader, InvalidFeedback, ReadContext, SenderState};
use crate::cc::SendToken;
use crate::send::sent::{FlightStart, SentLog};

/// A sender with ten segments in flight and its reader.
pub(super) struct Sender {
    log: SentLog,
    pub(super) reader: TackReader,
}

impl Sender {
    pub(super) fn new() -> Self {
        let mut log = SentLog::new();
        for segment in 0..10 {
            log.push(
                StreamOffset::range(1 + segment * MSS..1 + (segment + 1) * MSS),
                at(segment),
                FlightStart::default(),
                SendToken::default(),
            );
        }
        let mut reader = TackReader::new(
            TackSyn {
                segments: 2,
                beta: 4,
            },
            true,
        );
        reader.poll_sync(&SenderState {
            now: at(0),
            min_rtt: RTT,
            smoothed_rtt: RTT,
            round_trip: RTT,
            newest: Some(RTT),
            startup: false,
        });
        Self { log, reader }
    }

    /// Reads a report of everything up to and including transmission `largest`.
    fn read(
        &mut self,
        number: u32,
        largest: u32,
        above: u32,
    ) -> Result<Option<u64>, InvalidFeedback> {
        let options = TcpOptions {
            tack: Some(TackOption::Report(Report {
                kind: ReportKind::Tack,
                lists: false,
                repeated: false,
                sync_echo: 1,
                loss_rate: 0,
                number,
                largest,
                largest_delay: 0,
                timing: None,
                rate: None,
                above,
                period: 10_000,
            })),
            ..TcpOptions::default()
        };
        let segment = Segment {
            header: Header {
                src_port: 1,
                dst_port: 2,
                seq: SeqNum(0),
                ack: SeqNum(0),
                flags: Flags::ACK,
                window: 1_000,
                urgent: 0,
                options,
            },
            payload: &[],
        };
        let context = ReadContext {
            arrived: at(50),
            ack: StreamOffset(1),
            snd_una: StreamOffset(1),
            snd_nxt: StreamOffset(1 + 10 * MSS),
            iss: SeqNum(0),
            largest_window: 1 << 20,
            mss: MSS,
            smoothed_rtt: Duration::from_millis(10),
            log: &self.log,
        };
        let mut news = AckInfo::default();
        self.reader.read(&context, &segment, &[], &mut news)?;
        Ok(news.above)
    }
}

#[test]
fn what_cannot_have_arrived_is_refused() {
    let mut sender = Sender::new();
    assert_eq!(sender.read(0, 9, 10 * MSS as u32), Ok(Some(10 * MSS)));
    assert_eq!(sender.read(1, 9, 10 * MSS as u32 + 1), Err(InvalidFeedback));
    assert_eq!(sender.read(1, 10, 0), Err(InvalidFeedback));
    // What was refused moved nothing, and what comes again moves nothing.
    assert_eq!(sender.read(0, 9, 0), Ok(None));
    assert_eq!(sender.read(1, 9, 0), Ok(Some(0)));
}

#[test]
fn lost_reports_make_the_gap_between_those_that_arrive() {
    let mut sender = Sender::new();
    for number in 0..100 {
        sender.read(number, 9, 0).expect("it is sound");
    }
    let interval = RTT / 4;
    assert_eq!(sender.reader.contract().interval, interval);
    assert_eq!(sender.reader.contract().gap, interval);
    for number in 50..150 {
        sender.read(2 * number, 9, 0).expect("it is sound");
    }
    // A third to a half lost: two to three and a half intervals until one arrives nine times of
    // ten.
    let gap = sender.reader.contract().gap;
    assert_eq!(sender.reader.contract().interval, interval);
    assert!(gap >= interval * 2 && gap <= interval * 7 / 2, "{gap:?}");
}
