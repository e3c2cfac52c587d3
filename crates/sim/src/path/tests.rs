//! Each impairment alone, with fixed seeds, against what its settings promise.

use bytes::Bytes;
use tack_base::Rate;
use tack_wire::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};
use tack_wire::{Ecn, Flags, Header, SackBlock, Segment, SeqNum, TcpOptions, Timestamps};

use super::*;
use crate::impair::loss::GilbertElliott;
use crate::impair::middlebox::{EcnFlags, IsnRewrite, StripFrom};

const PACKETS: u64 = 100_000;

fn config() -> PathConfig {
    let rate = LinkRate::Fixed(Rate::from_bits_per_sec(12_000_000_000));
    PathConfig::new(rate, Duration::from_millis(10), Bound::Packets(1_000_000))
}

fn datagram(number: u64, len: usize) -> Packet {
    let addresses = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let mut header = [0; 16];
    header[8..].copy_from_slice(&number.to_be_bytes());
    let payload = Bytes::from(vec![0x5a; len - 36]);
    Packet::new(
        addresses,
        PROTOCOL_UDP,
        Ecn::Ect0,
        &header,
        payload,
        Instant::ZERO,
    )
}

fn number(packet: &Packet) -> u64 {
    u64::from_be_bytes(packet.transport()[8..16].try_into().unwrap())
}

fn segment(header: &Header, payload: &'static [u8]) -> Packet {
    let addresses = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let mut bytes = [0; 60];
    let len = header.emit(&mut bytes);
    let payload = Bytes::from_static(payload);
    Packet::new(
        addresses,
        PROTOCOL_TCP,
        Ecn::NotEct,
        &bytes[..len],
        payload,
        Instant::ZERO,
    )
}

/// Sends `PACKETS` packets of 1,500 bytes, a microsecond apart, and collects what arrives, with its
/// time.
fn pass(config: &PathConfig, seed: u64) -> (Vec<(Instant, Packet)>, PathCounters) {
    let mut path = Path::new(config, seed, 0);
    for n in 0..PACKETS {
        path.send(Instant::from_micros(n), datagram(n, 1_500));
    }
    let mut arrived = Vec::new();
    while let Some(at) = path.next_arrival() {
        assert_eq!(
            path.receive(at - Duration::from_nanos(1)).map(|(at, _)| at),
            None
        );
        arrived.push(path.receive(at).unwrap());
    }
    assert_eq!(path.receive(Instant::FAR_FUTURE).map(|(at, _)| at), None);
    (arrived, path.counters())
}

/// Every third packet takes `beyond` longer than those around it.
#[test]
fn packets_with_a_delay_beyond_keep_their_order_and_hold_up_nobody() {
    let (beyond, every) = (Duration::from_micros(40_000), Duration::from_nanos(1));
    let config = PathConfig {
        order: OrderConfig {
            duplicate: 0.1,
            ..OrderConfig::default()
        },
        ..config()
    };
    let mut path = Path::new(&config, 1, 0);
    let extra = |n: u64| {
        if n.is_multiple_of(3) {
            beyond
        } else {
            Duration::ZERO
        }
    };
    for n in 0..PACKETS {
        path.send_delayed(Instant::from_micros(n), datagram(n, 1_500), extra(n));
    }
    let mut latest = [None; 2];
    let mut count = 0;
    while let Some(at) = path.next_arrival() {
        assert!(path.receive(at - every).is_none());
        let (_, packet) = path.receive(at).unwrap();
        let n = number(&packet);
        let sent = Instant::from_micros(n + 1) + Duration::from_millis(10);
        assert_eq!(at, sent + extra(n), "packet {n}");
        let class = &mut latest[usize::from(n.is_multiple_of(3))];
        assert!(class.is_none_or(|before| before <= n), "packet {n}");
        *class = Some(n);
        count += 1;
    }
    assert_eq!(count, path.counters().delivered);
    assert!(path.counters().duplicated > PACKETS / 12);
    assert_eq!(path.counters().reordered, 0);
}

#[test]
fn without_faults_everything_arrives_in_order_and_on_time() {
    let (arrived, counters) = pass(&config(), 1);
    for (n, (at, packet)) in arrived.iter().enumerate() {
        assert_eq!(number(packet), n as u64);
        assert_eq!(
            *at,
            Instant::from_micros(n as u64 + 1) + Duration::from_millis(10)
        );
    }
    assert_eq!(counters.delivered, PACKETS);
}

