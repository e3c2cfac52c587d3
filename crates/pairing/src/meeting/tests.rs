//! Both machines against each other, and each against peers that do not keep to the rules.

use std::sync::Arc;

use super::message::IdentityProof;
use super::proof::{self, Exchange, Role};
use super::*;
use crate::code::{Attempt, Code, CurrentCode, Unavailable};
use crate::rotation::Rotation;
use crate::secret::Secret;
use crate::testing::identity as secret;
use crate::ticket::{Ticket, TicketId};

const CONNECTING: u8 = 1;
const WAITING: u8 = 2;
const MALLORY: u8 = 66;

/// The two ends of one encrypted stream between these keys.
fn stream(exporter: u8, connecting: u8, waiting: u8) -> (Channel, Channel) {
    let (a, b) = (
        secret(connecting).public_key(),
        secret(waiting).public_key(),
    );
    let end = |own_key, peer_key| Channel {
        exporter: [exporter; 32],
        own_key,
        peer_key,
    };
    (end(a, b), end(b, a))
}

/// A waiting program with one ticket and one code.
struct TestHost {
    ticket: Secret,
    expired: bool,
    bound: Option<PublicKey>,
    current_code: Arc<CurrentCode>,
    known: Vec<PublicKey>,
    met: Vec<PublicKey>,
    serves: Intent,
}

const CODE: &str = "7-guitarist-orca";

impl TestHost {
    fn new() -> Self {
        Self {
            ticket: Secret::from_bytes([9; 16]),
            expired: false,
            bound: None,
            current_code: CurrentCode::new(Some(CODE.parse().unwrap())),
            known: Vec::new(),
            met: Vec::new(),
            serves: Intent::Send,
        }
    }

    fn ticket_of(&self, issuer: u8) -> Credential {
        let issuer = secret(issuer).public_key();
        Credential::Ticket(Ticket::new(issuer, self.ticket.clone(), 0, []))
    }
}

impl Host for TestHost {
    fn serves(&mut self, intent: Intent) -> Result<(), Refusal> {
        if intent == self.serves {
            Ok(())
        } else {
            Err(Refusal::Intent)
        }
    }

    fn ticket(&mut self, id: &TicketId) -> Result<Secret, Refusal> {
        match (*id == TicketId::of(&self.ticket), self.expired) {
            (false, _) => Err(Refusal::UnknownTicket),
            (true, true) => Err(Refusal::ExpiredTicket),
            (true, false) => Ok(self.ticket.clone()),
        }
    }

    fn bind(&mut self, _: &TicketId, key: &PublicKey) -> Result<(), Refusal> {
        if *self.bound.get_or_insert(*key) == *key {
            Ok(())
        } else {
            Err(Refusal::BoundTicket)
        }
    }

    fn code(&mut self, number: u16) -> Result<Attempt, Unavailable> {
        self.current_code.take(number)
    }

    fn meet(&mut self, key: &PublicKey) -> Result<(), Refusal> {
        self.met.push(*key);
        Ok(())
    }

    fn admit(&mut self, key: &PublicKey, rotations: &[Rotation]) -> Result<(), Refusal> {
        if self
            .known
            .iter()
            .any(|known| crate::leads(known, key, rotations))
        {
            Ok(())
        } else {
            Err(Refusal::UnknownKey)
        }
    }
}

fn code(text: &str) -> Credential {
    Credential::Code(text.parse().unwrap())
}

fn connecting(channel: Channel, credential: &Credential) -> (Connecting, Vec<u8>) {
    let own = secret(CONNECTING);
    Connecting::begin(channel, Intent::Send, credential, own, Vec::new()).unwrap()
}

fn waiting(channel: Channel) -> Waiting {
    Waiting::new(channel, secret(WAITING), Vec::new())
}

/// What both sides come to.
type Outcome = (Result<Authenticated, Failed>, Result<Authenticated, Failed>);

