//! Records against rustls' own record layer, and against peers that break the rules.

use std::io::{Read, Write};

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::{Connection, ServerConnection};

use super::super::config::tests::setup;
use super::super::handshake::Side;
use super::trial::{pair as two, records};
use super::*;

fn name() -> ServerName<'static> {
    ServerName::try_from("tack.invalid").unwrap()
}

fn written(side: &mut Connection) -> Vec<u8> {
    let mut words = Vec::new();
    while side.wants_write() {
        side.write_tls(&mut words).unwrap();
    }
    words
}

fn hear(side: &mut Connection, mut words: &[u8]) {
    while !words.is_empty() {
        side.read_tls(&mut words).unwrap();
        side.process_new_packets().unwrap();
    }
}

/// The records of a client here, and a server whose records rustls makes and reads.
fn beside_rustls(tickets: usize) -> (Traffic, Connection) {
    let (config, _) = setup().client().unwrap();
    let mut client = Side::Client(UnbufferedClientConnection::new(config, name()).unwrap());
    let mut config = rustls::ServerConfig::clone(&setup().server().unwrap().0);
    config.send_tls13_tickets = tickets;
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(4);
    let mut server = Connection::from(ServerConnection::new(config.into()).unwrap());
    let (mut incoming, mut words) = (Vec::new(), Vec::new());
    while client.advance(&mut incoming, &mut words).unwrap() {
        hear(&mut server, &words);
        words.clear();
        incoming.extend(written(&mut server));
    }
    hear(&mut server, &words);
    (client.into_traffic().unwrap(), server)
}

fn sealed(traffic: &mut Traffic, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; sealed_len(bytes.len().div_ceil(FRAGMENT))];
    let slices = [IoSlice::new(bytes)];
    let (taken, len) = traffic.seal(&slices, usize::MAX, &mut out).unwrap();
    assert_eq!(taken, bytes.len());
    out.truncate(len);
    out
}

fn of_kind(traffic: &mut Traffic, kind: u8, message: &[u8]) -> Vec<u8> {
    let mut out = vec![0; message.len() + OVERHEAD];
    let len = traffic.control(kind, message, &mut out).unwrap();
    out.truncate(len);
    out
}

fn arrive(traffic: &mut Traffic, bytes: &[u8]) {
    traffic.receive(usize::MAX, |incoming, _| incoming.extend(bytes));
}

/// What a reader with buffers of `room` bytes gets until no record is left, and how that ended.
fn read(traffic: &mut Traffic, room: usize) -> (Vec<u8>, Result<Given, TlsError>) {
    let mut got = Vec::new();
    loop {
        let mut buf = vec![0; room];
        let mut out = ReadBuf::new(&mut buf);
        let given = traffic.give(&mut out);
        got.extend(out.filled());
        match given {
            Ok(Given::Bytes | Given::Control) => {}
            over => return (got, over),
        }
    }
}

#[test]
fn rustls_reads_our_records_and_we_read_its() {
    let (mut ours, mut theirs) = beside_rustls(0);
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    for room in [1, 100, FRAGMENT, FRAGMENT + 1, 65_536, 200_000] {
        theirs.set_buffer_limit(None);
        theirs.writer().write_all(&bytes).unwrap();
        arrive(&mut ours, &written(&mut theirs));
        let (got, over) = read(&mut ours, room);
        assert_eq!(over, Ok(Given::Incomplete));
        assert!(got == bytes, "with room for {room}");
        // rustls holds 16 KiB that nobody has read.
        for piece in bytes.chunks(FRAGMENT) {
            hear(&mut theirs, &sealed(&mut ours, piece));
            let mut got = vec![0; piece.len()];
            theirs.reader().read_exact(&mut got).unwrap();
            assert!(got == piece);
        }
        // Each side renews its key now and then, and answers the other's wish.
        theirs.refresh_traffic_keys().unwrap();
        let mut record = [0; CONTROL_LEN];
        let len = ours.renew(true, &mut record).unwrap();
        hear(&mut theirs, &record[..len]);
    }
    let mut record = [0; CONTROL_LEN];
    let len = ours.close_notify(&mut record).unwrap();
    theirs.read_tls(&mut &record[..len]).unwrap();
    let state = theirs.process_new_packets().unwrap();
    assert!(state.peer_has_closed());
    theirs.send_close_notify();
    arrive(&mut ours, &written(&mut theirs));
    assert_eq!(read(&mut ours, 10), (vec![], Ok(Given::End)));
}

