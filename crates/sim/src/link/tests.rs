use super::*;

fn fixed(rate: u64, delay: u64, queue: Bound) -> Bottleneck {
    Bottleneck::new(&BottleneckConfig {
        rate: LinkRate::Fixed(Rate::from_bits_per_sec(rate)),
        delay: Duration::from_nanos(delay),
        queue,
    })
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

#[test]
fn a_packet_takes_its_bits_and_the_delay() {
    let mut link = fixed(100_000_000, 20_000_000, Bound::Packets(10));
    // 1,500 bytes at 100 Mbit/s: 120 us.
    assert_eq!(link.enqueue(at(5), 1_500), Ok(at(5 + 120_000 + 20_000_000)));
    // The next waits for it, and one that comes to an idle link does not.
    assert_eq!(
        link.enqueue(at(10), 1_500),
        Ok(at(5 + 240_000 + 20_000_000))
    );
    assert_eq!(
        link.enqueue(at(1_000_000), 125),
        Ok(at(1_000_000 + 10_000 + 20_000_000))
    );
}

#[test]
fn remainders_are_carried_not_dropped() {
    // At 7 Gbit/s a packet of 1,000 bytes takes 1142.857142… ns: seven of them exactly 8,000.
    let mut link = fixed(7_000_000_000, 0, Bound::Packets(2_000_000));
    let mut last = Instant::ZERO;
    for packet in 1..=700_000_u64 {
        last = link.enqueue(at(0), 1_000).unwrap();
        let exact = (packet * 8_000).div_ceil(7);
        assert_eq!(last.as_nanos(), exact, "packet {packet}");
    }
    assert_eq!(last, at(800_000_000));
    // Rounding each down would be 600 us fast by now, rounding up 100 us slow.
}

#[test]
fn a_fraction_is_forgotten_when_the_link_goes_idle() {
    let mut link = fixed(7_000_000_000, 0, Bound::Packets(10));
    assert_eq!(link.enqueue(at(0), 1_000), Ok(at(1_143)));
    assert_eq!(link.enqueue(at(5_000), 1_000), Ok(at(6_143)));
}

#[test]
fn the_queue_holds_what_its_bound_says() {
    for (bound, accepted) in [
        (Bound::Packets(0), 1),
        (Bound::Packets(3), 4),
        (Bound::Bytes(2_999), 2),
        (Bound::Bytes(3_000), 3),
        (Bound::Bytes(100), 1),
    ] {
        let mut link = fixed(12_000_000, 0, bound);
        let taken = (0..10)
            .filter(|_| link.enqueue(at(0), 1_500).is_ok())
            .count();
        // One is served at once and waits for nothing.
        assert_eq!(taken, accepted, "{bound:?}");
        assert_eq!(link.backlog(at(0)).0, accepted - 1);
        // A millisecond later one more has begun to be served.
        assert_eq!(
            link.backlog(at(1_000_000)).0,
            (accepted - 1).saturating_sub(1)
        );
        assert_eq!(link.peak().0, accepted - 1);
    }
}

#[test]
fn room_is_foretold() {
    let mut link = fixed(12_000_000, 0, Bound::Packets(3));
    assert_eq!(link.room_at(at(0), 1_500, usize::MAX), at(0));
    for _ in 0..4 {
        link.enqueue(at(0), 1_500).unwrap();
    }
    let room = link.room_at(at(0), 1_500, usize::MAX);
    assert_eq!(room, at(1_000_000));
    assert!(link.enqueue(at(999_999), 1_500).is_err());
    assert!(link.enqueue(room, 1_500).is_ok());
    // Asked for a shorter queue than the bound, it waits longer.
    assert_eq!(link.room_at(room, 1_500, 2), at(3_000_000));
    // Without any waiting room there is room when the server is free.
    let mut link = fixed(12_000_000, 0, Bound::Packets(0));
    link.enqueue(at(0), 1_500).unwrap();
    assert_eq!(link.room_at(at(0), 1_500, usize::MAX), at(1_000_000));
}

fn traced(lines: &str) -> Bottleneck {
    Bottleneck::new(&BottleneckConfig {
        rate: LinkRate::Trace(Trace::parse(lines).unwrap()),
        delay: Duration::ZERO,
        queue: Bound::Packets(100),
    })
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn a_trace_delivers_at_its_opportunities() {
    // Two opportunities at 3, one at 5, one at 10; then 13, 13, 15, 20, …
    let mut link = traced("3\n3\n5\n10\n");
    let full: Vec<_> = (0..9)
        .map(|_| link.enqueue(ms(0), 1_500).unwrap())
        .collect();
    assert_eq!(full, [3, 3, 5, 10, 13, 13, 15, 20, 23].map(ms));
}

#[test]
fn an_opportunity_counts_bytes() {
    // Three packets of 500 share one opportunity; one of 1,000 begins the next and leaves 500 for
    // half of another.
    let mut link = traced("1\n2\n3\n4\n");
    let times: Vec<_> = [500, 500, 500, 1_000, 1_000, 100]
        .map(|len| link.enqueue(ms(0), len).unwrap())
        .into();
    assert_eq!(times, [1, 1, 1, 2, 3, 3].map(ms));
    // A packet of two opportunities and a bit is through with the third.
    let mut link = traced("1\n2\n3\n4\n");
    assert_eq!(link.enqueue(ms(0), 3_001), Ok(ms(3)));
}

#[test]
fn what_nobody_waits_for_is_lost() {
    let mut link = traced("2\n4\n6\n8\n");
    // Too late for 2 by coming exactly then; the rest of 4 is lost when nobody else is there.
    assert_eq!(link.enqueue(ms(2), 600), Ok(ms(4)));
    assert_eq!(link.enqueue(at(4_500_000), 600), Ok(ms(6)));
    // One that comes before 6 shares it; one that comes between them and 8 does not.
    assert_eq!(link.enqueue(at(5_900_000), 600), Ok(ms(6)));
    assert_eq!(link.enqueue(at(6_000_001), 600), Ok(ms(8)));
    // Over the end: the trace begins again at 8.
    assert_eq!(link.enqueue(ms(8), 1_500), Ok(ms(10)));
    assert_eq!(link.enqueue(ms(1_000_000), 1_500), Ok(ms(1_000_002)));
}

#[test]
fn traces_are_read_strictly() {
    let error = |text: &str| Trace::parse(text).unwrap_err().to_string();
    assert!(error("").contains("no line"));
    assert!(error("1\nx\n").contains("line 2") && error("1\nx\n").contains("\"x\""));
    assert!(error("5\n4\n").contains("line 2"));
    assert!(error("0\n0\n").contains("above zero"));
    assert!(error("-1\n").contains("line 1"));
    let trace = Trace::parse("1\r\n\n2\n").unwrap();
    assert_eq!(trace.period_ms(), 2);
    // Two opportunities in 2 ms: 12 Mbit/s.
    assert_eq!(trace.average_rate(), Rate::from_bits_per_sec(12_000_000));
}