#[test]
fn independent_loss_has_its_rate_and_no_memory() {
    let mut config = config();
    config.loss.bernoulli = 0.1;
    let (arrived, counters) = pass(&config, 1);
    assert!(
        (9_700..=10_300).contains(&counters.lost),
        "{}",
        counters.lost
    );
    assert_eq!(arrived.len() as u64 + counters.lost, PACKETS);
    // Losses right behind a loss: a tenth of them.
    let mut lost = vec![true; PACKETS as usize];
    for (_, packet) in &arrived {
        lost[number(packet) as usize] = false;
    }
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
    assert!((850..=1_150).contains(&pairs), "{pairs}");
    // Another seed, other losses; the same seed, the same.
    let again = pass(&config, 1).0;
    assert!(
        arrived
            .iter()
            .map(|(_, p)| number(p))
            .eq(again.iter().map(|(_, p)| number(p)))
    );
    let other = pass(&config, 2).0;
    assert!(
        !arrived
            .iter()
            .map(|(_, p)| number(p))
            .eq(other.iter().map(|(_, p)| number(p)))
    );
}

#[test]
fn bursts_have_their_length_and_share() {
    let mut config = config();
    config.loss.gilbert_elliott = Some(GilbertElliott {
        good_to_bad: 0.01,
        bad_to_good: 0.25,
        loss_good: 0.0,
        loss_bad: 1.0,
    });
    let (arrived, counters) = pass(&config, 3);
    // Share of bad: 0.01 / 0.26 = 3.85 %; mean length of a burst: 4.
    assert!(
        (3_500..=4_200).contains(&counters.lost),
        "{}",
        counters.lost
    );
    let bursts = arrived
        .windows(2)
        .filter(|pair| number(&pair[1].1) > number(&pair[0].1) + 1)
        .count() as f64;
    let mean = counters.lost as f64 / bursts;
    assert!((3.6..=4.4).contains(&mean), "{mean}");
}

#[test]
fn loss_of_acknowledgements_spares_everything_else() {
    let mut config = config();
    config.loss.acks = 0.5;
    let mut path = Path::new(&config, 1, 1);
    let ack = Header {
        flags: Flags::ACK,
        ..Header::default()
    };
    let syn = Header {
        flags: Flags::SYN.with(Flags::ACK),
        ..Header::default()
    };
    for n in 0..10_000 {
        let now = Instant::from_micros(n);
        path.send(now, segment(&ack, b""));
        path.send(now, segment(&ack, b"data"));
        path.send(now, segment(&syn, b""));
        path.send(now, datagram(n, 60));
    }
    let lost = path.counters().lost;
    assert!((4_800..=5_200).contains(&lost), "{lost}");
    let survivors = std::iter::from_fn(|| path.receive(Instant::FAR_FUTURE))
        .filter(|(_, packet)| !packet.is_pure_ack())
        .count();
    assert_eq!(survivors, 30_000);
}

#[test]
fn reordered_packets_come_late_and_alone() {
    let mut config = config();
    config.order.reorder = 0.05;
    config.order.reorder_delay = Duration::from_micros(100);
    let (arrived, counters) = pass(&config, 1);
    assert!(
        (4_700..=5_300).contains(&counters.reordered),
        "{}",
        counters.reordered
    );
    let mut late = 0;
    for (at, packet) in &arrived {
        let due = Instant::from_micros(number(packet) + 1) + Duration::from_millis(10);
        let delay = at.saturating_since(due);
        assert!(*at >= due && delay <= Duration::from_micros(100));
        late += u64::from(!delay.is_zero());
    }
    assert_eq!(late, counters.reordered);
    assert!(arrived.is_sorted_by_key(|(at, _)| *at));
    assert!(!arrived.is_sorted_by_key(|(_, packet)| number(packet)));
}

#[test]
fn a_copy_comes_right_behind() {
    let mut config = config();
    config.order.duplicate = 0.1;
    let (arrived, counters) = pass(&config, 1);
    assert!((9_700..=10_300).contains(&counters.duplicated));
    assert_eq!(arrived.len() as u64, PACKETS + counters.duplicated);
    let pairs = arrived
        .windows(2)
        .filter(|pair| number(&pair[0].1) == number(&pair[1].1) && pair[0].0 == pair[1].0)
        .count() as u64;
    assert_eq!(pairs, counters.duplicated);
}

#[test]
fn damage_is_always_noticed_and_leaves_the_original_alone() {
    let mut config = config();
    config.corrupt = 0.02;
    config.order.duplicate = 0.5;
    let (arrived, counters) = pass(&config, 1);
    assert!(
        (1_850..=2_150).contains(&counters.corrupted),
        "{}",
        counters.corrupted
    );
    let original = datagram(0, 1_500).payload;
    let mut noticed = 0;
    for (_, packet) in &arrived {
        if packet.verify_checksums() {
            assert_eq!(packet.payload, original);
        } else {
            noticed += 1;
        }
    }
    assert!(
        noticed > counters.corrupted,
        "copies of damaged packets are damaged"
    );
    // Every bit of a TCP segment, headers included, is covered.
    let mut damage = Damage::new(1.0, 1, 0);
    let mut where_hit = std::collections::BTreeSet::new();
    for _ in 0..2_000 {
        let whole = segment(&Header::default(), b"payload");
        let mut packet = whole.clone();
        assert!(damage.strike(&mut packet));
        assert!(!packet.verify_checksums());
        let mut written = whole;
        written.write_checksums();
        let differs = |a: &[u8], b: &[u8]| a.iter().zip(b).position(|(a, b)| a != b);
        let hit = differs(&written.head, &packet.head)
            .or_else(|| differs(&written.payload, &packet.payload).map(|at| at + 40));
        where_hit.insert(hit.unwrap());
    }
    assert_eq!(where_hit.len(), 47);
}

