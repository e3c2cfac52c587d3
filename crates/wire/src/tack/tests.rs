//! Shapes and lists written and read again, and what is refused.

use super::codec::RATE_UNIT;
use super::*;
use core::ops::Range;
use proptest::prelude::*;
use std::vec::Vec;

fn report() -> impl Strategy<Value = TackOption> {
    (any::<[u32; 8]>(), any::<[bool; 4]>(), 0_u8..4, any::<u16>()).prop_map(
        |(w, [lists, timing, rate, repeated], kind, loss)| {
            TackOption::Report(Report {
                kind: [
                    ReportKind::Tack,
                    ReportKind::Window,
                    ReportKind::Event,
                    ReportKind::Frequency,
                ][kind as usize],
                lists,
                repeated,
                sync_echo: loss as u8 & 0xf,
                loss_rate: loss,
                number: w[0],
                largest: w[1],
                largest_delay: w[2],
                timing: timing.then_some(TimingEcho {
                    departure: w[3],
                    delay: w[4],
                }),
                rate: rate.then_some(u64::from(w[5]) * RATE_UNIT),
                above: w[6],
                period: w[7],
            })
        },
    )
}

fn option() -> impl Strategy<Value = TackOption> {
    prop_oneof![
        (1_u8.., 2_u8..).prop_map(|(segments, beta)| TackOption::Syn(TackSyn { segments, beta })),
        any::<(u32, u32)>()
            .prop_map(|(number, departure)| TackOption::Data(DataStamp { number, departure })),
        any::<(bool, u16, [u32; 3])>().prop_map(
            |(startup, ack_loss_rate, [number, rtt_min, rtt])| {
                TackOption::Sync(Sync {
                    startup,
                    ack_loss_rate,
                    number,
                    rtt_min,
                    rtt,
                })
            }
        ),
        any::<(bool, u16, [u32; 6])>().prop_map(|(lists, loss_rate, w)| TackOption::Loss(
            LossReport {
                lists,
                loss_rate,
                number: w[0],
                largest: w[1],
                largest_delay: w[2],
                above: w[3],
                before_gap: w[4],
                after_gap: w[5],
            }
        )),
        report(),
    ]
}

proptest! {
    #[test]
    fn every_shape_reads_back(option in option()) {
        let mut bytes = [0xff; REPORT_LEN];
        let len = option.emit(&mut bytes);
        prop_assert_eq!(usize::from(bytes[1]), len);
        prop_assert_eq!(TackOption::parse(&bytes[2..len]), Some(option));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = TackOption::parse(&bytes);
        if let Ok(lists) = Lists::parse(&bytes) {
            let blocks: Vec<_> = lists.blocks().collect();
            prop_assert!(blocks.windows(2).all(|pair| pair[1].end <= pair[0].start));
            prop_assert!(lists.gaps().all(|(distance, count)| count <= distance));
        }
    }

    #[test]
    fn lists_read_back(steps in proptest::collection::vec((1_u64..5000, 1_u64..5000), 1..40), room in 8_usize..300) {
        // Ascending disjoint ranges, listed from the top.
        let mut at = 1;
        let mut ranges: Vec<Range<u64>> = steps.iter().map(|(gap, len)| {
            let start = at + gap;
            at = start + len;
            start..at
        }).collect();
        ranges.reverse();
        let mut out = std::vec![0; room];
        let mut writer = ListsWriter::new(&mut out);
        let blocks: Vec<_> = ranges.iter().take(20).take_while(|range| writer.block((*range).clone())).cloned().collect();
        let gaps: Vec<_> = ranges.iter().map(|range| (range.end, range.end - range.start))
            .take_while(|(distance, count)| writer.gap(*distance, *count)).collect();
        let len = writer.finish();
        if len > 0 {
            let lists = Lists::parse(&out[..len]).expect("our own lists parse");
            prop_assert_eq!(lists.blocks().collect::<Vec<_>>(), blocks);
            prop_assert_eq!(lists.gaps().collect::<Vec<_>>(), gaps);
        }
    }
}

#[test]
fn overlapping_empty_and_trailing_lists_are_refused() {
    assert!(Lists::parse(&[0, 1, 0, 0, 5, 1]).is_ok());
    assert!(Lists::parse(&[0, 1, 0, 0, 5, 0]).is_err(), "an empty block");
    assert!(
        Lists::parse(&[0, 2, 0, 0, 5, 9, 4, 3]).is_err(),
        "overlapping blocks"
    );
    assert!(
        Lists::parse(&[0, 2, 0, 0, 5, 1, 9, 1]).is_err(),
        "ascending blocks"
    );
    assert!(
        Lists::parse(&[0, 0, 0, 1, 3, 4]).is_err(),
        "a gap beyond the largest number"
    );
    assert!(
        Lists::parse(&[0, 1, 0, 0, 5, 1, 7]).is_err(),
        "something left over"
    );
    assert!(
        Lists::parse(&[255, 255, 255, 255, 1, 1]).is_err(),
        "counts without entries"
    );
}