/// Carries messages until both sides are done.
fn carry(near: &mut Connecting, first: Vec<u8>, far: &mut Waiting, host: &mut TestHost) -> Outcome {
    let mut to_far = first;
    let mut far_met = None;
    loop {
        assert!(to_far.len() <= MAX_MESSAGE);
        let to_near = match far.handle(&to_far, host) {
            Ok(Step::Send(message)) => message,
            Ok(Step::Authenticated { send, met }) => {
                far_met = Some(*met);
                send.unwrap()
            }
            Ok(other) => panic!("{other:?}"),
            Err(failed @ Failed::Refused(_)) => panic!("{failed:?} before anybody refused"),
            Err(Failed::Refusing { refusal, tell }) => {
                let near = near.handle(&tell).unwrap_err();
                return (Err(near), Err(Failed::Refusing { refusal, tell }));
            }
        };
        match near.handle(&to_near) {
            Ok(Step::Send(message)) => to_far = message,
            Ok(Step::Authenticated { send: None, met }) => return (Ok(*met), Ok(far_met.unwrap())),
            Ok(other) => panic!("{other:?}"),
            Err(failed) => {
                let Failed::Refusing { tell, .. } = &failed else {
                    panic!("{failed:?}")
                };
                let far = far.handle(tell, host).unwrap_err();
                return (Err(failed), Err(far));
            }
        }
    }
}

/// Whole meeting over an honest stream.
fn meet(credential: &Credential, keys: (u8, u8), host: &mut TestHost) -> Outcome {
    let (near, far) = stream(3, keys.0, keys.1);
    let (mut near, first) = connecting(near, credential);
    carry(&mut near, first, &mut waiting(far), host)
}

fn refusals(outcome: Outcome) -> (Failed, Refusal) {
    let far = outcome.1.unwrap_err();
    (outcome.0.unwrap_err(), far.refusal())
}

#[test]
fn a_ticket_is_bound_to_the_first_key_that_proves_it() {
    let mut host = TestHost::new();
    let ticket = host.ticket_of(WAITING);
    for _ in 0..2 {
        let (near, far) = meet(&ticket, (CONNECTING, WAITING), &mut host);
        assert_eq!(near.unwrap().peer, secret(WAITING).public_key());
        let far = far.unwrap();
        assert_eq!(far.peer, secret(CONNECTING).public_key());
        assert!(matches!(far.how, ProofMethod::Ticket(_)));
    }
    let (near, far) = refusals(meet(&ticket, (MALLORY, WAITING), &mut host));
    assert_eq!(near, Failed::Refused(Refusal::BoundTicket));
    assert_eq!(far, Refusal::BoundTicket);
    host.expired = true;
    let (near, _) = refusals(meet(&ticket, (CONNECTING, WAITING), &mut host));
    assert_eq!(near, Failed::Refused(Refusal::ExpiredTicket));
}

#[test]
fn a_ticket_is_not_proven_to_another_key_than_it_names() {
    let host = TestHost::new();
    let (near, _) = stream(3, CONNECTING, MALLORY);
    let ticket = host.ticket_of(WAITING);
    let own = secret(CONNECTING);
    let refused = Connecting::begin(near, Intent::Send, &ticket, own, Vec::new());
    assert_eq!(
        refused.err().map(|failed| failed.refusal()),
        Some(Refusal::UnknownKey)
    );
}

#[test]
fn a_proof_of_a_ticket_serves_on_its_stream_only() {
    let mut host = TestHost::new();
    let ticket = host.ticket_of(WAITING);
    let (near, _) = stream(3, CONNECTING, WAITING);
    let (_, first) = connecting(near, &ticket);
    // Another handshake, then another client key with the same exporter.
    for (exporter, client) in [(4, CONNECTING), (3, MALLORY)] {
        let (_, far) = stream(exporter, client, WAITING);
        let failed = waiting(far).handle(&first, &mut host).unwrap_err();
        assert_eq!(failed.refusal(), Refusal::WrongSecret);
        assert_eq!(host.bound, None);
    }
}

