//! Any noise, any hiding and any traffic.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the noise, the hiding and the traffic: what comes, comes once and in order; what is
    /// sent, comes or is counted as dropped; the shares of airtime add up; and it all ends.
    #[test]
    fn packets_come_once_in_order_or_are_counted(
        seed in any::<u64>(),
        standard in prop_oneof![Just(Standard::B), Just(Standard::A), Just(Standard::N)],
        error in prop_oneof![Just(0.0), 0.0..0.5_f64],
        hide in any::<bool>(),
        rts in any::<bool>(),
        txop in any::<bool>(),
        traffic in proptest::collection::vec((0..4_u16, 0..4_u16, 1..60_u32, 0..20_000_u64), 1..20),
    ) {
        let mut config = config(standard, 3);
        config.ap_queue = 40;
        config.station_queue = 40;
        config.error = ErrorModel::Rate(error);
        if hide {
            config.hidden.push((NodeId(1), NodeId(2)));
        }
        config.mac.rts_threshold = rts.then_some(300);
        if txop && standard == Standard::N {
            config.mac.txop_limit = [Duration::from_micros(3_008); 4];
        }
        let mut world = World::new(&config, seed);
        let mut traffic = traffic;
        traffic.sort_by_key(|(.., at)| *at);
        let (mut sent, mut number) = (0_u64, 0);
        for (src, dst, count, at) in traffic {
            if src == dst {
                continue;
            }
            world.handle_timeout(Instant::from_micros(at));
            for _ in 0..count {
                number += 1;
                let packet = msdu(src, dst, number);
                sent += u64::from(world.handle_msdu(Instant::from_micros(at), packet).is_ok());
            }
        }
        world.handle_timeout(Instant::from_millis(60_000));
        prop_assert_eq!(world.poll_timeout(), None, "everything has ended");
        let mut last = [[0_u32; 4]; 4];
        let mut came = 0;
        while let Some(delivery) = world.poll_delivery() {
            let number = delivery.msdu.payload.unwrap();
            let previous = &mut last[delivery.msdu.src.index()][delivery.at.index()];
            prop_assert!(*previous < number, "in order and once");
            prop_assert_eq!(delivery.at, delivery.msdu.dst);
            *previous = number;
            came += 1;
        }
        let stats = |field: fn(&StationStats) -> u64| (0..4).map(|n| field(world.stats(NodeId(n)))).sum::<u64>();
        // A frame given up may have come all the same: its ACK was lost.
        let dropped = stats(|stats| stats.retry_drops);
        let relay_drops = world.stats(NodeId::AP).queue_drops;
        // What comes after its hole was given up counts as a duplicate.
        let was_given_up = stats(|stats| stats.reorder_timeouts) > 0;
        let late = if was_given_up { stats(|stats| stats.duplicates) } else { 0 };
        prop_assert!(came <= sent);
        prop_assert!(
            came + dropped + relay_drops + late >= sent,
            "{came} + {dropped} + {relay_drops} + {late} < {sent}"
        );
        if error == 0.0 && !hide {
            prop_assert_eq!(dropped, 0, "collisions alone never take seven in a row here");
        }
        prop_assert_eq!(world.airtime().total(), Duration::from_secs(60));
    }
}
