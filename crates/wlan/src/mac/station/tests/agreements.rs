//! Set-up of Block ACK agreements when frames are lost, late, repeated or made up.

mod made_up;

use super::*;
use crate::frame::{Addba, AddbaKind, Data};
use crate::mac::Agreements;
use crate::mac::config::{ADDBA_RESPONSE_TIMEOUT, ADDBA_RETRY_INTERVAL};

fn negotiated() -> MacConfig {
    MacConfig {
        agreements: Agreements::Negotiated,
        ..config(Standard::N)
    }
}

fn packet(to: NodeId, category: AccessCategory, number: u32) -> Msdu<u32> {
    Msdu {
        dst: to,
        category,
        ..msdu(number)
    }
}

/// What goes on the air, and what of it is acknowledged.
impl Script {
    /// The next PPDU before `until`, in microseconds, and its end.
    fn next(&mut self, until: u64) -> Option<Ppdu<u32>> {
        loop {
            let at = self.station.poll_timeout()?;
            if at.as_micros() >= until {
                return None;
            }
            let at = at.max(self.at());
            self.now = at.as_micros();
            if let Some(ppdu) = self.station.handle_timeout(at) {
                self.station.on_busy(at);
                self.sent(&ppdu);
                return Some(ppdu);
            }
        }
    }

    fn must(&mut self) -> Ppdu<u32> {
        self.next(u64::MAX).expect("something goes on the air")
    }

    fn ack(&mut self, from: NodeId) {
        self.now += 16;
        self.hear(from, Frame::ACK, len::ACK);
    }

    /// All frames of an A-MPDU came.
    fn block_ack(&mut self, ppdu: &Ppdu<u32>) {
        let Frame::Data(data) = &ppdu.frame else {
            panic!("{ppdu:?} is no data")
        };
        self.now += 16;
        let answer = Frame::BlockAck {
            category: data.category,
            start: data.mpdus[0].seq,
            bitmap: (1 << data.mpdus.len()) - 1,
            carried: Vec::new(),
        };
        self.hear(ppdu.to.unwrap(), answer, len::BLOCK_ACK);
    }

    /// An ADDBA frame comes, and is acknowledged.
    fn addba(&mut self, from: NodeId, addba: Addba) {
        self.now += 50;
        self.hear(from, Frame::Addba(addba), len::ADDBA);
        let at = self.now + 16;
        let ack = self.expect(at);
        assert!(matches!(ack.frame, Frame::Ack { .. }), "{ack:?}");
        assert_eq!(ack.to, Some(from));
        self.sent(&ack);
    }

    /// The response to `request` comes from `from`, as frame `seq` of it.
    fn response(&mut self, from: NodeId, request: &Addba, seq: u16) {
        let kind = AddbaKind::Response;
        let response = Addba {
            kind,
            seq,
            retry: false,
            ..*request
        };
        self.addba(from, response);
    }

    /// A single data frame goes and is acknowledged.
    fn single(&mut self) -> Ppdu<u32> {
        let ppdu = self.must();
        assert_eq!(seqs(&ppdu).len(), 1, "{ppdu:?}");
        self.ack(ppdu.to.unwrap());
        ppdu
    }

    fn enqueue_to(&mut self, to: NodeId, category: AccessCategory, count: u32) {
        for number in 0..count {
            let packet = packet(to, category, number);
            self.station.enqueue(self.at(), to, packet).unwrap();
        }
    }

    /// Nobody answers anything for `micros`. What was sent.
    fn silence(&mut self, micros: u64) -> Vec<Ppdu<u32>> {
        let until = self.now + micros;
        let sent = core::iter::from_fn(|| self.next(until)).collect();
        self.now = until;
        sent
    }
}

fn asked(ppdu: &Ppdu<u32>) -> Addba {
    match ppdu.frame {
        Frame::Addba(addba) if matches!(addba.kind, AddbaKind::Request { .. }) => addba,
        _ => panic!("{ppdu:?} is no request"),
    }
}

fn answered(ppdu: &Ppdu<u32>) -> Addba {
    match ppdu.frame {
        Frame::Addba(addba) if addba.kind == AddbaKind::Response => addba,
        _ => panic!("{ppdu:?} is no response"),
    }
}

fn start(micros: u64, packets: u32) -> Script {
    let mut script = script(negotiated());
    script.now = micros;
    script.enqueue(0..packets);
    script
}

const RESPONSE_US: u64 = ADDBA_RESPONSE_TIMEOUT.as_nanos() as u64 / 1_000;
const RETRY_US: u64 = ADDBA_RETRY_INTERVAL.as_nanos() as u64 / 1_000;