#[test]
fn a_code_lets_both_sides_learn_the_long_term_keys_of_each_other() {
    let mut host = TestHost::new();
    // Keys of TLS that are made for this stream.
    let (near, far) = meet(&code(CODE), (71, 72), &mut host);
    assert_eq!(near.unwrap().peer, secret(WAITING).public_key());
    assert_eq!(far.unwrap().peer, secret(CONNECTING).public_key());
    assert_eq!(host.met, [secret(CONNECTING).public_key()]);
    let (near, far) = refusals(meet(&code(CODE), (73, 74), &mut host));
    assert_eq!(near, Failed::Refused(Refusal::CodeUsed));
    assert_eq!(far, Refusal::CodeUsed);
}

#[test]
fn wrong_words_burn_the_code_and_both_sides_hear_of_it() {
    let mut host = TestHost::new();
    let (near, far) = refusals(meet(&code("7-hurricane-orca"), (71, 72), &mut host));
    assert_eq!(near, Failed::Refused(Refusal::WrongSecret));
    assert_eq!(far, Refusal::WrongSecret);
    assert!(host.current_code.is_burnt());
    let (near, _) = refusals(meet(&code(CODE), (71, 72), &mut host));
    assert_eq!(near, Failed::Refused(Refusal::CodeBurnt));
    assert!(host.met.is_empty());
    // The wrong number touches no code.
    let mut host = TestHost::new();
    let (near, _) = refusals(meet(&code("8-guitarist-orca"), (71, 72), &mut host));
    assert_eq!(near, Failed::Refused(Refusal::UnknownCode));
    assert!(!host.current_code.is_burnt());
}

#[test]
fn a_peer_that_goes_away_after_our_message_has_burnt_the_code() {
    let mut host = TestHost::new();
    let (near, far) = stream(3, 71, 72);
    let (_, first) = connecting(near, &code(CODE));
    let mut machine = waiting(far);
    assert!(matches!(
        machine.handle(&first, &mut host),
        Ok(Step::Send(_))
    ));
    // One exchange in flight: a second one hears so, and burns nothing.
    let (near, far) = stream(4, 73, 74);
    let (_, second) = connecting(near, &code(CODE));
    let failed = waiting(far).handle(&second, &mut host).unwrap_err();
    assert_eq!(failed.refusal(), Refusal::CodeBusy);
    assert!(!host.current_code.is_burnt());
    drop(machine);
    assert!(host.current_code.is_burnt());
}

#[test]
fn somebody_between_two_streams_gets_no_one_in() {
    // Mallory ends TLS on both sides and passes every message on: the exporters and keys differ.
    for (near_exporter, far_exporter, to_near, to_far) in [(3, 4, 72, 71), (3, 3, MALLORY, MALLORY)]
    {
        let mut host = TestHost::new();
        let (near, _) = stream(near_exporter, 71, to_near);
        let (_, far) = stream(far_exporter, to_far, 72);
        let (mut near, first) = connecting(near, &code(CODE));
        let (near, far) = refusals(carry(&mut near, first, &mut waiting(far), &mut host));
        assert_eq!(near, Failed::Refused(Refusal::WrongSecret));
        assert_eq!(far, Refusal::WrongSecret);
        assert!(host.current_code.is_burnt() && host.met.is_empty());
    }
}

