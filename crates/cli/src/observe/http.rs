//! Answers scrapers: a reader of requests that is bounded in everything.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Scrapers at a time; a further one is hung up on.
const MAX_SCRAPERS: usize = 16;
/// Bytes of a request at most.
const MAX_REQUEST: usize = 8 << 10;
/// Headers of a request at most.
const MAX_HEADERS: usize = 64;
/// Until when a request must have been asked and answered.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause where the system has no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers with what `text` makes, until dropped.
pub(super) async fn serve(
    listener: TcpListener,
    content_type: &'static str,
    text: impl Fn() -> String + Send + Sync + 'static,
) {
    let text = Arc::new(text);
    let places = Arc::new(Semaphore::new(MAX_SCRAPERS));
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let text = Arc::clone(&text);
        tokio::spawn(async move {
            let answering = answer(&mut stream, content_type, &*text);
            // A scraper that is slow or gone gets nothing more.
            let _ = tokio::time::timeout(PATIENCE, answering).await;
            drop(place);
        });
    }
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// More of it has to come.
    Incomplete,
    Metrics {
        with_body: bool,
    },
    /// A status and the words for it.
    Wrong(u16, &'static str),
}

fn parse(bytes: &[u8]) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Err(httparse::Error::TooManyHeaders) => {
            return Asked::Wrong(431, "Request Header Fields Too Large");
        }
        Err(_) => return Asked::Wrong(400, "Bad Request"),
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_REQUEST => {
            return Asked::Wrong(431, "Request Header Fields Too Large");
        }
        Ok(httparse::Status::Partial) => return Asked::Incomplete,
        Ok(httparse::Status::Complete(_)) => {}
    }
    let path = request.path.unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    match (request.method, path) {
        (Some("GET"), "/metrics") => Asked::Metrics { with_body: true },
        (Some("HEAD"), "/metrics") => Asked::Metrics { with_body: false },
        (Some("GET" | "HEAD"), _) => Asked::Wrong(404, "Not Found"),
        _ => Asked::Wrong(405, "Method Not Allowed"),
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    content_type: &str,
    text: &(impl Fn() -> String + ?Sized),
) -> io::Result<()> {
    let mut request = Vec::with_capacity(1024);
    let asked = loop {
        let room = (MAX_REQUEST - request.len()) as u64;
        if (&mut *stream).take(room).read_buf(&mut request).await? == 0 {
            return Ok(());
        }
        match parse(&request) {
            Asked::Incomplete => {}
            asked => break asked,
        }
    };
    let (status, words, kind, body, with_body) = match asked {
        Asked::Incomplete => return Ok(()),
        Asked::Metrics { with_body } => (200, "OK", content_type, text(), with_body),
        Asked::Wrong(status, words) => {
            let body = format!("{words}: expected GET /metrics\n");
            (status, words, "text/plain", body, true)
        }
    };
    let head = format!(
        "HTTP/1.1 {status} {words}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if with_body {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        let wrong = |request: &[u8]| match parse(request) {
            Asked::Wrong(status, _) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            parse(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"),
            Asked::Metrics { with_body: true }
        );
        assert_eq!(
            parse(b"HEAD /metrics HTTP/1.0\r\n\r\n"),
            Asked::Metrics { with_body: false }
        );
        assert_eq!(parse(b"GET /metr"), Asked::Incomplete);
        assert_eq!(wrong(b"GET / HTTP/1.1\r\n\r\n"), 404);
        assert_eq!(wrong(b"POST /metrics HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(wrong(b"\x16\x03\x01\x02\x00"), 400);
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
        assert_eq!(wrong(many.as_bytes()), 431);
        let long = format!("GET /{}", "x".repeat(MAX_REQUEST));
        assert_eq!(wrong(long.as_bytes()), 431);
    }

    #[tokio::test]
    async fn a_request_in_pieces_is_answered_once() {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 16);
        let serving = tokio::spawn(async move {
            let text = || "metrics\n".to_owned();
            answer(&mut theirs, CONTENT, &text).await
        });
        for piece in ["GET /met", "rics HTTP/1.1\r\n", "\r\n"] {
            ours.write_all(piece.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut answer = String::new();
        ours.read_to_string(&mut answer).await.unwrap();
        serving.await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nmetrics\n"), "{answer}");
    }

    const CONTENT: &str = "text/plain";
}
