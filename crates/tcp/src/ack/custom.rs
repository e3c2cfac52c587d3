//! A policy of the application: how connections get it, and how they hold it to its contract.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use tack_base::Instant;

use super::policy::{
    AckContract, AckDecision, AckPolicy, AckReason, Carried, DataArrival, FeedbackWriter,
    SegmentOrder,
};

/// Makes the acknowledgement policy of each connection, in place of [`AckKind`](super::AckKind).
///
/// A connection with such a policy is plain TCP in both directions: it neither offers nor agrees to
/// TACK, whose acknowledgements say more than a policy can decide. Two factories are equal when one
/// is a clone of the other.
#[derive(Clone)]
pub struct AckPolicyFactory {
    name: Arc<str>,
    make: Arc<dyn Fn() -> Box<dyn AckPolicy> + Send + Sync>,
}

impl AckPolicyFactory {
    /// A factory of policies that reports call `name`. `make` is called once for each connection,
    /// when it is made, and must not block.
    pub fn new<P: AckPolicy + 'static>(
        name: impl Into<String>,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into().into(),
            make: Arc::new(move || Box::new(make())),
        }
    }

    /// What reports call the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn build(&self) -> Box<dyn FeedbackWriter> {
        Box::new(Held::new((self.make)()))
    }
}

impl fmt::Debug for AckPolicyFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AckPolicyFactory").field(&self.name).finish()
    }
}

impl PartialEq for AckPolicyFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.make, &other.make)
    }
}

/// RFC 9293 §3.8.6.3 (MUST-40): an acknowledgement waits less than half a second.
const LONGEST_DELAY: Duration = Duration::from_millis(499);

/// Shortest time between acknowledgements that nothing but the policy asks for: without it a policy
/// that asks again at once would send nothing else.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// A foreign policy, held to its contract.
#[derive(Debug)]
struct Held {
    policy: Box<dyn AckPolicy>,
    /// When the first segment came that waits for its acknowledgement.
    waiting_since: Option<Instant>,
}

impl Held {
    fn new(policy: Box<dyn AckPolicy>) -> Self {
        Self {
            policy,
            waiting_since: None,
        }
    }

    /// What is done where the policy decided `decision` and something waits since `since`.
    fn bound(&self, now: Instant, since: Instant, decision: AckDecision) -> AckDecision {
        let deadline = since + self.contract().max_delay;
        match decision {
            AckDecision::Now(_) => decision,
            _ if deadline <= now => AckDecision::Now(AckReason::Timer),
            AckDecision::Delayed(at) => AckDecision::Delayed(at.min(deadline)),
            AckDecision::Nothing => AckDecision::Delayed(deadline),
        }
    }
}

impl AckPolicy for Held {
    fn contract(&self) -> AckContract {
        let contract = self.policy.contract();
        AckContract::new(
            contract.max_delay.min(LONGEST_DELAY),
            contract.max_segments.max(1),
        )
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        let since = *self.waiting_since.get_or_insert(arrival.now);
        let decision = self.policy.on_data(arrival);
        let most = u64::from(self.contract().max_segments).saturating_mul(arrival.peer_mss);
        if arrival.unacknowledged >= most && !matches!(decision, AckDecision::Now(_)) {
            return AckDecision::Now(match arrival.order {
                SegmentOrder::InOrder => AckReason::Threshold,
                _ => AckReason::Loss,
            });
        }
        self.bound(arrival.now, since, decision)
    }

    fn on_timer(&mut self, now: Instant) -> AckDecision {
        let decision = self.policy.on_timer(now);
        match (self.waiting_since, decision) {
            // A deadline that has passed would be asked about forever.
            (_, AckDecision::Delayed(at)) if at <= now => AckDecision::Now(AckReason::Timer),
            (Some(since), _) => self.bound(now, since, decision),
            (None, _) => decision,
        }
    }

    fn on_ack_sent(&mut self, now: Instant, carried: Carried) -> Option<Instant> {
        self.waiting_since = None;
        let again = self.policy.on_ack_sent(now, carried)?;
        Some(again.max(now + SHORTEST_INTERVAL))
    }

