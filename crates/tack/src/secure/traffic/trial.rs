//! Records from a peer that has the keys and follows no rules, over a path that spoils them: a
//! script says what happens, and what must hold is asserted. For tests and for a fuzzer.

use std::io::IoSlice;

use rustls::Error as TlsError;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use tokio::io::ReadBuf;

use super::super::config::Setup;
use super::super::handshake::Side;
use super::super::identity::Identity;
use super::super::records::{FRAGMENT, MAX_RECORD, OVERHEAD};
use super::super::verify::{RawKeys, Wanted};
use super::{
    ALERT, APPLICATION_DATA, CONTROL_LEN, Given, HANDSHAKE, MAX_IDLE_RECORDS, RECORDS_HELD,
    Traffic, sealed_len,
};

/// Most that one script makes, bytes.
const MAX_WIRE: usize = 1 << 20;

/// Both sides of a connection after its handshake: client, server.
///
/// # Panics
/// If the handshake fails, which no input causes.
pub(in crate::secure) fn pair() -> (Traffic, Traffic) {
    let setup = || {
        let identity = Identity::generate().expect("an identity");
        Setup::new(identity, b"test".to_vec(), RawKeys::new(Wanted::Anybody))
    };
    let name = ServerName::try_from("tack.invalid").expect("a name");
    let (config, _) = setup().client().expect("a configuration");
    let client = UnbufferedClientConnection::new(config, name).expect("a client");
    let (config, _) = setup().server().expect("a configuration");
    let server = UnbufferedServerConnection::new(config).expect("a server");
    let (mut client, mut server) = (Side::Client(client), Side::Server(server));
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let step = "a handshake";
    while client.advance(&mut to_client, &mut to_server).expect(step) {
        server.advance(&mut to_server, &mut to_client).expect(step);
    }
    let more = server.advance(&mut to_server, &mut to_client).expect(step);
    assert!(!more);
    (
        client.into_traffic().expect("its records"),
        server.into_traffic().expect("its records"),
    )
}

/// What the peer sealed.
#[derive(Default)]
struct Sealed {
    /// The records as they were sealed, one after the other.
    wire: Vec<u8>,
    /// Where each record ends in `wire`, and the plaintext in `text`.
    records: Vec<Record>,
    /// Plaintext of the records of data.
    text: Vec<u8>,
}

struct Record {
    end: usize,
    text: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    /// A message that the rules permit and that carries no data.
    Control,
    /// The end of the stream, as the rules want it.
    End,
    /// Something that a peer that follows the rules does not say.
    Rogue,
}

impl Sealed {
    fn add(&mut self, record: &[u8], text: &[u8], kind: Kind) {
        self.wire.extend(record);
        self.text.extend(text);
        self.records.push(Record {
            end: self.wire.len(),
            text: self.text.len(),
            kind,
        });
    }
}

/// The script: a byte at a time, zeros after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// Bytes of a buffer, at least 1.
    fn size(&mut self) -> usize {
        match self.is_over() {
            true => 2 * FRAGMENT,
            false => self.number() % (2 * FRAGMENT) + 1,
        }
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }
}

/// Runs `script`: how many of its bytes are for the peer (2 bytes), then those, then those for the
/// path and for the reader.
///
/// # Panics
/// If the reader gets anything but the first bytes that the peer sealed as data, or does not get
/// what came whole; if it takes a stream that was cut for a complete one; if it reads on after a
/// fault; if it holds more than its bound; if its alert is not understood.
#[cfg_attr(not(feature = "fuzzing"), allow(unreachable_pub, reason = "for tests"))]
pub fn records(script: &[u8]) {
    let mut script = Script(script);
    let (mut client, mut server) = pair();
    let (peer, reader) = match script.byte() % 2 {
        0 => (&mut client, &mut server),
        _ => (&mut server, &mut client),
    };
    let len = script.number().min(script.0.len());
    let (said, rest) = script.0.split_at(len);
    let sealed = speak(peer, &mut Script(said));
    let mut script = Script(rest);
    let wire = spoil(&sealed, &mut script);
    hear(peer, reader, &sealed, &wire, &mut script);
}