#[test]
fn blackouts_swallow_what_enters_in_them() {
    let mut config = config();
    config.blackouts = vec![Blackout {
        start: Instant::from_millis(20),
        duration: Duration::from_millis(5),
    }];
    let (arrived, counters) = pass(&config, 1);
    assert_eq!(counters.blacked_out, 5_000);
    let gone = 20_000..25_000;
    assert!(
        arrived
            .iter()
            .all(|(_, packet)| !gone.contains(&number(packet)))
    );
}

#[test]
fn suspensions_hold_back_and_then_burst_in_order() {
    let mut config = config();
    config.suspension = Some(SuspensionConfig {
        start: Instant::from_millis(20),
        period: Duration::from_millis(30),
        shortest: Duration::from_millis(5),
        longest: Duration::from_millis(10),
    });
    let (arrived, counters) = pass(&config, 1);
    assert_eq!(counters.delivered, PACKETS);
    assert!(arrived.is_sorted_by_key(|(_, packet)| number(packet)));
    let mut lengths = Vec::new();
    for begin in [20, 50, 80] {
        let begin = Instant::from_millis(begin);
        let held: Vec<_> = arrived
            .iter()
            .filter(|(at, packet)| {
                let due = Instant::from_micros(number(packet) + 1) + Duration::from_millis(10);
                due >= begin && *at > due && *at < begin + Duration::from_millis(30)
            })
            .map(|(at, _)| *at)
            .collect();
        assert!(held.iter().all(|at| *at == held[0]), "one burst");
        lengths.push(held[0].saturating_since(begin));
    }
    assert!(
        lengths
            .iter()
            .all(|length| (5..=10).contains(&(length.as_millis() as u64)))
    );
    assert_ne!(lengths[0], lengths[1]);
}

#[test]
fn a_black_hole_swallows_by_size() {
    let mut config = config();
    config.mtu_black_hole = Some(1_400);
    let mut path = Path::new(&config, 1, 0);
    path.send(Instant::ZERO, datagram(0, 1_400));
    path.send(Instant::ZERO, datagram(1, 1_401));
    assert_eq!(path.counters().too_large, 1);
    assert_eq!(number(&path.receive(Instant::FAR_FUTURE).unwrap().1), 0);
    assert!(path.receive(Instant::FAR_FUTURE).is_none());
    config.mtu_black_hole_from = Instant::from_millis(5);
    let mut path = Path::new(&config, 1, 0);
    for at in [4, 5, 6] {
        path.send(Instant::from_millis(at), datagram(at, 1_401));
    }
    assert_eq!(path.counters().too_large, 2, "those from 5 ms on");
}

#[test]
fn marks_come_by_chance_and_by_queue() {
    let mut config = config();
    config.mark.probability = 0.1;
    let (arrived, counters) = pass(&config, 1);
    assert!((9_700..=10_300).contains(&counters.marked));
    let marked = arrived
        .iter()
        .filter(|(_, packet)| packet.ecn() == Ecn::Ce)
        .count() as u64;
    assert_eq!(marked, counters.marked);
    config.mark.probability = 0.0;
    config.mark.threshold = Some(Bound::Packets(3));
    let mut path = Path::new(&config, 1, 0);
    for n in 0..6 {
        path.send(Instant::ZERO, datagram(n, 1_500));
    }
    // The first is served, three wait unmarked, the rest find three waiting.
    let marks: Vec<_> = std::iter::from_fn(|| path.receive(Instant::FAR_FUTURE))
        .map(|(_, packet)| packet.ecn() == Ecn::Ce)
        .collect();
    assert_eq!(marks, [false, false, false, false, true, true]);
}

fn options() -> Header {
    let mut header = Header {
        flags: Flags::ACK,
        options: TcpOptions {
            timestamps: Some(Timestamps { value: 7, echo: 8 }),
            ..TcpOptions::default()
        },
        ..Header::default()
    };
    header.options.sack.push(SackBlock {
        start: SeqNum(100),
        end: SeqNum(200),
    });
    header
}