/// A request that nobody acknowledges is repeated as it is, given up, and asked again later as
/// another one. Data goes on meanwhile.
#[test]
fn a_lost_request_is_repeated_given_up_and_asked_again_later() {
    let mut script = start(1_000, 90);
    let first = asked(&script.must());
    for _ in 1..7 {
        let again = asked(&script.must());
        assert_eq!(
            again,
            Addba {
                retry: true,
                ..first
            }
        );
    }
    // The last one is missed after the timeout; from then on single frames, for 200 ms.
    let mut singles = 0;
    let given_up = script.now;
    let mut next = script.must();
    while let Frame::Data(data) = &next.frame {
        assert_eq!((data.mpdus.len(), data.ack), (1, AckPolicy::Normal));
        assert_eq!(u32::from(data.mpdus[0].seq), singles, "the same again");
        singles += 1;
        script.ack(PEER);
        script.now += 5_000;
        next = script.must();
    }
    assert!(singles > 30, "{singles}");
    assert!(script.now - given_up > RETRY_US);
    let again = asked(&next);
    assert_ne!((again.seq, again.token), (first.seq, first.token));
    let start = AddbaKind::Request {
        start: singles as u16,
    };
    assert_eq!((again.kind, again.retry), (start, false));
    // This one comes through.
    script.ack(PEER);
    script.response(PEER, &again, 0);
    let data = script.must();
    assert_eq!(seqs(&data)[0], singles as u16);
    assert_eq!(seqs(&data).len(), 42, "as much as 65535 bytes hold");
    script.block_ack(&data);
}

/// The response is lost: nothing goes for a millisecond after the acknowledgement of the request,
/// then single frames, and an answer in the middle of them is as good as one in time.
#[test]
fn a_late_response_ends_the_single_frames() {
    let mut script = start(1_000, 40);
    let request = asked(&script.must());
    script.ack(PEER);
    let acked = script.now;
    assert_eq!(
        script.station.poll_timeout(),
        Some(Instant::from_micros(acked + RESPONSE_US)),
        "nothing is sent before"
    );
    assert!(script.single().airtime > Duration::ZERO);
    assert!(script.now > acked + RESPONSE_US);
    for _ in 0..3 {
        script.single();
    }
    script.response(PEER, &request, 7);
    let data = script.must();
    assert_eq!((seqs(&data)[0], seqs(&data).len()), (4, 36));
    script.block_ack(&data);
    assert_eq!(script.station.queued(), 0);
    // Nothing more: neither another request nor a Block ACK request.
    assert!(script.silence(2 * RETRY_US).is_empty());
}

/// A frame in the air when the response comes is taken over by the agreement.
#[test]
fn a_response_in_place_of_an_acknowledgement_leaves_the_frame_to_the_agreement() {
    let mut script = start(1_000, 5);
    let request = asked(&script.must());
    script.ack(PEER);
    let missed = script.must();
    assert_eq!(seqs(&missed), [0]);
    script.response(PEER, &request, 7);
    let data = script.must();
    assert_eq!(seqs(&data), [0, 1, 2, 3, 4]);
    let Frame::Data(Data { mpdus, .. }) = &data.frame else {
        unreachable!()
    };
    let retries: Vec<_> = mpdus.iter().map(|mpdu| mpdu.retry).collect();
    assert_eq!(retries, [true, false, false, false, false]);
}

/// The request came through and its acknowledgement did not: the response ends its repetitions.
#[test]
fn a_response_counts_as_an_acknowledgement_of_its_request() {
    let mut script = start(1_000, 5);
    asked(&script.must());
    let request = asked(&script.must());
    script.response(PEER, &request, 7);
    let data = script.must();
    assert_eq!(seqs(&data), [0, 1, 2, 3, 4]);
    script.block_ack(&data);
    assert!(script.silence(2 * RETRY_US).is_empty());
}