fn speak(peer: &mut Traffic, script: &mut Script<'_>) -> Sealed {
    let mut sealed = Sealed::default();
    while !script.is_over() && sealed.wire.len() < MAX_WIRE {
        match script.byte() % 8 {
            0..=3 => {
                let len = script.number() % (3 * FRAGMENT);
                let start = sealed.text.len() as u8;
                let text: Vec<u8> = (0..len).map(|n| start.wrapping_add(n as u8)).collect();
                for piece in text.chunks(FRAGMENT) {
                    let mut out = vec![0; sealed_len(1)];
                    let slices = [IoSlice::new(piece)];
                    let (taken, len) = peer
                        .seal(&slices, usize::MAX, &mut out)
                        .expect("it can be sealed");
                    assert_eq!(taken, piece.len());
                    sealed.add(&out[..len], piece, Kind::Data);
                }
            }
            4 => {
                let mut out = [0; CONTROL_LEN];
                let ask = script.byte() % 2 == 1;
                let len = peer.renew(ask, &mut out).expect("a new key");
                sealed.add(&out[..len], &[], Kind::Control);
            }
            5 => {
                let mut out = [0; CONTROL_LEN];
                let len = peer.close_notify(&mut out).expect("an end");
                sealed.add(&out[..len], &[], Kind::End);
            }
            _ => {
                let kind = [ALERT, HANDSHAKE, APPLICATION_DATA, script.byte()];
                let kind = kind[usize::from(script.byte() % 4)];
                let message: Vec<u8> = (0..script.byte() % 16).map(|_| script.byte()).collect();
                let mut out = vec![0; message.len() + OVERHEAD];
                let len = peer.control(kind, &message, &mut out);
                let len = len.expect("it can be sealed");
                // The content type is the last byte that is not zero: zeros are padding (RFC 8446,
                // section 5.4).
                let mut inner = [&message[..], &[kind]].concat();
                let end = inner.iter().rposition(|&byte| byte != 0);
                inner.truncate(end.map_or(0, |last| last + 1));
                // With other content types the reader stops. A new key that is announced alone is
                // not used.
                match inner.pop() {
                    Some(APPLICATION_DATA) => sealed.add(&out[..len], &inner, Kind::Data),
                    _ => sealed.add(&out[..len], &[], Kind::Rogue),
                }
            }
        }
    }
    sealed
}

/// What the path makes of it.
fn spoil(sealed: &Sealed, script: &mut Script<'_>) -> Vec<u8> {
    let mut wire = sealed.wire.clone();
    // Where each record lies as it was sealed.
    let place = |number: usize| {
        let number = number % sealed.records.len().max(1);
        let start = match number {
            0 => 0,
            number => sealed.records[number - 1].end,
        };
        let end = sealed.records.get(number).map_or(0, |record| record.end);
        start..end
    };
    for _ in 0..script.byte() % 4 {
        match script.byte() % 6 {
            0 if !wire.is_empty() => {
                let at = (script.number() << 4 | usize::from(script.byte() & 15)) % wire.len();
                wire[at] ^= script.byte().max(1);
            }
            1 => wire.truncate((script.number() << 4) % (wire.len() + 1)),
            2 => {
                // One comes again.
                let record = sealed.wire[place(script.number())].to_vec();
                let at = place(script.number()).end.min(wire.len());
                wire.splice(at..at, record);
            }
            3 => {
                // One does not come.
                let record = place(script.number());
                let end = record.end.min(wire.len());
                wire.drain(record.start.min(end)..end);
            }
            4 => {
                let bytes: Vec<u8> = (0..script.byte() % 32).map(|_| script.byte()).collect();
                let at = place(script.number()).end.min(wire.len());
                wire.splice(at..at, bytes);
            }
            _ => {
                // Two change their places.
                let first = place(script.number());
                let second = place(script.number());
                if first.end <= second.start && second.end <= wire.len() {
                    let mut turned = wire[..first.start].to_vec();
                    turned.extend(&wire[second.clone()]);
                    turned.extend(&wire[first.end..second.start]);
                    turned.extend(&wire[first]);
                    turned.extend(&wire[second.end..]);
                    wire = turned;
                }
            }
        }
    }
    wire
}

