//! The receive window: a sender must not sit blocked on a window that is open.

use tack_base::{Duration, Instant};
use tack_sim::scenario::Party;
use tack_sim::{Observer, PacketEvent, Passing};

use super::{observe, report, set};

/// When the server sent data.
#[derive(Default)]
struct Departures(Vec<Instant>);

impl Observer for Departures {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if event.host == Party::Server
            && event.passing == Passing::Out
            && !event.packet.payload.is_empty()
        {
            self.0.push(event.at);
        }
    }
}

/// When the application of `stopping-reader.toml` reads again.
const RESUMES: [u64; 4] = [2_000, 3_050, 4_500, 8_000];
const ONE_WAY: Duration = Duration::from_millis(20);

#[test]
fn an_opened_window_is_known_one_way_later() {
    for controller in ["bbr", "cubic"] {
        let mut departures = Departures::default();
        observe(
            "stopping-reader",
            &set![format_args!("flow.0.congestion={controller}")],
            &mut departures,
        );
        for resume in RESUMES.map(Instant::from_millis) {
            let index = departures.0.partition_point(|at| *at <= resume);
            // Before that the window was closed, and only probes asked for it.
            let first = departures.0[index..]
                .iter()
                .find(|at| **at >= resume + ONE_WAY)
                .expect("it goes on");
            let blocked = first.saturating_since(resume);
            println!("{controller}: the window opened, data left {blocked:?} later");
            assert!(
                blocked <= ONE_WAY + Duration::from_micros(500),
                "{blocked:?}"
            );
        }
    }
}

#[test]
fn a_small_window_is_used_as_well_as_with_delayed_acks() {
    for controller in ["bbr", "cubic"] {
        for app in ["bulk", "bulk:pause=1s,resume=2s,pause=3s,resume=3050ms"] {
            let rates = ["tack", "delayed:2"].map(|ack| {
                let result = report(
                    "stopping-reader",
                    &set![
                        format_args!("flow.0.congestion={controller}"),
                        format_args!("flow.0.app={app}"),
                        format_args!("flow.0.ack={ack}"),
                    ],
                );
                result.flows[0].goodput_bps / 1e6
            });
            println!("{controller}, {app}: {rates:.2?} Mbit/s through a window of 64 KiB");
            assert!(
                rates[0] >= 0.98 * rates[1],
                "{controller}, {app}: {rates:?}"
            );
        }
    }
}
