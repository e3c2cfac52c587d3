//! Responses that nobody asked for.

use super::*;

/// Responses that nobody asked for are acknowledged, as every frame is, and change nothing.
#[test]
fn made_up_responses_change_nothing() {
    let mut script = start(1_000, 30);
    let made_up = Addba {
        seq: 0,
        retry: false,
        token: 0,
        category: AccessCategory::BestEffort,
        kind: AddbaKind::Response,
    };
    // Before there was a request.
    script.station = Station::new(NodeId::AP, Arc::new(negotiated()), 100, None, 1);
    script.addba(PEER, made_up);
    script.enqueue(0..30);
    let request = asked(&script.must());
    script.ack(PEER);
    script.single();
    let wrong = [
        (PEER, request.token.wrapping_add(1), request.category),
        (PEER, request.token.wrapping_sub(1), request.category),
        (OTHER, request.token, request.category),
        (NodeId(900), request.token, request.category),
        (PEER, request.token, AccessCategory::Voice),
        (PEER, request.token, AccessCategory::Background),
    ];
    for (seq, (from, token, category)) in (1..).zip(wrong) {
        let response = Addba {
            seq,
            token,
            category,
            ..made_up
        };
        script.addba(from, response);
        script.single();
    }
    // Another category and another receiver still have to ask.
    script.enqueue_to(PEER, AccessCategory::Voice, 2);
    let voice = asked(&script.must());
    assert_eq!(voice.category, AccessCategory::Voice);
    script.ack(PEER);
    script.single();
    script.response(PEER, &request, 20);
    let data = script.must();
    assert!(seqs(&data).len() > 1);
    script.block_ack(&data);
    assert!(script.station.queued() < 30);
}

/// The same while a request is repeated: one with a wrong token does not end that.
#[test]
fn a_made_up_response_does_not_end_the_repetitions_of_a_request() {
    let mut script = start(1_000, 5);
    let request = asked(&script.must());
    let wrong = Addba {
        token: request.token.wrapping_add(9),
        ..request
    };
    script.response(PEER, &wrong, 0);
    let again = asked(&script.must());
    assert_eq!((again.seq, again.retry), (request.seq, true));
    script.ack(PEER);
    script.response(PEER, &request, 1);
    assert_eq!(seqs(&script.must()).len(), 5);
}