#[test]
fn a_waiting_side_that_does_not_know_the_code_learns_no_identity() {
    let (near, far) = stream(3, 71, 72);
    let (mut machine, first) = connecting(near, &code(CODE));
    let Ok(Message::Code { pake, .. }) = Message::decode(&first) else {
        panic!()
    };
    let wrong: Code = "7-hurricane-orca".parse().unwrap();
    let (exchange, own) = Exchange::begin(&wrong, &far, Role::Waiting);
    let key = exchange.finish(&pake).unwrap();
    let pake = own.try_into().unwrap();
    let Ok(Step::Send(confirm)) = machine.handle(&Message::Pake { pake }.encode()) else {
        panic!()
    };
    assert!(matches!(
        Message::decode(&confirm),
        Ok(Message::Confirm { .. })
    ));
    let mallory = secret(MALLORY);
    let identity = IdentityProof {
        key: mallory.public_key(),
        signature: proof::sign(&mallory, &far, Role::Waiting),
        rotations: Vec::new(),
    };
    for mac in [key.confirmation(&far), [0; 32]] {
        let identity = identity.clone();
        let message = Message::Confirmed { mac, identity }.encode();
        if let Err(failed) = machine.handle(&message) {
            // The first answer ends it; the machine gives no second chance.
            assert!(matches!(
                failed.refusal(),
                Refusal::WrongSecret | Refusal::Protocol
            ));
        } else {
            panic!("a wrong confirmation was accepted");
        }
    }
}

#[test]
fn our_own_messages_sent_back_prove_nothing() {
    let (near, far) = stream(3, 71, 72);
    let (mut machine, first) = connecting(near, &code(CODE));
    assert_eq!(
        machine.handle(&first).unwrap_err().refusal(),
        Refusal::Protocol
    );
    // The confirmation names the role, so that ours is not theirs.
    let code: Code = CODE.parse().unwrap();
    let (near_channel, _) = stream(3, 71, 72);
    let (a, a_message) = Exchange::begin(&code, &near_channel, Role::Connecting);
    let (b, b_message) = Exchange::begin(&code, &far, Role::Waiting);
    let (a, b) = (a.finish(&b_message).unwrap(), b.finish(&a_message).unwrap());
    let ours = a.confirmation(&near_channel);
    assert!(b.is_confirmed(&far, &ours));
    assert!(!a.is_confirmed(&near_channel, &ours));
}

#[test]
fn an_identity_is_proven_for_this_stream() {
    let mallory = secret(MALLORY);
    let (near, far) = stream(3, 71, 72);
    let signature = proof::sign(&mallory, &near, Role::Connecting);
    let key = mallory.public_key();
    assert!(proof::identity_is_right(
        &key,
        &signature,
        &far,
        Role::Waiting
    ));
    let (_, elsewhere) = stream(4, 71, 72);
    for (key, channel) in [(secret(CONNECTING).public_key(), &far), (key, &elsewhere)] {
        assert!(!proof::identity_is_right(
            &key,
            &signature,
            channel,
            Role::Waiting
        ));
    }
    // A peer that has the code and shows a key that is not its own.
    let mut host = TestHost::new();
    let (mut near, first) = connecting(near, &code(CODE));
    let mut machine = waiting(far);
    let Ok(Step::Send(pake)) = machine.handle(&first, &mut host) else {
        panic!()
    };
    let Ok(Step::Send(confirm)) = near.handle(&pake) else {
        panic!()
    };
    assert!(matches!(
        machine.handle(&confirm, &mut host),
        Ok(Step::Send(_))
    ));
    let stolen = Message::Identity(IdentityProof {
        key: secret(CONNECTING).public_key(),
        signature,
        rotations: Vec::new(),
    });
    let failed = machine.handle(&stolen.encode(), &mut host).unwrap_err();
    assert_eq!(failed.refusal(), Refusal::Protocol);
    assert!(host.met.is_empty());
}