fn hear(
    peer: &mut Traffic,
    reader: &mut Traffic,
    sealed: &Sealed,
    mut wire: &[u8],
    script: &mut Script<'_>,
) {
    let honest = wire
        .iter()
        .zip(&sealed.wire)
        .take_while(|(here, sealed)| here == sealed)
        .count();
    let is_spoilt = honest < wire.len();
    let whole = sealed
        .records
        .partition_point(|record| record.end <= honest);
    let whole = &sealed.records[..whole];
    let due = whole.last().map_or(0, |record| record.text);
    let mut got = Vec::new();
    let over = loop {
        let mut buf = vec![0; script.size()];
        let given = if script.byte() % 8 == 7 {
            reader.look()
        } else {
            let mut out = ReadBuf::new(&mut buf);
            let given = reader.give(&mut out);
            // What a record that was refused left in the reader's buffer is not told.
            got.extend(out.filled());
            given
        };
        match given {
            Ok(Given::Bytes | Given::Control) => {}
            Ok(Given::Incomplete) if !wire.is_empty() => {
                let most = script.size();
                reader.receive(most, |incoming, wanted| {
                    let (now, later) = wire.split_at(wire.len().min(wanted.min(most)));
                    incoming.extend(now);
                    wire = later;
                    assert!(incoming.len() <= RECORDS_HELD * MAX_RECORD);
                });
            }
            over => break over,
        }
    };
    assert!(
        sealed.text[..due].starts_with(&got),
        "bytes that were not sealed so, or not sent whole"
    );
    // Where a reader may stop although nothing is wrong with the record after it.
    let mut idle = 0;
    let mut stops = whole.iter().filter(|record| {
        idle = if record.kind == Kind::Data {
            0
        } else {
            idle + 1
        };
        idle > MAX_IDLE_RECORDS || matches!(record.kind, Kind::Rogue | Kind::End)
    });
    let first = stops.next();
    let is_empty_data = |record: &Record, text| record.kind == Kind::Data && record.text == text;
    let mut text = 0;
    let has_empty = whole.iter().any(|record| {
        let is_empty = is_empty_data(record, text);
        text = record.text;
        is_empty
    });
    match (first, &over) {
        (None, Ok(Given::End)) => panic!("a stream that was cut is taken for a complete one"),
        (None, over) if !has_empty => {
            assert_eq!(got.len(), due, "what came whole is read: {over:?}");
            assert!(is_spoilt || over.is_ok(), "{over:?}");
        }
        (Some(record), over) if record.kind == Kind::End && !has_empty => {
            assert_eq!(*over, Ok(Given::End));
            assert_eq!(got.len(), record.text, "all before the end");
        }
        _ => {}
    }
    match over {
        Ok(Given::End) => assert_eq!(reader.look(), Ok(Given::End)),
        Ok(_) => {}
        Err(TlsError::AlertReceived(_)) => {}
        Err(fault) => {
            let mut alert = [0; CONTROL_LEN];
            let len = reader.alert(&fault, &mut alert).expect("an alert");
            peer.receive(usize::MAX, |incoming, _| incoming.extend(&alert[..len]));
            let told = peer.look().expect_err("an alert ends the connection");
            assert!(matches!(told, TlsError::AlertReceived(_)), "{told:?}");
        }
    }
}