    fn on_handshake(&mut self, round_trip: Duration) {
        self.policy.on_handshake(round_trip);
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.policy).saturating_add(self.policy.memory())
    }
}

impl FeedbackWriter for Held {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decides the same whatever comes.
    #[derive(Debug)]
    struct Always(AckDecision, AckContract);

    impl AckPolicy for Always {
        fn contract(&self) -> AckContract {
            self.1
        }

        fn on_data(&mut self, _arrival: &DataArrival) -> AckDecision {
            self.0
        }

        fn on_timer(&mut self, _now: Instant) -> AckDecision {
            self.0
        }
    }

    /// Wants to acknowledge again and again.
    #[derive(Debug)]
    struct Restless;

    impl AckPolicy for Restless {
        fn contract(&self) -> AckContract {
            AckContract::new(Duration::ZERO, 1)
        }

        fn on_data(&mut self, _arrival: &DataArrival) -> AckDecision {
            AckDecision::Now(AckReason::Threshold)
        }

        fn on_ack_sent(&mut self, now: Instant, _carried: Carried) -> Option<Instant> {
            Some(now)
        }
    }

    const MSS: u64 = 1000;
    const AT: fn(u64) -> Instant = Instant::from_millis;

    fn held(decision: AckDecision, delay: u64, segments: u32) -> Held {
        let contract = AckContract::new(Duration::from_millis(delay), segments);
        Held::new(Box::new(Always(decision, contract)))
    }

    fn segment(now: u64, unacknowledged: u64) -> DataArrival {
        DataArrival {
            unacknowledged,
            ..DataArrival::in_order(AT(now), MSS)
        }
    }

    #[test]
    fn a_silent_policy_is_held_to_its_delay() {
        let mut held = held(AckDecision::Nothing, 30, 100);
        let due = AckDecision::Delayed(AT(130));
        assert_eq!(held.on_data(&segment(100, MSS)), due);
        assert_eq!(held.on_data(&segment(120, 2 * MSS)), due);
        assert_eq!(held.on_timer(AT(130)), AckDecision::Now(AckReason::Timer));
        held.on_ack_sent(AT(130), Carried::Alone);
        assert_eq!(
            held.on_data(&segment(200, MSS)),
            AckDecision::Delayed(AT(230))
        );
    }

    #[test]
    fn a_silent_policy_is_held_to_its_count() {
        let mut held = held(AckDecision::Nothing, 30, 2);
        assert!(matches!(
            held.on_data(&segment(100, 2 * MSS - 1)),
            AckDecision::Delayed(_)
        ));
        assert_eq!(
            held.on_data(&segment(100, 2 * MSS)),
            AckDecision::Now(AckReason::Threshold)
        );
    }

    #[test]
    fn no_contract_waits_half_a_second() {
        let mut held = held(AckDecision::Delayed(AT(9_000)), 60_000, 0);
        assert_eq!(held.contract().max_segments, 1);
        assert_eq!(
            held.on_data(&segment(100, MSS / 2)),
            AckDecision::Delayed(AT(599))
        );
    }

    #[test]
    fn a_policy_that_asks_again_at_once_gets_a_pause() {
        let mut held = held(AckDecision::Delayed(AT(1)), 30, 2);
        assert_eq!(held.on_timer(AT(5)), AckDecision::Now(AckReason::Timer));
        held.policy = Box::new(Restless);
        assert_eq!(held.on_ack_sent(AT(5), Carried::Alone), Some(AT(6)));
    }

    #[test]
    fn copies_and_disorder_are_answered_within_the_contract_too() {
        for order in [
            SegmentOrder::Duplicate,
            SegmentOrder::OutOfOrder,
            SegmentOrder::FilledGap,
        ] {
            let mut held = held(AckDecision::Nothing, 30, 100);
            let arrival = DataArrival {
                order,
                ..segment(100, 0)
            };
            assert_eq!(held.on_data(&arrival), AckDecision::Delayed(AT(130)));
        }
    }
}
