//! Frames there and back, and what is refused.

use super::fields::push_entry;
use super::frame::*;
use super::{Hello, Kept, Reply, Request};
use proptest::prelude::*;

fn split(frame: &[u8]) -> (Head, &[u8]) {
    let head = Head::parse(frame[..HEAD].try_into().unwrap()).unwrap();
    assert_eq!(head.len, frame.len() - HEAD);
    (head, &frame[HEAD..])
}

fn hello(names: NameRules) -> Hello {
    Hello {
        names,
        session: [5; 16],
        returns: 600,
        taken: Taken::Update,
        dry_run: names == NameRules::Unix,
        delete: names == NameRules::Windows,
        files: 3,
        bytes: u64::MAX,
    }
}

#[test]
fn every_request_round_trips() {
    let entry = Entry {
        name: b"n\xff",
        mode: 0o755,
        modified: Modified {
            seconds: -5,
            nanos: 999_999_999,
        },
        size: Some(7),
        data: 5,
    };
    let unknown = Entry {
        size: None,
        ..entry.clone()
    };
    for request in [
        Request::KeepAlive,
        Request::Hello(hello(NameRules::Unix)),
        Request::Hello(hello(NameRules::Windows)),
        Request::Enter(unknown.clone()),
        Request::Link(unknown.clone(), b"../there\xff"),
        Request::Missing {
            path: b"d/f\xff",
            message: "no",
        },
        Request::Hole(MAX_HOLE),
        Request::Leave,
        Request::File {
            entry: entry.clone(),
            hash: Some([4; 32]),
            has_names: true,
        },
        Request::File {
            entry: unknown,
            hash: None,
            has_names: false,
        },
        Request::Same { first: 3, entry },
        Request::Extras,
        Request::Remove(63),
        Request::LeftOut {
            count: 3,
            why: "sockets",
        },
        Request::Content(7),
        Request::Query {
            first: 1 << 40,
            count: MAX_ASKED,
        },
        Request::Seek(9),
        Request::End([3; 32]),
        Request::Abort("gone"),
        Request::Done,
    ] {
        let mut frame = Vec::new();
        request.encode(&mut frame);
        let (head, payload) = split(&frame);
        assert_eq!(Request::decode(head.kind, payload), Ok(request));
    }
}

#[test]
fn every_reply_round_trips() {
    for reply in [
        Reply::KeepAlive,
        Reply::Welcome(NameRules::Unix),
        Reply::Queued { ahead: 3 },
        Reply::Confirm {
            index: 1,
            size: 2,
            hash: [9; 32],
            name: b"a.1".to_vec(),
        },
        Reply::Want {
            index: 4,
            listed: 1 << 30,
        },
        Reply::Have {
            index: 5,
            kept: Kept::Newer,
        },
        Reply::Groups {
            first: 128,
            values: vec![[7; 32]; usize::from(MAX_ASKED)],
        },
        Reply::Groups {
            first: 0,
            values: Vec::new(),
        },
        Reply::Reject {
            index: u64::MAX,
            reason: Refusal::Exists,
            message: "there".into(),
        },
        Reply::Extra {
            number: 9,
            is_dir: true,
            path: b"a/b\xff".to_vec(),
        },
        Reply::ExtrasEnd { more: true },
        Reply::Removed {
            number: 9,
            message: "busy".into(),
        },
        Reply::Finished { files: 3, bytes: 4 },
        Reply::Fatal {
            reason: Refusal::Busy,
            message: String::new(),
        },
    ] {
        let mut frame = Vec::new();
        reply.encode(&mut frame);
        let (head, payload) = split(&frame);
        assert_eq!(Reply::decode(head.kind, payload), Ok(reply));
    }
}

#[test]
fn lengths_beyond_the_bound_are_refused_before_anything_is_read() {
    assert!(matches!(
        Head::parse([Kind::File as u8, 0, 0, 0x20, 1]),
        Err(Violation::TooLong { .. })
    ));
    assert!(matches!(
        Head::parse([Kind::Data as u8, 0xff, 0xff, 0xff, 0xff]),
        Err(Violation::TooLong { .. })
    ));
    assert_eq!(
        Head::parse([0x42, 0, 0, 0, 0]),
        Err(Violation::UnknownKind(0x42))
    );
}

#[test]
fn long_messages_are_cut_at_a_character() {
    let mut frame = Vec::new();
    Request::Abort(&"é".repeat(MAX_MESSAGE)).encode(&mut frame);
    let (head, payload) = split(&frame);
    assert!(
        matches!(Request::decode(head.kind, payload), Ok(Request::Abort(text)) if text.len() == MAX_MESSAGE)
    );
}

#[test]
fn empty_and_endless_holes_are_malformed() {
    for len in [0, MAX_HOLE + 1, u64::MAX] {
        assert_eq!(
            Request::decode(Kind::Hole, &len.to_be_bytes()),
            Err(Violation::Malformed(Kind::Hole))
        );
    }
}

#[test]
fn names_beyond_the_bound_are_malformed() {
    let mut frame = Vec::new();
    let name = vec![b'a'; MAX_NAME + 1];
    push_entry(
        &mut frame,
        Kind::File,
        &[&[0]],
        &Entry {
            name: &name,
            mode: 0,
            modified: Modified::default(),
            size: None,
            data: 0,
        },
    );
    let (head, payload) = split(&frame);
    assert_eq!(
        Request::decode(head.kind, payload),
        Err(Violation::Malformed(Kind::File))
    );
}

#[test]
fn more_values_than_one_may_ask_for_are_malformed() {
    let mut payload = vec![0; 8 + 32 * (usize::from(MAX_ASKED) + 1)];
    let malformed = Err(Violation::Malformed(Kind::Groups));
    assert_eq!(Reply::decode(Kind::Groups, &payload), malformed);
    payload.truncate(8 + 33);
    assert_eq!(Reply::decode(Kind::Groups, &payload), malformed);
    for count in [0, MAX_ASKED + 1] {
        let mut payload = vec![0; 8];
        payload.extend_from_slice(&count.to_be_bytes());
        let malformed = Err(Violation::Malformed(Kind::Query));
        assert_eq!(Request::decode(Kind::Query, &payload), malformed);
    }
}

proptest! {
    /// Whatever is read is written as it was, but for the end of a greeting, which later versions
    /// may extend.
    #[test]
    fn what_is_read_is_written_again(kind in 0u8..0x90, payload in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut head = [kind, 0, 0, 0, 0];
        head[1..].copy_from_slice(&(payload.len() as u32).to_be_bytes());
        let Ok(head) = Head::parse(head) else { return Ok(()) };
        let mut frame = Vec::new();
        if let Ok(request) = Request::decode(head.kind, &payload) {
            request.encode(&mut frame);
            prop_assert_eq!(&frame[HEAD..], &payload[..]);
        } else if let Ok(reply) = Reply::decode(head.kind, &payload) {
            reply.encode(&mut frame);
            prop_assert_eq!(&frame[HEAD..], &payload[..]);
        }
    }

    #[test]
    fn decoding_never_panics(kind in any::<u8>(), payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut head = [kind, 0, 0, 0, 0];
        head[1..].copy_from_slice(&(payload.len() as u32).to_be_bytes());
        if let Ok(head) = Head::parse(head) {
            let _ = Request::decode(head.kind, &payload);
            let _ = Reply::decode(head.kind, &payload);
        }
    }
}
