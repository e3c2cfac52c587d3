//! HTTP CONNECT as a local program speaks it (RFC 9110 §9.3.6): its request, and our response.

use crate::tunnel::target::TunnelTarget;

/// Longest request without its body, bytes.
pub(crate) const MAX_HEAD: usize = 16 << 10;
/// Most fields of a request.
const MAX_FIELDS: usize = 64;

/// What the bytes of a local program are so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Head {
    /// The beginning of a request.
    Partial,
    /// A request for a tunnel to this target; how many bytes it has.
    Connect(TunnelTarget, usize),
    /// Something else: the response to it.
    Refused(Response),
}

/// A response that ends the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    /// With its reason phrase.
    pub(crate) status: &'static str,
    /// The error of the `Proxy-Status` field (RFC 9209 §2.3), if the fault is not the client's.
    pub(crate) error: Option<&'static str>,
    /// In words.
    pub(crate) details: String,
}

/// The response after which the tunnel's bytes follow.
pub(crate) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

impl Response {
    pub(crate) fn new(status: &'static str, details: impl Into<String>) -> Self {
        Self {
            status,
            error: None,
            details: details.into(),
        }
    }

    /// The bytes of the response.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let status = self.error.map_or_else(String::new, |error| {
            format!("Proxy-Status: tack; error={error}\r\n")
        });
        let allow = match self.status {
            NOT_CONNECT => "Allow: CONNECT\r\n",
            _ => "",
        };
        format!(
            "HTTP/1.1 {}\r\n{status}{allow}Connection: close\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n{}\n",
            self.status,
            self.details.len() + 1,
            self.details,
        )
        .into_bytes()
    }
}

const NOT_CONNECT: &str = "405 Method Not Allowed";
const BAD_REQUEST: &str = "400 Bad Request";

/// Reads what has arrived of a request.
pub(crate) fn parse(bytes: &[u8]) -> Head {
    let refused = |status, details: String| Head::Refused(Response::new(status, details));
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let len = match request.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => return Head::Partial,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return refused(
                "431 Request Header Fields Too Large",
                format!("a request has at most {MAX_HEAD} bytes and {MAX_FIELDS} fields"),
            );
        }
        Err(error) => return refused(BAD_REQUEST, format!("not a request of HTTP/1: {error}")),
    };
    let path = request.path.unwrap_or_default();
    if request.method != Some("CONNECT") {
        return refused(
            NOT_CONNECT,
            "this proxy serves CONNECT alone (curl --proxytunnel), and SOCKS5 at the same port"
                .to_owned(),
        );
    }
    match path.parse() {
        Ok(target) => Head::Connect(target, len),
        Err(error) => refused(BAD_REQUEST, format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> &'static str {
        match parse(bytes) {
            Head::Refused(response) => response.status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn connect_names_a_target() {
        let request = b"CONNECT Nas.example:443 HTTP/1.1\r\nHost: x\r\n\r\nearly";
        let target = "nas.example:443".parse().unwrap();
        assert_eq!(parse(request), Head::Connect(target, request.len() - 5));
        for len in 0..request.len() - 5 {
            assert_eq!(parse(&request[..len]), Head::Partial, "{len}");
        }
        let six = b"CONNECT [::ffff:127.0.0.1]:80 HTTP/1.0\r\n\r\n";
        let target = "127.0.0.1:80".parse().unwrap();
        assert_eq!(parse(six), Head::Connect(target, six.len()));
    }

    #[test]
    fn anything_else_has_a_response() {
        assert!(status(b"GET http://nas/ HTTP/1.1\r\n\r\n").starts_with("405"));
        for wrong in [
            &b"CONNECT nas HTTP/1.1\r\n\r\n"[..],
            b"CONNECT nas:0 HTTP/1.1\r\n\r\n",
            b"CONNECT http://nas:80/ HTTP/1.1\r\n\r\n",
            b"CONNECT nas:80 HTTP/2.0\r\n\r\n",
            b"CONNECT nas:80 HTTP/1.1\r\nno colon\r\n\r\n",
            b"\x16\x03\x01\x02\0",
        ] {
            assert!(status(wrong).starts_with("400"), "{wrong:?}");
        }
        let long = [b"CONNECT nas:80 HTTP/1.1\r\nA: ", &[b'a'; MAX_HEAD][..]].concat();
        assert!(status(&long).starts_with("431"));
        let many = format!("CONNECT nas:80 HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65));
        assert!(status(many.as_bytes()).starts_with("431"));
    }

    #[test]
    fn a_response_says_its_length() {
        let response = Response {
            error: Some("connection_refused"),
            ..Response::new("502 Bad Gateway", "connection refused")
        };
        let text = String::from_utf8(response.encode()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Proxy-Status: tack; error=connection_refused\r\n"));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }
}
