//! Policies and controllers of the application, over real sockets.

use std::time::Duration;

use tack::ack::{AckContract, AckDecision, AckPolicy, AckReason, DataArrival};
use tack::cc::{Ack, Congestion, CongestionController, Init, Metrics};
use tack::{AckPolicyFactory, Coalesce, ControllerFactory, Endpoint};

use crate::pair::{Pair, check_stream, within, write_stream};

#[derive(Debug)]
struct EveryTenth;

impl AckPolicy for EveryTenth {
    fn contract(&self) -> AckContract {
        AckContract::new(Duration::from_millis(20), 10)
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        if arrival.fin || arrival.unacknowledged >= 10 * arrival.peer_mss {
            return AckDecision::Now(AckReason::Threshold);
        }
        AckDecision::Delayed(arrival.now + Duration::from_millis(20))
    }
}

#[derive(Debug)]
struct Fixed(u64);

impl CongestionController for Fixed {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_congestion(&mut self, _congestion: &Congestion) {}
    fn on_mss(&mut self, _mss: u64) {}
    fn cwnd(&self) -> u64 {
        self.0
    }
    fn metrics(&self) -> Metrics {
        Metrics::phase("fixed")
    }
}

#[tokio::test]
async fn an_endpoint_runs_the_policy_and_the_controller_that_it_was_given() {
    const LEN: u64 = 2 << 20;
    let builder = Endpoint::builder()
        .coalesce(Coalesce::Off)
        .ack_policy(AckPolicyFactory::new("tenth", || EveryTenth))
        .controller(ControllerFactory::new("fixed", |_: &Init| Fixed(300_000)));
    let mut pair = Pair::new(builder).await;
    let (mut client, mut server) = pair.connect().await;
    let writing = write_stream(&mut client, 11, LEN);
    let reading = check_stream(&mut server, 11, LEN);
    within(async { tokio::join!(writing, reading) }).await;
    assert_eq!(client.stats().cwnd, 300_000);
    let stats = server.stats();
    assert_eq!(stats.acks_tack, 0);
    // Timers and window updates add some; every second segment would be 700.
    assert!(
        (LEN / 14_600..400).contains(&stats.acks),
        "{} acknowledgements",
        stats.acks
    );
}
