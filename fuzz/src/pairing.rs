//! What strangers and people type: tickets, codes, and the messages of a meeting.

use std::sync::Arc;

use tack_pairing::code::{self, Attempt, CurrentCode, Unavailable};
use tack_pairing::meeting::{
    Channel, Connecting, Credential, Host, Intent, MAX_MESSAGE, Message, Refusal, Step, Waiting,
};
use tack_pairing::ticket::{MAX_ADDRESSES, MAX_TEXT, TicketId};
use tack_pairing::{Code, Identity, PublicKey, Rotation, Secret, Ticket};

/// A ticket, as text.
pub fn ticket(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Ticket>() {
        Ok(ticket) => {
            let written = ticket.text();
            assert!(written.len() <= MAX_TEXT && ticket.addresses().len() <= MAX_ADDRESSES);
            let again: Ticket = written.parse().expect("what was written is read");
            assert_eq!(again.text(), written);
            assert_eq!(again.id(), ticket.id());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A code, as text.
pub fn code(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = code::looks_like(&text);
    match text.parse::<Code>() {
        Ok(code) => {
            let again: Code = code.text().parse().expect("what was written is read");
            assert_eq!(again.text(), code.text());
            assert!((1..=code::MAX_NUMBER).contains(&code.number()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The identity with this seed in every byte (PKCS#8, RFC 8410 §10.3).
fn identity(seed: u8) -> Identity {
    let mut pkcs8 = vec![
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    pkcs8.extend_from_slice(&[seed; 32]);
    Identity::from_pkcs8(&pkcs8).expect("a key in PKCS#8")
}

/// A waiting program with one ticket and one code, which knows nobody.
struct TestHost {
    current_code: Arc<CurrentCode>,
    taken: u32,
}

impl Host for TestHost {
    fn serves(&mut self, _: Intent) -> Result<(), Refusal> {
        Ok(())
    }

    fn ticket(&mut self, _: &TicketId) -> Result<Secret, Refusal> {
        Ok(Secret::from_bytes([0x5a; 16]))
    }

    fn bind(&mut self, _: &TicketId, _: &PublicKey) -> Result<(), Refusal> {
        panic!("a ticket was proven without its secret")
    }

    fn code(&mut self, number: u16) -> Result<Attempt, Unavailable> {
        let attempt = self.current_code.take(number)?;
        self.taken += 1;
        Ok(attempt)
    }

    fn meet(&mut self, _: &PublicKey) -> Result<(), Refusal> {
        panic!("a code was proven without its words")
    }

    fn admit(&mut self, _: &PublicKey, rotations: &[Rotation]) -> Result<(), Refusal> {
        let known = identity(9).public_key();
        assert!(!tack_pairing::leads(
            &known,
            &identity(1).public_key(),
            rotations
        ));
        Err(Refusal::UnknownKey)
    }
}

/// Messages, each behind a byte with its length, to a waiting side and to connecting ones.
pub fn meeting(bytes: &[u8]) {
    let end = |own: u8, peer: u8| Channel {
        exporter: [3; 32],
        own_key: identity(own).public_key(),
        peer_key: identity(peer).public_key(),
    };
    let mut host = TestHost {
        current_code: CurrentCode::new("7-guitarist-orca".parse().ok()),
        taken: 0,
    };
    // One whose key is known, one that waits for a code, and one of each that connects.
    let mut waiting = [
        Waiting::new(end(2, 1), identity(2), Vec::new()),
        Waiting::new(end(4, 1), identity(2), Vec::new()),
    ];
    let code = Credential::Code("7-guitarist-tiger".parse().expect("a code"));
    let known = Credential::Known(vec![identity(9).public_key()]);
    let mut connecting: Vec<Connecting> = [code, known]
        .iter()
        .filter_map(|credential| {
            let own = identity(1);
            Connecting::begin(end(1, 2), Intent::Send, credential, own, Vec::new()).ok()
        })
        .map(|(machine, _)| machine)
        .collect();
    let mut rest = bytes;
    while let Some((len, tail)) = rest.split_first() {
        let (message, tail) = tail.split_at(tail.len().min(usize::from(*len)));
        rest = tail;
        if let Ok(read) = Message::decode(message) {
            assert_eq!(read.encode(), message, "one way to write each message");
        }
        for machine in &mut waiting {
            match machine.handle(message, &mut host) {
                Ok(Step::Send(answer) | Step::Close(answer)) => {
                    assert!(answer.len() <= MAX_MESSAGE);
                }
                Ok(other) => panic!("a stranger was let in: {other:?}"),
                Err(failed) => assert!(!failed.to_string().is_empty()),
            }
        }
        for machine in &mut connecting {
            match machine.handle(message) {
                Ok(Step::Send(answer)) => assert!(answer.len() <= MAX_MESSAGE),
                Ok(other) => panic!("a stranger was met: {other:?}"),
                Err(failed) => assert!(!failed.to_string().is_empty()),
            }
        }
    }
    assert!(host.taken <= 1, "a code permits one attempt");
}