/// A station that answers nothing costs its frames their attempts, and another receiver nothing
/// but that time.
#[test]
fn a_station_that_never_answers_wedges_nothing() {
    let mut script = start(1_000, 20);
    script.enqueue_to(OTHER, AccessCategory::BestEffort, 20);
    let (mut requests, mut others, mut agreed) = (0, 0, 0);
    while let Some(ppdu) = script.next(30_000_000) {
        match (&ppdu.frame, ppdu.to) {
            (Frame::Addba(_), Some(PEER)) => requests += 1,
            (Frame::Addba(addba), _) => {
                let addba = *addba;
                script.ack(OTHER);
                script.response(OTHER, &addba, 0);
                agreed += 1;
            }
            (Frame::Data(data), Some(OTHER)) => {
                others += data.mpdus.len();
                script.block_ack(&ppdu);
            }
            (Frame::Data(data), _) => assert_eq!(data.mpdus.len(), 1),
            _ => panic!("{ppdu:?}"),
        }
    }
    let stats = script.station.stats().clone();
    assert_eq!((others, agreed, stats.acked), (20, 1, 20));
    assert_eq!((stats.retry_drops, script.station.queued()), (20, 0));
    assert_eq!(requests, 7, "all of that took less than 200 ms");
    // It comes to life: all is as it should be.
    script.now += RETRY_US;
    script.enqueue(20..23);
    let request = asked(&script.must());
    script.ack(PEER);
    script.response(PEER, &request, 0);
    let data = script.must();
    assert_eq!(seqs(&data), [20, 21, 22]);
    script.block_ack(&data);
    assert!(script.silence(2 * RETRY_US).is_empty());
}

/// Requests are acknowledged and never responded to: one each 200 ms, and the frames go singly.
#[test]
fn a_station_that_never_responds_gets_single_frames() {
    let mut script = start(1_000, 2);
    let (mut requests, mut numbers) = (Vec::new(), Vec::new());
    while script.now < 1_000_000 {
        let ppdu = script.must();
        match &ppdu.frame {
            Frame::Addba(addba) => requests.push((script.now, addba.token)),
            _ => numbers.extend(seqs(&ppdu)),
        }
        script.ack(PEER);
        script.now += 1_000;
        script.enqueue_to(PEER, AccessCategory::BestEffort, 1);
    }
    let tokens: Vec<_> = requests.iter().map(|(_, token)| *token).collect();
    assert_eq!(tokens, [0, 1, 2, 3, 4]);
    for two in requests.windows(2) {
        let apart = two[1].0 - two[0].0;
        assert!((RETRY_US..RETRY_US + 5_000).contains(&apart), "{apart}");
    }
    assert_eq!(numbers, Vec::from_iter(0..numbers.len() as u16));
    assert!(numbers.len() > 500, "{}", numbers.len());
}

/// Each receiver and category has an agreement of its own: one that waits or fails leaves the
/// others alone.
#[test]
fn agreements_are_independent() {
    let mut script = start(1_000, 5);
    let first = asked(&script.must());
    script.ack(PEER);
    // While that one waits, another receiver and another category are served.
    script.enqueue_to(OTHER, AccessCategory::BestEffort, 5);
    let second = asked(&script.must());
    assert_eq!(second.category, AccessCategory::BestEffort);
    script.ack(OTHER);
    script.response(OTHER, &second, 0);
    let data = script.must();
    assert_eq!((data.to, seqs(&data).len()), (Some(OTHER), 5));
    script.block_ack(&data);
    script.enqueue_to(PEER, AccessCategory::Video, 5);
    let third = asked(&script.must());
    assert_eq!(third.category, AccessCategory::Video);
    script.ack(PEER);
    // A response for one category is none for the other.
    script.response(PEER, &third, 0);
    let data = script.must();
    let Frame::Data(video) = &data.frame else {
        panic!("{data:?}")
    };
    assert_eq!(
        (video.category, video.mpdus.len()),
        (AccessCategory::Video, 5)
    );
    script.block_ack(&data);
    script.single();
    script.response(PEER, &first, 1);
    assert_eq!(seqs(&script.must()), [1, 2, 3, 4]);
}

/// The response to an earlier request is that of an agreement from then on: what was given up
/// since has to be told, however often was asked meanwhile.
#[test]
fn a_response_to_an_earlier_request_draws_a_block_ack_request_for_what_was_given_up() {
    let mut script = start(1_000, 90);
    let first = asked(&script.must());
    script.ack(PEER);
    script.single();
    // Number 1 gets no acknowledgement, seven times.
    for _ in 0..7 {
        assert_eq!(seqs(&script.must()), [1]);
    }
    script.single();
    assert_eq!(script.station.stats().retry_drops, 1);
    script.now += RETRY_US;
    // It asks again; that is lost, and the first request is answered.
    let second = asked(&script.must());
    assert_ne!(second.token, first.token);
    script.response(PEER, &first, 0);
    let tells = script.must();
    assert!(
        matches!(tells.frame, Frame::BlockAckReq { start: 3, .. }),
        "{tells:?}"
    );
}

/// What was given up before the request that is answered has not to be told.
#[test]
fn what_was_given_up_before_the_request_is_not_told() {
    let mut script = start(1_000, 90);
    asked(&script.must());
    script.ack(PEER);
    for _ in 0..7 {
        assert_eq!(seqs(&script.must()), [0]);
    }
    script.single();
    script.now += RETRY_US;
    let second = asked(&script.must());
    assert_eq!(second.kind, AddbaKind::Request { start: 2 });
    script.ack(PEER);
    script.response(PEER, &second, 0);
    assert_eq!(seqs(&script.must())[0], 2);
}

