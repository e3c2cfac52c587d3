use super::*;
use etherparse::{TcpOptionElement, TcpOptionsIterator};
use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

fn emitted(options: &TcpOptions) -> Vec<u8> {
    let mut bytes = std::vec![0xaa; options.encoded_len()];
    assert_eq!(options.emit(&mut bytes), bytes.len());
    bytes
}

fn blocks(blocks: &[(u32, u32)]) -> SackBlocks {
    blocks
        .iter()
        .map(|&(start, end)| SackBlock {
            start: SeqNum(start),
            end: SeqNum(end),
        })
        .collect()
}

#[test]
fn the_options_of_a_syn() {
    let options = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..TcpOptions::default()
    };
    let bytes = emitted(&options);
    assert_eq!(
        bytes,
        [
            2, 4, 0x05, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0
        ]
    );
    assert_eq!(TcpOptions::parse(&bytes), options);
}

#[test]
fn three_sack_blocks_fit_beside_timestamps_and_four_without() {
    let sack = blocks(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    let alone = TcpOptions {
        sack,
        ..TcpOptions::default()
    };
    assert_eq!((alone.sack_capacity(), alone.encoded_len()), (4, 36));
    assert_eq!(TcpOptions::parse(&emitted(&alone)), alone);

    let timed = TcpOptions {
        timestamps: Some(Timestamps::default()),
        ..alone.clone()
    };
    assert_eq!((timed.sack_capacity(), timed.encoded_len()), (3, 40));
    assert_eq!(
        TcpOptions::parse(&emitted(&timed)).sack,
        blocks(&[(1, 2), (3, 4), (5, 6)])
    );
}

#[test]
fn unknown_options_are_counted_and_what_follows_still_counts() {
    // Kind 254 (RFC 3692 experiments), a fast-open cookie (34), then MSS.
    let bytes = [254, 4, 0xca, 0xfe, 34, 6, 1, 2, 3, 4, 2, 4, 5, 180];
    let options = TcpOptions::parse(&bytes);
    assert_eq!((options.unknown, options.mss), (2, Some(1460)));
    // They never leave again.
    assert_eq!(emitted(&options), [2, 4, 5, 180]);
    assert_eq!(TcpOptions::parse(&[99, 2].repeat(20)).unknown, 20);
}

#[test]
fn an_impossible_length_ends_the_list_and_keeps_what_came_before() {
    for bad in [
        &[3, 0, 7][..],
        &[3, 1, 7],
        &[3, 9, 7],
        &[3],
        &[254, 0],
        &[254, 255],
    ] {
        let bytes = [&[2, 4, 5, 180], bad].concat();
        let expected = TcpOptions {
            mss: Some(1460),
            ..TcpOptions::default()
        };
        assert_eq!(TcpOptions::parse(&bytes), expected, "{bad:?}");
    }
}

#[test]
fn a_known_option_of_the_wrong_length_is_ignored_alone() {
    let wrong: [&[u8]; 8] = [
        &[2, 3, 5],
        &[2, 5, 5, 180, 0],
        &[3, 2],
        &[3, 4, 7, 0],
        &[4, 3, 0],
        &[5, 2],
        &[5, 9, 0, 0, 0, 1, 0, 0, 0],
        &[8, 6, 0, 0, 0, 1],
    ];
    for bytes in wrong {
        let with_follower = [bytes, &[3, 3, 9]].concat();
        let expected = TcpOptions {
            window_scale: Some(9),
            ..TcpOptions::default()
        };
        assert_eq!(TcpOptions::parse(&with_follower), expected, "{bytes:?}");
    }
}

#[test]
fn end_of_list_ends_it() {
    assert_eq!(
        TcpOptions::parse(&[1, 1, 0, 2, 4, 5, 180]),
        TcpOptions::default()
    );
}

#[test]
fn a_window_scale_beyond_14_is_read_as_14() {
    assert_eq!(TcpOptions::parse(&[3, 3, 255]).window_scale, Some(14)); // RFC 7323 §2.3
}

#[test]
fn prints_like_tcpdump() {
    let options = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5, echo: 0 }),
        sack: blocks(&[(30, 40), (10, 20)]),
        tack: None,
        unknown: 1,
    };
    assert_eq!(
        options.to_string(),
        "mss 1460,wscale 7,sackOK,TS val 5 ecr 0,sack 2 {30:40}{10:20},unknown 1"
    );
    assert_eq!(TcpOptions::default().to_string(), "");
    let stamp = crate::tack::DataStamp {
        number: 7,
        departure: 99,
    };
    let stamped = TcpOptions {
        tack: Some(crate::tack::TackOption::Data(stamp)),
        ..TcpOptions::default()
    };
    assert_eq!(stamped.to_string(), "tack data 7");
}