#[test]
fn a_known_key_needs_nothing_else_and_a_rotated_one_its_rotation() {
    let mut host = TestHost::new();
    let known = Credential::Known(vec![secret(WAITING).public_key()]);
    let (near, far) = refusals(meet(&known, (CONNECTING, WAITING), &mut host));
    assert_eq!(near, Failed::Refused(Refusal::UnknownKey));
    assert_eq!(far, Refusal::UnknownKey);
    host.known.push(secret(CONNECTING).public_key());
    let (near, far) = meet(&known, (CONNECTING, WAITING), &mut host);
    assert!(near.is_ok() && far.is_ok());

    // Both sides have new keys; each shows that its old one signed the new one.
    let rotation = |old, new: u8| vec![Rotation::sign(&secret(old), &secret(new).public_key())];
    for (near_rotations, far_rotations, is_met) in [
        (rotation(CONNECTING, 11), rotation(WAITING, 12), true),
        (rotation(CONNECTING, 11), Vec::new(), false),
        (Vec::new(), rotation(WAITING, 12), false),
        (rotation(MALLORY, 11), rotation(MALLORY, 12), false),
    ] {
        let (near, far) = stream(3, 11, 12);
        let (mut near, first) =
            Connecting::begin(near, Intent::Send, &known, secret(11), near_rotations).unwrap();
        let mut far = Waiting::new(far, secret(12), far_rotations);
        let mut host = TestHost::new();
        host.known.push(secret(CONNECTING).public_key());
        let far = far.handle(&first, &mut host);
        let near = match &far {
            Ok(Step::Authenticated { send, .. }) => near.handle(send.as_deref().unwrap()),
            Err(Failed::Refusing { tell, .. }) => near.handle(tell),
            other => panic!("{other:?}"),
        };
        assert_eq!(near.is_ok() && far.is_ok(), is_met);
    }
}