#[test]
fn stripped_options_leave_a_sound_header() {
    let mut config = config();
    config.middlebox.strip = vec![5];
    config.middlebox.strip_from = StripFrom::Rest;
    let mut path = Path::new(&config, 1, 0);
    path.send(Instant::ZERO, segment(&options(), b"payload"));
    let mut syn = options();
    syn.flags = Flags::SYN;
    path.send(Instant::ZERO, segment(&syn, b""));
    assert_eq!(path.counters().stripped, 1);
    let (_, mut stripped) = path.receive(Instant::FAR_FUTURE).unwrap();
    stripped.write_checksums();
    let mut bytes = stripped.head.to_vec();
    bytes.extend_from_slice(&stripped.payload);
    let ip = tack_wire::ip::parse(&bytes).unwrap();
    let parsed = Segment::parse(ip.payload).unwrap();
    assert!(parsed.header.options.sack.is_empty());
    assert_eq!(
        parsed.header.options.timestamps,
        options().options.timestamps
    );
    assert_eq!(parsed.payload, b"payload");
    let (_, kept) = path.receive(Instant::FAR_FUTURE).unwrap();
    assert_eq!(
        Segment::parse(kept.transport())
            .unwrap()
            .header
            .options
            .sack
            .len(),
        1
    );
}

#[test]
fn ecn_bits_are_cleared_and_overwritten() {
    let all = Flags::AE.with(Flags::CWR).with(Flags::ECE);
    let sent = [Flags::SYN, Flags::ACK].map(|flags| flags.with(all));
    let pass = |clear, clear_from, ecn| {
        let mut config = config();
        config.middlebox.clear = clear;
        config.middlebox.clear_from = clear_from;
        config.middlebox.ecn = ecn;
        let mut path = Path::new(&config, 1, 0);
        sent.map(|flags| {
            let header = Header { flags, ..options() };
            path.send(Instant::ZERO, segment(&header, b""));
            let (_, mut packet) = path.receive(Instant::FAR_FUTURE).unwrap();
            packet.write_checksums();
            let ip = tack_wire::ip::parse(&packet.head).unwrap();
            (Segment::parse(ip.payload).unwrap().header.flags, ip.ecn)
        })
    };
    let [syn, ack] = [Flags::SYN, Flags::ACK];
    for (clear, from, left) in [
        (EcnFlags::All, StripFrom::All, [syn, ack]),
        (EcnFlags::All, StripFrom::Syn, [syn, sent[1]]),
        (
            EcnFlags::Ae,
            StripFrom::All,
            [syn, ack].map(|flags| flags.with(Flags::CWR).with(Flags::ECE)),
        ),
        (
            EcnFlags::CwrEce,
            StripFrom::Rest,
            [sent[0], ack.with(Flags::AE)],
        ),
    ] {
        let passed = pass(clear, from, None);
        assert_eq!(passed.map(|(flags, _)| flags), left, "{clear:?} {from:?}");
        assert_eq!(passed.map(|(_, ecn)| ecn), [Ecn::NotEct; 2]);
    }
    for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
        let passed = pass(EcnFlags::None, StripFrom::All, Some(ecn));
        assert_eq!(passed, sent.map(|flags| (flags, ecn)));
    }
}

#[test]
fn rewritten_numbers_agree_in_both_directions() {
    for (isn, with_sack) in [
        (IsnRewrite::WithSack, true),
        (IsnRewrite::WithoutSack, false),
    ] {
        let mut config = config();
        config.middlebox.isn = isn;
        let mut there = Path::new(&config, 9, 0);
        let mut back = Path::new(&config, 9, 1);
        let out = Header {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(1_000),
            flags: Flags::SYN,
            ..Header::default()
        };
        there.send(Instant::ZERO, segment(&out, b""));
        let (_, packet) = there.receive(Instant::FAR_FUTURE).unwrap();
        let seen = Segment::parse(packet.transport()).unwrap().header;
        assert_ne!(seen.seq, out.seq);
        // The other side acknowledges what it saw; the sender must get back what it sent.
        let mut answer = Header {
            src_port: 2,
            dst_port: 1,
            seq: SeqNum(77),
            ack: seen.seq + 1,
            flags: Flags::ACK,
            ..options()
        };
        answer.options.sack[0] = SackBlock {
            start: seen.seq + 100,
            end: seen.seq + 200,
        };
        back.send(Instant::ZERO, segment(&answer, b""));
        let (_, packet) = back.receive(Instant::FAR_FUTURE).unwrap();
        let got = Segment::parse(packet.transport()).unwrap().header;
        assert_eq!(got.ack, SeqNum(1_001));
        assert_ne!(got.seq, answer.seq);
        assert_eq!(got.options.sack[0].start == SeqNum(1_100), with_sack);
        assert_eq!(got.options.sack[0].end == SeqNum(1_200), with_sack);
    }
}