prop_compose! {
    /// Options as a host would send them: every block fits.
    fn options()(
        mss: Option<u16>, window_scale in proptest::option::of(0..=14_u8), sack_permitted: bool,
        timestamps: Option<(u32, u32)>, sack in proptest::collection::vec(any::<(u32, u32)>(), 0..=4),
    ) -> TcpOptions {
        let mut options = TcpOptions {
            mss, window_scale, sack_permitted, sack: blocks(&sack), tack: None, unknown: 0,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
        };
        options.sack.truncate(options.sack_capacity());
        options
    }
}

proptest! {
    #[test]
    fn what_is_emitted_parses_back(options in options()) {
        let bytes = emitted(&options);
        prop_assert!(bytes.len() <= MAX_OPTIONS_LEN && bytes.len().is_multiple_of(4));
        prop_assert_eq!(TcpOptions::parse(&bytes), options);
    }

    #[test]
    fn another_parser_reads_the_same(options in options()) {
        let bytes = emitted(&options);
        let mut read = TcpOptions::default();
        for element in TcpOptionsIterator::from_slice(&bytes) {
            match element.unwrap() {
                TcpOptionElement::Noop => {}
                TcpOptionElement::MaximumSegmentSize(mss) => read.mss = Some(mss),
                TcpOptionElement::WindowScale(shift) => read.window_scale = Some(shift),
                TcpOptionElement::SelectiveAcknowledgementPermitted => read.sack_permitted = true,
                TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                    read.sack = blocks(&[first]);
                    read.sack.extend(rest.into_iter().flatten().map(|(start, end)| SackBlock {
                        start: SeqNum(start), end: SeqNum(end),
                    }));
                }
                TcpOptionElement::Timestamp(value, echo) => read.timestamps = Some(Timestamps { value, echo }),
            }
        }
        prop_assert_eq!(read, options);
    }

    #[test]
    fn any_bytes_are_survived_and_settle(bytes in proptest::collection::vec(any::<u8>(), 0..=40)) {
        let first = TcpOptions::parse(&bytes);
        // What the parser understood fits an option area again, unless blocks had to give way.
        let mut again = TcpOptions::parse(&emitted(&first));
        again.unknown = first.unknown;
        let mut expected = first.clone();
        expected.sack.truncate(first.sack_capacity());
        prop_assert_eq!(again, expected);
    }

    #[test]
    fn an_unknown_option_anywhere_changes_nothing(options in options(), kind in 30..=255_u8, body in proptest::collection::vec(any::<u8>(), 0..10), at in 0..4_usize) {
        // Cut before an option: each of ours starts with its own padding, so cut where one starts.
        let bytes = emitted(&options);
        let mut starts = std::vec![0];
        let mut rest = 0;
        while rest < bytes.len() {
            rest += if bytes[rest] == KIND_NOP { 1 } else { usize::from(bytes[rest + 1]) };
            starts.push(rest);
        }
        let at = starts[at % starts.len()];
        let unknown = [&[kind, body.len() as u8 + 2], &body[..]].concat();
        let widened = [&bytes[..at], &unknown, &bytes[at..]].concat();
        let parsed = TcpOptions::parse(&widened);
        prop_assert_eq!(parsed.unknown, 1);
        prop_assert_eq!(TcpOptions { unknown: 0, ..parsed }, options);
    }
}