fn request(seq: u16, retry: bool, token: u8, start: u16) -> Addba {
    Addba {
        seq,
        retry,
        token,
        category: AccessCategory::BestEffort,
        kind: AddbaKind::Request { start },
    }
}

/// A request whose acknowledgement was lost comes again: there is one response, and a later request
/// takes the place of what waits.
#[test]
fn repeated_requests_have_one_response_and_a_later_one_replaces_it() {
    let mut script = script(negotiated());
    script.now = 1_000;
    script.addba(PEER, request(5, false, 3, 9));
    script.addba(PEER, request(5, true, 3, 9));
    let response = answered(&script.must());
    assert_eq!((response.token, response.retry), (3, false));
    // Its acknowledgement does not come; meanwhile the originator asks again.
    script.addba(PEER, request(6, false, 4, 12));
    let response = answered(&script.must());
    assert_eq!((response.token, response.retry), (4, false));
    script.ack(PEER);
    assert!(script.silence(RETRY_US).is_empty());
    // A copy of the first request, as if it came over another way, changes nothing that stands.
    script.addba(PEER, request(5, true, 3, 9));
    answered(&script.must());
    script.ack(PEER);
    script.receive(&[(12, false), (13, false)], AckPolicy::BlockAck);
    assert_eq!(script.delivered, [12, 13]);
}

/// The response is repeated as often as data is and then given up; the station goes on as before.
#[test]
fn a_response_that_is_not_acknowledged_is_given_up() {
    let mut script = script(negotiated());
    script.now = 1_000;
    script.addba(PEER, request(5, false, 3, 0));
    for attempt in 0..7 {
        assert_eq!(answered(&script.must()).retry, attempt > 0);
    }
    assert!(script.silence(RETRY_US).is_empty());
    // Frames come singly, in whatever order: nothing is held back.
    script.receive(&[(0, false)], AckPolicy::Normal);
    script.must();
    script.receive(&[(2, false)], AckPolicy::Normal);
    script.must();
    assert_eq!(script.delivered, [0, 2]);
    assert_eq!(script.station.poll_timeout(), None);
    // The originator has the response after all, and uses the agreement: it begins after those.
    let data = Data {
        mpdus: Vec::from([Mpdu {
            seq: 3,
            retry: false,
            msdu: msdu(3),
        }]),
        category: AccessCategory::BestEffort,
        ack: AckPolicy::BlockAck,
        more_data: false,
        sync: false,
    };
    let at = script.at();
    script.station.on_data_header(at, PEER, &data, 0);
    script.receive(&[(4, false), (3, false)], AckPolicy::BlockAck);
    assert_eq!(script.delivered, [0, 2, 3, 4]);
}

/// A radio that asks, and is asked by the same peer, does both.
#[test]
fn both_sides_may_ask_at_once() {
    let mut script = start(1_000, 5);
    let ours = asked(&script.must());
    // The other's request in place of the acknowledgement.
    script.addba(PEER, request(0, false, 77, 0));
    let next = script.must();
    let again = asked(&next);
    assert_eq!(
        again,
        Addba {
            retry: true,
            ..ours
        }
    );
    script.ack(PEER);
    let response = answered(&script.must());
    assert_eq!(response.token, 77);
    script.ack(PEER);
    script.response(PEER, &ours, 1);
    let data = script.must();
    assert_eq!(seqs(&data), [0, 1, 2, 3, 4]);
    script.block_ack(&data);
    assert!(script.silence(2 * RETRY_US).is_empty());
}

/// With one attempt for every frame a lost request costs it, and nothing else.
#[test]
fn one_attempt_is_enough_to_go_on() {
    let mut script = script(MacConfig {
        retry_limit: 1,
        ..negotiated()
    });
    script.now = 1_000;
    script.enqueue(0..4);
    asked(&script.must());
    assert_eq!(seqs(&script.must()), [0]);
    assert_eq!(seqs(&script.must()), [1]);
    script.ack(PEER);
    script.now += RETRY_US;
    asked(&script.must());
    assert_eq!(seqs(&script.must()), [2]);
    script.ack(PEER);
    assert_eq!(script.station.queued(), 1, "one frame needs no agreement");
    assert_eq!(seqs(&script.must()), [3]);
    let stats = script.station.stats();
    assert_eq!((stats.acked, stats.retry_drops), (2, 1));
}