#[test]
fn a_ticket_of_another_program_is_passed_over() {
    let (mut ours, mut theirs) = beside_rustls(2);
    theirs.writer().write_all(b"words").unwrap();
    arrive(&mut ours, &written(&mut theirs));
    assert_eq!(
        read(&mut ours, 10),
        (b"words".to_vec(), Ok(Given::Incomplete))
    );
}

#[test]
fn a_key_is_renewed_before_its_limit() {
    let (mut client, mut server) = two();
    let limit = client.kernel.key_limit();
    assert_eq!(limit, 1 << 24);
    // As after that many records: both sides count alike.
    client.sealer.skip_to(limit - 1);
    server.opener.skip_to(limit - 1);
    let last = sealed(&mut client, b"the last of its key, ");
    assert_eq!(client.sealer.records(), limit);
    let first = sealed(&mut client, b"the first of the next");
    assert_eq!(client.sealer.records(), 1);
    assert_eq!(first.len(), CONTROL_LEN + OVERHEAD + 21);
    arrive(&mut server, &[last, first].concat());
    let (got, over) = read(&mut server, 100);
    assert_eq!(over, Ok(Given::Incomplete));
    assert_eq!(got, b"the last of its key, the first of the next");
}

#[test]
fn a_wish_for_a_renewal_is_followed_once_by_the_next_write() {
    let (mut client, mut server) = two();
    for _ in 0..3 {
        let mut record = [0; CONTROL_LEN];
        let len = client.renew(true, &mut record).unwrap();
        arrive(&mut server, &record[..len]);
    }
    assert_eq!(read(&mut server, 10).1, Ok(Given::Incomplete));
    assert!(server.is_renewal_wanted());
    let answer = sealed(&mut server, b"x");
    assert_eq!(answer.len(), CONTROL_LEN + OVERHEAD + 1);
    assert!(!server.is_renewal_wanted());
    arrive(&mut client, &answer);
    assert_eq!(
        read(&mut client, 10),
        (b"x".to_vec(), Ok(Given::Incomplete))
    );
}

#[test]
fn messages_against_the_rules_end_the_connection() {
    let cases: [(u8, &[u8]); 14] = [
        (ALERT, &[]),
        (ALERT, &[1]),
        (ALERT, &[1, 0, 0]),
        (20, &[1]),
        (24, &[1, 0]),
        (HANDSHAKE, &[]),
        (HANDSHAKE, &[KEY_UPDATE]),
        (HANDSHAKE, &[KEY_UPDATE, 0, 0, 2, 0]),
        (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 2]),
        (HANDSHAKE, &[KEY_UPDATE, 0, 0, 0]),
        (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0, KEY_UPDATE, 0, 0, 1, 0]),
        // A client offers no tickets, and no hello comes now.
        (HANDSHAKE, &[NEW_SESSION_TICKET, 0, 0, 0]),
        (HANDSHAKE, &[1, 0, 0, 0]),
        (HANDSHAKE, &[KEY_UPDATE, 255, 255, 255, 0]),
    ];
    for (kind, message) in cases {
        // As a record of its own that fits, and one that is opened in place.
        for room in [1, 1000] {
            let (mut client, mut server) = two();
            let mut bytes = sealed(&mut client, b"before");
            bytes.extend(of_kind(&mut client, kind, message));
            bytes.extend(sealed(&mut client, b"after"));
            arrive(&mut server, &bytes);
            let (got, over) = read(&mut server, room);
            let fault = over.expect_err(&format!("{kind} {message:?}"));
            assert!(!matches!(
                fault,
                TlsError::AlertReceived(_) | TlsError::DecryptError
            ));
            assert_eq!(got, b"before", "{kind} {message:?}");
            let mut alert = [0; CONTROL_LEN];
            let len = server.alert(&fault, &mut alert).unwrap();
            arrive(&mut client, &alert[..len]);
            let told = read(&mut client, 10).1.unwrap_err();
            assert!(
                matches!(
                    told,
                    TlsError::AlertReceived(
                        AlertDescription::UnexpectedMessage | AlertDescription::DecodeError
                    )
                ),
                "{kind} {message:?}: {told:?}"
            );
        }
    }
}

