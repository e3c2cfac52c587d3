//! What strangers and peers say to tunnels: programs to the ports of `tack proxy`, and both sides
//! of a tunnel to each other.

// The program is no library, so its codecs are compiled here once more.
#[path = "../../crates/cli/src/tunnel/datagram.rs"]
#[allow(dead_code, unreachable_pub, reason = "the program uses the rest")]
pub(crate) mod datagram;
#[path = "../../crates/cli/src/tunnel/proxy/http.rs"]
#[allow(dead_code, unreachable_pub, reason = "the program uses the rest")]
pub(crate) mod http;
#[path = "../../crates/cli/src/tunnel/message.rs"]
#[allow(dead_code, unreachable_pub, reason = "the program uses the rest")]
pub(crate) mod message;
#[path = "../../crates/cli/src/tunnel/proxy/socks.rs"]
#[allow(dead_code, unreachable_pub, reason = "the program uses the rest")]
pub(crate) mod socks;
#[path = "../../crates/cli/src/tunnel/target.rs"]
#[allow(dead_code, unreachable_pub, reason = "the program uses the rest")]
pub(crate) mod target;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http::Head;
use message::{Answer, Request};
use socks::SocksRequest;
use target::TunnelTarget;

/// The result of a future that waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits for more than there is"),
    }
}

fn is_sound(target: &TunnelTarget) {
    assert_ne!(target.port, 0);
    assert_eq!(target.to_string().parse().as_ref(), Ok(target));
}

/// A conversation of SOCKS5 up to the reply, and the same bytes as a datagram. Whatever is asked
/// for is a target that can be written; what is not understood has a short answer.
pub fn socks(bytes: &[u8]) {
    let mut answered = Vec::new();
    let mut stream = tokio::io::join(bytes, &mut answered);
    let asked = at_once(socks::accept(&mut stream));
    let is_request = asked.is_ok();
    if let Ok((request, replier)) = asked {
        if let SocksRequest::Connect(target) = &request {
            is_sound(target);
        }
        let at = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        at_once(replier.succeeded(at)).expect("a vector takes all");
    }
    assert!(answered.len() <= 12);
    assert!(!is_request || answered.len() == 12);
    if let Some((target, payload)) = at_once(socks::datagram(bytes)) {
        is_sound(&target);
        let mut carried = Vec::new();
        if datagram::encode(&target, payload, &mut carried).is_ok() {
            assert_eq!(datagram::decode(&carried[2..]), Ok((target, payload)));
        }
    }
}

/// The request of a program that may speak HTTP. What was understood from the beginning of the
/// bytes is what all of them say, and each response is one that HTTP understands.
pub fn http_connect(bytes: &[u8]) {
    match http::parse(bytes) {
        Head::Partial => assert!(bytes.len() < http::MAX_HEAD),
        Head::Connect(target, len) => {
            is_sound(&target);
            assert_eq!(http::parse(&bytes[..len]), Head::Connect(target, len));
        }
        Head::Refused(response) => {
            let encoded = response.encode();
            let mut fields = [httparse::EMPTY_HEADER; 8];
            let mut parsed = httparse::Response::new(&mut fields);
            let head = parsed.parse(&encoded).expect("our own response").unwrap();
            let length = parsed.headers.iter().find(|it| it.name == "Content-Length");
            let length = std::str::from_utf8(length.expect("it has a body").value);
            assert_eq!(length.unwrap().parse(), Ok(encoded.len() - head));
        }
    }
}

/// A message of either side of a tunnel, and a datagram in it: what is understood is written again
/// so that it is understood alike.
pub fn tunnel_messages(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        if let Request::Connect(target) = &request {
            is_sound(target);
        }
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
    if let Ok(answer) = Answer::decode(bytes) {
        assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
    }
    if let Ok((target, payload)) = datagram::decode(bytes) {
        is_sound(&target);
        let mut again = Vec::new();
        datagram::encode(&target, payload, &mut again).expect("it was one");
        assert_eq!(datagram::decode(&again[2..]), Ok((target, payload)));
    }
    let _ = at_once(Request::read(&mut &*bytes));
    let _ = at_once(Answer::read(&mut &*bytes));
    let _ = at_once(datagram::read(&mut &*bytes, &mut Vec::new()));
}
