//! The frames of file transfers, read from bytes as both sides read them.

// The program is no library, so its codec is compiled here once more. It needs nothing but the
// standard library.
#[path = "../../crates/cli/src/transfer/protocol/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the program uses the rest"
)]
mod protocol;

use protocol::{HEAD, Head, Kind, MAX_CONTROL, Reply, Request};

/// Reads frames until the input ends or breaks the protocol: each is read as the sender's and as
/// the receiver's. What is understood is written again as it was, but for what follows a greeting,
/// which later versions may use.
pub fn transfer_frames(mut bytes: &[u8]) {
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let Ok(head) = Head::parse(*head) else {
            return;
        };
        assert!(head.kind == Kind::Data || head.len <= MAX_CONTROL);
        let Some((payload, rest)) = rest.split_at_checked(head.len) else {
            return;
        };
        bytes = rest;
        let request = Request::decode(head.kind, payload);
        let reply = Reply::decode(head.kind, payload);
        assert!(
            head.kind == Kind::KeepAlive || request.is_err() || reply.is_err(),
            "a frame of both sides"
        );
        let mut frame = Vec::new();
        if let Ok(request) = &request {
            assert_eq!(request.kind(), head.kind);
            request.encode(&mut frame);
        } else if let Ok(reply) = &reply {
            reply.encode(&mut frame);
        } else {
            continue;
        }
        let (again, written) = frame.split_first_chunk::<HEAD>().expect("a whole frame");
        let again = Head::parse(*again).expect("our own head");
        assert_eq!((again.kind, again.len), (head.kind, written.len()));
        match head.kind {
            // A flag that is not known yet is not written.
            Kind::Hello => {
                let twice = Request::decode(head.kind, written);
                assert_eq!(twice.ok(), request.ok());
            }
            Kind::Welcome => assert_eq!(written, &payload[..written.len()]),
            _ => assert_eq!(written, payload),
        }
    }
}
