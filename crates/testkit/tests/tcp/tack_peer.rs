//! A peer by hand that speaks TACK, or pretends to.

use tack_tcp::{AckKind, Config, Stats};
use tack_testkit::peer::Output;
use tack_testkit::{Peer, pattern};
use tack_wire::options::TcpOptions;
use tack_wire::tack::{
    DataStamp, LossReport, Report, ReportKind, Sync, TackOption, TackSyn, TimingEcho,
};
use tack_wire::{Ecn, Flags, Header, SeqNum};

use crate::settings::{ms, unpaced};

/// Initial sequence numbers of the connection and of the peer.
const ISS: SeqNum = SeqNum(1_000_000);
const PEER_ISS: SeqNum = SeqNum(2_000_000);
/// Round trip of the handshake.
pub(crate) const RTT_MS: u64 = 40;

/// An established connection with TACK on, and its peer.
#[derive(Debug)]
pub(crate) struct TackPeer {
    pub(crate) peer: Peer,
    /// The third segment of the handshake.
    pub(crate) answer: Option<Output>,
    /// Number of the next report.
    pub(crate) number: u32,
    /// PKT.SEQ of the next data segment of the peer.
    pub(crate) next_data: u32,
    /// Number of the next sync.
    pub(crate) sync: u32,
    /// Bytes that the connection's application has written.
    written: u64,
}

/// Windows alone decide what leaves, and TACK is wanted.
pub(crate) fn tack() -> Config {
    Config {
        ack: "tack".parse().expect("a policy"),
        ecn: false,
        ..unpaced()
    }
}

impl TackPeer {
    /// The connection opened, and the peer agreed on TACK.
    pub(crate) fn new(config: Config) -> Self {
        Self::answering(config, true)
    }

    /// The connection opened; the peer agrees on TACK or does not.
    pub(crate) fn answering(config: Config, agrees: bool) -> Self {
        assert!(matches!(config.ack, AckKind::Tack(_)));
        let mut this = Self {
            peer: Peer::connecting_with(config, ISS, PEER_ISS),
            answer: None,
            number: 0,
            next_data: 0,
            sync: 1,
            written: 0,
        };
        let syn = this.peer.take_output();
        assert!(
            matches!(syn[0].header.options.tack, Some(TackOption::Syn(_))),
            "the SYN offers"
        );
        this.peer.wait(ms(RTT_MS));
        let mut flags = Flags::SYN.with(Flags::ACK);
        if syn[0].header.flags.contains(Flags::ECE) {
            flags = flags.with(Flags::ECE);
        }
        let mut header = this.header(0, 1, flags, None);
        header.options = TcpOptions {
            mss: Some(1460),
            sack_permitted: true,
            tack: agrees.then_some(TackOption::Syn(TackSyn {
                segments: 2,
                beta: 4,
            })),
            ..TcpOptions::default()
        };
        this.send(&header, &[]);
        let answer = this.peer.take_output();
        assert_eq!(answer.len(), 1, "the ACK of the SYN-ACK");
        assert_eq!(answer[0].header.options.tack.is_some(), agrees);
        this.answer = Some(answer[0].clone());
        this
    }

    /// A header from the peer; `seq` and `ack` are stream positions.
    pub(crate) fn header(
        &self,
        seq: u32,
        ack: u32,
        flags: Flags,
        tack: Option<TackOption>,
    ) -> Header {
        Header {
            src_port: 2000,
            dst_port: 1000,
            seq: PEER_ISS + seq,
            ack: ISS + ack,
            flags,
            window: u16::MAX,
            urgent: 0,
            options: TcpOptions {
                tack,
                ..TcpOptions::default()
            },
        }
    }

    /// Lets the segment arrive.
    pub(crate) fn send(&mut self, header: &Header, payload: &[u8]) {
        self.send_marked(header, payload, Ecn::NotEct);
    }

    /// Lets the segment arrive with this mark.
    pub(crate) fn send_marked(&mut self, header: &Header, payload: &[u8], ecn: Ecn) {
        let mut bytes = vec![0; header.encoded_len()];
        header.emit(&mut bytes);
        bytes.extend_from_slice(payload);
        self.peer.inject(&bytes, ecn);
    }

    /// An honest report of the next number, that knows of transmissions up to `largest`.
    pub(crate) fn report(&self, largest: u32) -> Report {
        Report {
            kind: ReportKind::Tack,
            lists: false,
            repeated: false,
            sync_echo: 1,
            loss_rate: 0,
            number: self.number,
            largest,
            largest_delay: 0,
            timing: None,
            rate: None,
            above: 0,
            period: 10_000,
        }
    }

    /// A report arrives that acknowledges up to position `ack`, with this data field.
    pub(crate) fn send_report(&mut self, ack: u32, report: Report, lists: &[u8]) {
        let header = self.header(
            1_u32.wrapping_sub(lists.len() as u32),
            ack,
            Flags::ACK,
            Some(TackOption::Report(report)),
        );
        self.send(&header, lists);
        self.number = self.number.max(report.number.wrapping_add(1));
    }

    /// The same with a loss report.
    pub(crate) fn send_loss(&mut self, ack: u32, loss: LossReport, lists: &[u8]) {
        let header = self.header(
            1_u32.wrapping_sub(lists.len() as u32),
            ack,
            Flags::ACK,
            Some(TackOption::Loss(loss)),
        );
        self.send(&header, lists);
        self.number = self.number.max(loss.number.wrapping_add(1));
    }

    /// A sync arrives.
    pub(crate) fn send_sync(&mut self, ack: u32, rtt_min: u32, ack_loss_rate: u16) {
        let sync = Sync {
            startup: false,
            ack_loss_rate,
            number: self.sync,
            rtt_min,
            rtt: rtt_min,
        };
        self.sync += 1;
        let header = self.header(1, ack, Flags::ACK, Some(TackOption::Sync(sync)));
        self.send(&header, &[]);
    }

    /// Data of the peer arrives: `len` bytes of its stream from `position`, as transmission
    /// `number`.
    pub(crate) fn send_data(&mut self, position: u32, len: usize, number: u32) {
        self.send_data_with(1, position, len, number);
    }

    /// The same, with a cumulative acknowledgement up to position `ack`.
    pub(crate) fn send_data_with(&mut self, ack: u32, position: u32, len: usize, number: u32) {
        let departure = self.peer.elapsed().as_micros() as u32;
        let stamp = TackOption::Data(DataStamp { number, departure });
        let header = self.header(position, ack, Flags::ACK, Some(stamp));
        self.next_data = self.next_data.max(number.wrapping_add(1));
        self.send(&header, &pattern::bytes(u64::from(position - 1), len));
    }

    /// The connection writes what it takes of `len` bytes, and what leaves at once is returned.
    pub(crate) fn write(&mut self, len: usize) -> Vec<Output> {
        let data = pattern::bytes(self.written, len);
        let taken = self
            .peer
            .with(|connection, now| connection.write(now, &data).unwrap_or_default());
        self.written += taken as u64;
        self.peer.take_output()
    }

    /// What the connection counted.
    pub(crate) fn stats(&self) -> Stats {
        self.peer.connection().stats(self.peer.now())
    }
}

/// An echo of the segment that left at `departure` on the connection's clock.
pub(crate) fn echo(departure: u32, delay: u32) -> Option<TimingEcho> {
    Some(TimingEcho { departure, delay })
}

/// The stamp of a segment that left.
pub(crate) fn stamp(output: &Output) -> DataStamp {
    match output.header.options.tack {
        Some(TackOption::Data(stamp)) => stamp,
        other => panic!("no stamp but {other:?}"),
    }
}