#[test]
fn rotations_are_told_only_to_who_names_an_earlier_key() {
    let rotation = Rotation::sign(&secret(WAITING), &secret(12).public_key());
    for (known, is_told) in [(WAITING, true), (12, true), (MALLORY, false)] {
        let (near, far) = stream(3, 71, 12);
        let (mut near, first) = Connecting::ask(near, secret(known).public_key());
        let mut far = Waiting::new(far, secret(12), vec![rotation]);
        let answer = far.handle(&first, &mut TestHost::new());
        match answer {
            Ok(Step::Close(message)) if is_told => {
                let Ok(Step::Rotations(rotations)) = near.handle(&message) else {
                    panic!()
                };
                assert_eq!(rotations, [rotation]);
            }
            Err(failed) if !is_told => assert_eq!(failed.refusal(), Refusal::UnknownKey),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn two_sides_that_want_the_same_are_told_and_lose_nothing() {
    let mut host = TestHost::new();
    host.serves = Intent::Receive;
    host.known.push(secret(CONNECTING).public_key());
    let ticket = host.ticket_of(WAITING);
    let known = Credential::Known(vec![secret(WAITING).public_key()]);
    let keys = (CONNECTING, WAITING);
    for (credential, keys) in [(ticket, keys), (code(CODE), (71, 72)), (known, keys)] {
        let (near, far) = refusals(meet(&credential, keys, &mut host));
        assert_eq!(near, Failed::Refused(Refusal::Intent));
        assert_eq!(far, Refusal::Intent);
        assert!(host.bound.is_none() && !host.current_code.is_burnt());
    }
}

#[test]
fn a_key_that_is_made_for_codes_serves_for_nothing_else() {
    let known = secret(WAITING).public_key();
    let mut host = TestHost::new();
    host.known.push(secret(71).public_key());
    let (near, far) = stream(3, 71, 72);
    let (_, ask) = Connecting::ask(near, known);
    let failed = waiting(far).handle(&ask, &mut host).unwrap_err();
    assert_eq!(failed.refusal(), Refusal::Protocol);
    let credential = Credential::Known(vec![known]);
    let (_, far) = refusals(meet(&credential, (71, 72), &mut host));
    assert_eq!(far, Refusal::Protocol);
    // Nor does the long-term key serve for codes.
    let (_, far) = refusals(meet(&code(CODE), (71, WAITING), &mut host));
    assert_eq!(far, Refusal::Protocol);
    assert!(!host.current_code.is_burnt());
}

#[test]
fn another_version_is_told() {
    let (near, far) = stream(3, CONNECTING, WAITING);
    let (mut near, mut first) = connecting(near, &Credential::Known(Vec::new()));
    first[10] = 9;
    let Err(Failed::Refusing { refusal, tell }) = waiting(far).handle(&first, &mut TestHost::new())
    else {
        panic!()
    };
    assert_eq!(refusal, Refusal::Version);
    assert_eq!(
        near.handle(&tell).unwrap_err(),
        Failed::Refused(Refusal::Version)
    );
}

#[test]
fn a_message_that_is_not_due_ends_the_meeting_for_good() {
    let mac = [0; 32];
    let (_, far) = stream(3, CONNECTING, WAITING);
    let mut machine = waiting(far);
    let mut host = TestHost::new();
    let failed = machine
        .handle(&Message::Confirm { mac }.encode(), &mut host)
        .unwrap_err();
    assert_eq!(failed.refusal(), Refusal::Protocol);
    // What would have been right comes too late.
    let (near, _) = stream(3, CONNECTING, WAITING);
    let (_, first) = connecting(near, &host.ticket_of(WAITING));
    assert!(machine.handle(&first, &mut host).is_err());
    assert_eq!(host.bound, None);
}

/// One message of each kind, the longest there are.
fn examples() -> Vec<Message> {
    let (_, far) = stream(3, 71, 72);
    let own = secret(WAITING);
    let rotations = vec![Rotation::sign(&secret(5), &own.public_key()); crate::MAX_ROTATIONS];
    let identity = IdentityProof {
        key: own.public_key(),
        signature: proof::sign(&own, &far, Role::Waiting),
        rotations: rotations.clone(),
    };
    vec![
        Message::Ticket {
            intent: Intent::Send,
            id: TicketId([1; 8]),
            proof: [2; 32],
            rotations: rotations.clone(),
        },
        Message::Code {
            intent: Intent::Receive,
            number: 7,
            pake: [3; 33],
        },
        Message::Known {
            intent: Intent::Measure,
            rotations: rotations.clone(),
        },
        Message::Ask {
            known: own.public_key(),
        },
        Message::Pake { pake: [3; 33] },
        Message::Confirm { mac: [4; 32] },
        Message::Confirmed {
            mac: [5; 32],
            identity: identity.clone(),
        },
        Message::Identity(identity),
        Message::Welcome {
            rotations: rotations.clone(),
        },
        Message::Rotations { rotations },
        Message::Refused(Refusal::Busy),
    ]
}

#[test]
fn messages_are_read_as_they_were_written_and_cut_ones_are_not() {
    for message in examples() {
        let bytes = message.encode();
        assert!(bytes.len() <= MAX_MESSAGE);
        assert_eq!(Message::decode(&bytes), Ok(message));
        for len in 0..bytes.len() {
            assert!(Message::decode(&bytes[..len]).is_err());
        }
        assert_eq!(
            Message::decode(&[&bytes[..], &[0]].concat()),
            Err(Malformed::Long)
        );
    }
    assert_eq!(
        Message::decode(&[0x83, 9]),
        Err(Malformed::Unknown("number of rotations"))
    );
}

proptest::proptest! {
    #[test]
    fn no_bytes_bring_a_machine_down(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        kind in 0usize..11,
        at in 0usize..2048,
        to: u8,
    ) {
        let mut spoilt = examples()[kind].encode();
        let at = at % spoilt.len();
        spoilt[at] = to;
        for message in [&bytes, &spoilt] {
            let (near, far) = stream(3, CONNECTING, WAITING);
            let mut host = TestHost::new();
            let is_met = |step| matches!(step, Ok(Step::Authenticated { .. }));
            assert!(!is_met(waiting(far).handle(message, &mut host)));
            let (mut near, _) = connecting(near, &code(CODE));
            assert!(!is_met(near.handle(message)));
            assert!(host.bound.is_none());
        }
    }
}