#[test]
fn nothing_is_read_after_the_end_and_alerts_are_told() {
    let (mut client, mut server) = two();
    let mut bytes = of_kind(&mut client, ALERT, &[1, 90]);
    bytes.extend(of_kind(&mut client, ALERT, &[1, 0]));
    bytes.extend(sealed(&mut client, b"after the end"));
    arrive(&mut server, &bytes);
    assert_eq!(read(&mut server, 100), (vec![], Ok(Given::End)));
    assert_eq!(server.look(), Ok(Given::End));
    let (mut client, mut server) = two();
    arrive(&mut server, &of_kind(&mut client, ALERT, &[2, 49]));
    let told = TlsError::AlertReceived(AlertDescription::AccessDenied);
    assert_eq!(server.look(), Err(told));
}

#[test]
fn a_look_keeps_what_it_saw_for_the_reader() {
    let (mut client, mut server) = two();
    let bytes = [sealed(&mut client, b"one"), sealed(&mut client, b"two")].concat();
    arrive(&mut server, &bytes[..bytes.len() - 1]);
    assert_eq!(server.look(), Ok(Given::Bytes));
    assert_eq!(server.look(), Ok(Given::Bytes));
    assert_eq!(read(&mut server, 2).0, b"one");
    arrive(&mut server, &bytes[bytes.len() - 1..]);
    assert_eq!(read(&mut server, 100).0, b"two");
}

#[test]
fn records_without_data_are_not_tolerated_for_ever() {
    let kinds: [(u8, &[u8]); 3] = [
        (APPLICATION_DATA, &[]),
        (ALERT, &[1, 90]),
        (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 1]),
    ];
    for (kind, message) in kinds {
        let (mut client, mut server) = two();
        let idle = |client: &mut Traffic, count| {
            let mut bytes = Vec::new();
            for _ in 0..count {
                bytes.extend(of_kind(client, kind, message));
                if kind == HANDSHAKE {
                    client.sealer = Sealer::new(client.kernel.next_sending().unwrap()).unwrap();
                }
            }
            bytes
        };
        let mut bytes = idle(&mut client, MAX_IDLE_RECORDS);
        bytes.extend(sealed(&mut client, b"data"));
        bytes.extend(idle(&mut client, MAX_IDLE_RECORDS));
        arrive(&mut server, &bytes);
        assert_eq!(
            read(&mut server, 100),
            (b"data".to_vec(), Ok(Given::Incomplete))
        );
        arrive(&mut server, &idle(&mut client, 1));
        assert!(matches!(
            read(&mut server, 100).1,
            Err(TlsError::PeerMisbehaved(_))
        ));
    }
}

#[test]
fn what_is_held_is_bounded_and_nothing_when_idle() {
    let (mut client, mut server) = two();
    for (room, most) in [
        (0, 1),
        (1, 1),
        (FRAGMENT - 1, 1),
        (FRAGMENT, 2),
        (1 << 30, RECORDS_HELD),
    ] {
        server.receive(room, |_, wanted| assert_eq!(wanted, most * MAX_RECORD));
    }
    let record = sealed(&mut client, &[7; 1000]);
    arrive(&mut server, &record[..10]);
    server.receive(0, |incoming, wanted| {
        assert_eq!(incoming.len(), 10);
        assert_eq!(wanted, MAX_RECORD - 10);
        incoming.extend(&record[10..]);
    });
    assert_eq!(read(&mut server, 100).0, [7; 1000]);
    server.receive(0, |_, _| ());
    assert_eq!(server.incoming.capacity(), 0);
}

#[test]
fn no_path_and_no_peer_makes_a_reader_take_what_was_not_sent() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..if cfg!(debug_assertions) { 300 } else { 3_000 } {
        let len = next() % 200;
        let mut script: Vec<u8> = (0..len).map(|_| next() as u8).collect();
        // Some of it is for the peer.
        if let [_, high, low, ..] = &mut script[..] {
            (*high, *low) = (0, (next() % (len + 1)) as u8);
        }
        records(&script);
    }
}
