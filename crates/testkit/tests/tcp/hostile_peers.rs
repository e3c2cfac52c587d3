//! Random reports, data and losses near the truth, from a peer that wishes us ill: invariants hold
//! after each.

use proptest::prelude::*;

use tack_tcp::{Algorithm, Config};
use tack_testkit::peer::Output;
use tack_wire::Flags;
use tack_wire::tack::{ListsWriter, LossReport, Report, ReportKind, TackOption};

use crate::tack_peer::{TackPeer, echo, tack};

/// One thing that a hostile peer sends.
#[derive(Clone, Debug)]
enum Hostile {
    Report {
        kind: u8,
        ack: i16,
        largest: i16,
        number: i8,
        delays: (u32, u32),
        echo: Option<i16>,
        rate: Option<u64>,
        period: u32,
        window: u16,
        blocks: Vec<(u16, u16)>,
        gaps: Vec<(u8, u8)>,
        cut: u8,
    },
    Loss {
        ack: i16,
        largest: i16,
        number: i8,
        gap: (i16, i16),
    },
    Sync {
        rtt_min: u32,
        loss: u16,
        skip: i8,
    },
    Data {
        at: i16,
        len: u8,
        number: i32,
        fin: bool,
    },
    Plain {
        ack: i16,
        window: u16,
    },
    Write(u16),
    Wait(u16),
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let report = (
        (any::<u8>(), -3000_i16..3000, -30_i16..3, -2_i8..4),
        (
            any::<(u32, u32)>(),
            any::<Option<i16>>(),
            any::<Option<u64>>(),
        ),
        (any::<u32>(), any::<u16>(), 0_u8..40),
        proptest::collection::vec((0_u16..6000, 1_u16..3000), 0..6),
        proptest::collection::vec((1_u8..40, 1_u8..6), 0..4),
    )
        .prop_map(
            |(
                (kind, ack, largest, number),
                (delays, echo, rate),
                (period, window, cut),
                blocks,
                gaps,
            )| {
                Hostile::Report {
                    kind,
                    ack,
                    largest,
                    number,
                    delays,
                    echo,
                    rate,
                    period,
                    window,
                    blocks,
                    gaps,
                    cut,
                }
            },
        );
    prop_oneof![
        4 => report,
        1 => (-3000_i16..3000, -30_i16..3, -2_i8..4, (-30_i16..3, -30_i16..3))
            .prop_map(|(ack, largest, number, gap)| Hostile::Loss { ack, largest, number, gap }),
        1 => any::<(u32, u16, i8)>().prop_map(|(rtt_min, loss, skip)| Hostile::Sync { rtt_min, loss, skip }),
        2 => (-50_i16..300, any::<u8>(), prop_oneof![3 => -20_i32..20, 1 => any::<i32>()], any::<bool>())
            .prop_map(|(at, len, number, fin)| Hostile::Data { at, len, number, fin: fin && len > 250 }),
        1 => (-3000_i16..3000, any::<u16>()).prop_map(|(ack, window)| Hostile::Plain { ack, window }),
        1 => (1_u16..20_000).prop_map(Hostile::Write),
        2 => (0_u16..3000).prop_map(Hostile::Wait),
    ]
}

/// Where the connection stands, as its peer sees it.
#[derive(Debug, Default)]
struct Track {
    acked: u32,
    largest: u32,
    departure: u32,
    received: u32,
}

