//! Messages that use up most of a receive window, each answered by the application.

use super::*;

/// A message of 1,900 bytes in two segments arrives from stream position `start` on, in a window of
/// `window` bytes. What is decided with its end.
fn message(receiver: &mut Receiver, now: Instant, start: u64, window: u64) -> AckDecision {
    let mut decision = AckDecision::Nothing;
    for (from, len) in [(0, MSS), (MSS, 900)] {
        let arrived = from + len;
        receiver.received_to = StreamOffset(start + arrived);
        decision = receiver.policy.on_data(&DataArrival {
            start: StreamOffset(start + from),
            received_to: receiver.received_to,
            unacknowledged: arrived,
            peer_mss: MSS,
            push: len < MSS,
            window_left: window - arrived,
            window,
            stamp: Some(DataStamp {
                number: ((start + from) / 950) as u32,
                departure: now.as_micros() as u32,
            }),
            ..DataArrival::in_order(now, len)
        });
    }
    decision
}

#[test]
fn a_message_that_is_answered_soon_needs_no_report_while_a_segment_fits() {
    let mut receiver = Receiver::new("tack");
    let window = 3_000;
    let threshold = AckDecision::Now(AckReason::Threshold);
    // Nothing is known of answers.
    assert_eq!(message(&mut receiver, at(100), 1, window), threshold);
    assert!(!receiver.policy.awaits_answer());
    receiver.report(at(100), AckReason::Threshold);
    receiver.policy.on_ack_sent(at(101), Carried::OnData);
    assert!(!receiver.policy.awaits_answer(), "no message waits");
    // Now the answer is waited for, as long as delayed acknowledgements would do.
    let decision = message(&mut receiver, at(200), 1_901, window);
    assert_eq!(decision, AckDecision::Delayed(at(240)));
    assert!(receiver.policy.is_carried() && receiver.policy.awaits_answer());
    receiver.policy.on_ack_sent(at(205), Carried::OnData);
    // Not a single segment fits any more: at once, but after what the application reads now.
    let decision = message(&mut receiver, at(300), 3_801, 2_800);
    assert_eq!(decision, AckDecision::Delayed(at(300)));
    assert_eq!(receiver.policy.on_timer(at(300)), threshold);
}

#[test]
fn a_window_that_is_nearly_used_up_is_told_after_what_is_read_at_once() {
    let mut receiver = Receiver::new("tack");
    let decision = message(&mut receiver, at(100), 1, 2_000);
    assert_eq!(decision, AckDecision::Delayed(at(100)));
    let decision = receiver.policy.on_timer(at(100));
    assert_eq!(decision, AckDecision::Now(AckReason::Window));
}