fn perform(peer: &mut TackPeer, track: &mut Track, act: &Hostile) {
    match act {
        Hostile::Report {
            kind,
            ack,
            largest,
            number,
            delays,
            echo: echoed,
            rate,
            period,
            window,
            blocks,
            gaps,
            cut,
        } => {
            let mut out = vec![0; 200];
            let mut writer = ListsWriter::new(&mut out);
            for &(start, len) in blocks {
                writer.block(u64::from(start)..u64::from(start) + u64::from(len));
            }
            for &(distance, count) in gaps {
                writer.gap(distance.into(), count.into());
            }
            let len = writer.finish();
            out.truncate(len.saturating_sub(usize::from(cut / 20)));
            let report = Report {
                kind: [
                    ReportKind::Tack,
                    ReportKind::Window,
                    ReportKind::Event,
                    ReportKind::Frequency,
                ][usize::from(kind % 4)],
                lists: !out.is_empty() ^ (*cut == 7),
                number: peer.number.wrapping_add_signed((*number).into()),
                largest_delay: delays.0,
                timing: echoed.and_then(|off| {
                    echo(track.departure.wrapping_add_signed(off.into()), delays.1)
                }),
                rate: *rate,
                period: *period,
                ..peer.report(track.largest.wrapping_add_signed((*largest).into()))
            };
            let ack = track.acked.wrapping_add_signed((*ack).into());
            let mut header = peer.header(
                track.received.wrapping_sub(out.len() as u32),
                ack,
                Flags::ACK,
                Some(TackOption::Report(report)),
            );
            header.window = *window;
            peer.send(&header, &out);
            peer.number = peer.number.max(report.number.wrapping_add(1));
        }
        Hostile::Loss {
            ack,
            largest,
            number,
            gap,
        } => {
            let near = |off: i16| track.largest.wrapping_add_signed(off.into());
            let loss = LossReport {
                lists: false,
                loss_rate: 0,
                number: peer.number.wrapping_add_signed((*number).into()),
                largest: near(*largest),
                largest_delay: 0,
                above: 0,
                before_gap: near(gap.0),
                after_gap: near(gap.1),
            };
            peer.send_loss(track.acked.wrapping_add_signed((*ack).into()), loss, &[]);
        }
        Hostile::Sync {
            rtt_min,
            loss,
            skip,
        } => {
            peer.sync = peer.sync.wrapping_add_signed((*skip).into());
            if peer.sync == u32::MAX {
                peer.sync = 0;
            }
            peer.send_sync(track.acked, *rtt_min, *loss);
        }
        Hostile::Data {
            at,
            len,
            number,
            fin,
        } => {
            let position = track.received.wrapping_add_signed((*at).into()).max(1);
            let number = peer.next_data.wrapping_add_signed(*number);
            if *fin {
                let stamp = TackOption::Data(tack_wire::tack::DataStamp {
                    number,
                    departure: 0,
                });
                let header = peer.header(
                    position,
                    track.acked,
                    Flags::ACK.with(Flags::FIN),
                    Some(stamp),
                );
                peer.send(&header, &[]);
            } else {
                peer.send_data(position, usize::from(*len), number);
            }
        }
        Hostile::Plain { ack, window } => {
            let ack = track.acked.wrapping_add_signed((*ack).into());
            let mut header = peer.header(track.received, ack, Flags::ACK, None);
            header.window = *window;
            peer.send(&header, &[]);
        }
        Hostile::Write(len) => {
            for output in peer.write(usize::from(*len)) {
                track.see(&output);
            }
        }
        Hostile::Wait(micros) => peer
            .peer
            .wait(std::time::Duration::from_micros(u64::from(*micros) * 10)),
    }
}

impl Track {
    /// Something left; true when it is an acknowledgement and nothing else.
    fn see(&mut self, output: &Output) -> bool {
        match output.header.options.tack {
            Some(TackOption::Data(stamp)) => {
                (self.largest, self.departure) = (stamp.number, stamp.departure);
                false
            }
            Some(TackOption::Sync(_)) => false,
            Some(TackOption::Report(_) | TackOption::Loss(_)) => true,
            // After a fallback data has no stamp.
            _ => output.payload.is_empty() && !output.header.flags.fin(),
        }
    }
}

proptest! {
    /// Anything near the truth, in any order: invariants hold after each segment (the peer checks
    /// them), one segment draws one acknowledgement at most, and whatever leaves is the stream that
    /// was written.
    #[test]
    fn hostile_peers(acts in proptest::collection::vec(hostile(), 1..120), choice in 0..Algorithm::ALL.len()) {
        let mut peer = TackPeer::new(Config { congestion: Algorithm::ALL[choice], ..tack() });
        let mut track = Track { acked: 1, received: 1, ..Track::default() };
        for output in peer.write(20_000) {
            track.see(&output);
        }
        for act in &acts {
            perform(&mut peer, &mut track, act);
            let mut answers = 0;
            for output in peer.peer.take_output() {
                answers += u32::from(track.see(&output));
            }
            if !matches!(act, Hostile::Wait(_)) {
                prop_assert!(answers <= 1, "{answers} acknowledgements after {act:?}");
            }
            track.acked = 1 + peer.stats().bytes_acked as u32;
            let mut buf = [0; 4096];
            if let Ok(len) = peer.peer.with(|connection, now| connection.read(now, &mut buf)) {
                track.received += len as u32;
            }
            peer.peer.take_output();
        }
    }
}
