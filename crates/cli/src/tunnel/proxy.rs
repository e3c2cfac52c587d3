//! `tack proxy`: SOCKS5 and HTTP CONNECT on one port of this machine; what is asked for is reached
//! from a peer.

mod association;
mod http;
mod socks;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fast_socks5::ReplyError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::carrier::{Carrier, MAX_CONNECTIONS};
use super::dial::{RequestError, StandardInput, TunnelArgs, TunnelPeer};
use super::message::{Answer, Refusal, Request};
use super::open_files::check_file_limit;
use super::pump::{self, join};
use super::target::TunnelTarget;
use crate::exit::{Exit, Failure};
use crate::observe::{ObserveArgs, tunnels};
use crate::signals::Signals;
use crate::values::listen;

/// How long a local program may take to make its request.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);
/// How long a local program may go on after its request was refused, and how much it may say.
const FAREWELL: Duration = Duration::from_secs(2);
const FAREWELL_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// The machine that runs `tack serve`: a known peer (laptop:), a ticket, a code or an address.
    /// Can be left out beside --ticket-file, --ticket-fd, --code and TACK_TICKET
    #[arg(value_name = "PEER")]
    peer: Option<String>,
    /// Address to listen on, or a port of 127.0.0.1; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1080", value_parser = listen)]
    listen: crate::address::Address,
    /// Listen on an address that is not loopback: everybody who reaches it uses this machine's key
    #[arg(long)]
    allow_remote: bool,
    #[command(flatten)]
    tunnel: TunnelArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// Serves local programs until a signal.
pub(crate) async fn proxy(args: ProxyArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    tokio::select! {
        done = run(args) => done,
        exit = signals.next() => Ok(exit),
    }
}

async fn run(args: ProxyArgs) -> Result<Exit, Failure> {
    use crate::address::{Family, Reach};
    check_file_limit(MAX_CONNECTIONS);
    let resolved = args.listen.resolve(1080, Reach::Anywhere, Family::Any);
    let at = resolved.await?[0];
    if !at.ip().is_loopback() && !args.allow_remote {
        return Err(Failure::usage(format!(
            "{at} is not a loopback address: expected one such as 127.0.0.1:1080, or --allow-remote to let \
             everybody who reaches it use the tunnel"
        )));
    }
    let cannot = |error| Failure::network(format!("cannot listen on {at}: {error}"));
    let listener = TcpListener::bind(at).await.map_err(cannot)?;
    let peer = args.peer.as_deref();
    let target = args.tunnel.target(peer, StandardInput::Free)?;
    let (peer, stream) = TunnelPeer::meet(Arc::new(args.tunnel), target).await?;
    // The peer lets us in: that was the question.
    stream.reset();
    let carrier = Arc::new(Carrier::new(peer));
    let address = listener.local_addr().unwrap_or(at);
    eprintln!(
        "tack: SOCKS5 and HTTP CONNECT at {address} lead to {}",
        carrier.peer.shown()
    );
    loop {
        let place = Arc::clone(&carrier.places).acquire_owned().await;
        let place = place.expect("never closed");
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                carrier.complain(&"cannot accept", &error);
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let carrier = Arc::clone(&carrier);
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = serve(stream, from, &carrier).await {
                carrier.complain(&from, &error);
            }
        });
    }
}

/// Serves one connection of a local program.
///
/// # Errors
/// For a program that speaks neither protocol, and what is worth a line.
async fn serve(stream: TcpStream, from: SocketAddr, carrier: &Carrier) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "made no request");
    match tokio::time::timeout(REQUEST_DEADLINE, stream.peek(&mut first)).await {
        // It went without a word, as programs do that only look whether somebody listens.
        Ok(Ok(0)) => return Ok(()),
        looked => looked.map_err(late)??,
    };
    match first[0] {
        socks::VERSION_5 => serve_socks(stream, from, carrier).await,
        socks::VERSION_4 => {
            farewell(stream, &socks::REFUSED_4).await;
            let words = "speaks SOCKS4: expected SOCKS5 or HTTP CONNECT";
            Err(io::Error::other(words))
        }
        // Methods are tokens (RFC 9110 §5.6.2); those of HTTP are letters.
        b'A'..=b'Z' | b'a'..=b'z' => serve_http(stream, carrier).await,
        byte => {
            pump::reset(stream);
            Err(io::Error::other(format!(
                "began with byte {byte:#04x}: expected SOCKS5 or HTTP CONNECT"
            )))
        }
    }
}

async fn serve_socks(mut stream: TcpStream, from: SocketAddr, carrier: &Carrier) -> io::Result<()> {
    let local = stream.local_addr()?;
    let asking = tokio::time::timeout(REQUEST_DEADLINE, socks::accept(&mut stream));
    let (request, replier) = match asking.await {
        Ok(Ok(asked)) => asked,
        Ok(Err(error)) => {
            farewell(stream, &[]).await;
            return Err(io::Error::other(format!("no SOCKS5 request: {error}")));
        }
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    let target = match request {
        socks::SocksRequest::Connect(target) => target,
        socks::SocksRequest::Associate(said) => {
            let opened = association::open(local, from, said, carrier).await;
            match opened {
                Ok(association) => {
                    replier.succeeded(association.address()).await?;
                    association.run(stream).await;
                }
                Err(error) => {
                    carrier.complain(&"UDP", &error);
                    replier.failed(reply_of(&error)).await?;
                    farewell(stream, &[]).await;
                }
            }
            return Ok(());
        }
    };
    match carrier
        .peer
        .request(&Request::Connect(target.clone()))
        .await
    {
        Ok((peer, Answer::Open(at))) => {
            let _open = tunnels().opened();
            replier.succeeded(at).await?;
            // How it ended both of its ends know.
            let _ = join(stream, peer).await;
        }
        other => {
            let error = unexpected(other);
            carrier.complain(&target, &error);
            replier.failed(reply_of(&error)).await?;
            farewell(stream, &[]).await;
        }
    }
    Ok(())
}

async fn serve_http(mut stream: TcpStream, carrier: &Carrier) -> io::Result<()> {
    let reading = tokio::time::timeout(REQUEST_DEADLINE, read_head(&mut stream));
    let (target, early) = match reading.await {
        Ok(read) => match read? {
            Ok(connect) => connect,
            Err(response) => {
                farewell(stream, &response.encode()).await;
                return Ok(());
            }
        },
        Err(_) => {
            let late = http::Response::new("408 Request Timeout", "the request is not complete");
            farewell(stream, &late.encode()).await;
            return Ok(());
        }
    };
    match carrier
        .peer
        .request(&Request::Connect(target.clone()))
        .await
    {
        Ok((mut peer, Answer::Open(_))) => {
            let _open = tunnels().opened();
            stream.write_all(http::ESTABLISHED).await?;
            // What the program said before it had our response.
            if peer.write_all(&early).await.is_err() {
                peer.reset();
                pump::reset(stream);
                return Ok(());
            }
            let _ = join(stream, peer).await;
        }
        other => {
            let error = unexpected(other);
            carrier.complain(&target, &error);
            farewell(stream, &response_of(&error).encode()).await;
        }
    }
    Ok(())
}

/// The target of a request and what follows it, or the response to what is not a request.
async fn read_head(
    stream: &mut TcpStream,
) -> io::Result<Result<(TunnelTarget, Vec<u8>), http::Response>> {
    let mut bytes = Vec::new();
    loop {
        let room = (http::MAX_HEAD - bytes.len()) as u64;
        if (&mut *stream).take(room).read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match http::parse(&bytes) {
            http::Head::Partial => {}
            http::Head::Connect(target, len) => return Ok(Ok((target, bytes.split_off(len)))),
            http::Head::Refused(response) => return Ok(Err(response)),
        }
    }
}

/// Why there is no connection.
fn unexpected<S>(answered: Result<(S, Answer), RequestError>) -> RequestError {
    match answered {
        Ok(_) => RequestError::Lost("unexpected answer from the other side".into()),
        Err(error) => error,
    }
}

/// Says the last words to a program, and has it hear them: what it has still to say is read, since
/// a connection that is closed before is reset.
async fn farewell(mut stream: TcpStream, words: &[u8]) {
    let telling = async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        let mut rest = (&mut stream).take(FAREWELL_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(FAREWELL, telling).await;
}

/// The reply of SOCKS5 (RFC 1928 §6).
fn reply_of(error: &RequestError) -> ReplyError {
    match error {
        RequestError::Lost(_) => ReplyError::NetworkUnreachable,
        RequestError::Refused(refusal) => match refusal {
            Refusal::NotPermitted => ReplyError::ConnectionNotAllowed,
            Refusal::NoSuchHost | Refusal::LookupFailed | Refusal::Unreachable => {
                ReplyError::HostUnreachable
            }
            Refusal::ConnectionRefused => ReplyError::ConnectionRefused,
            Refusal::TimedOut => ReplyError::TtlExpired,
            Refusal::Malformed
            | Refusal::Busy
            | Refusal::AddressInUse
            | Refusal::Gone
            | Refusal::Failed => ReplyError::GeneralFailure,
        },
    }
}

/// The response of HTTP, with the error that RFC 9209 §2.3 has for it.
fn response_of(error: &RequestError) -> http::Response {
    const BAD_GATEWAY: &str = "502 Bad Gateway";
    const UNAVAILABLE: &str = "503 Service Unavailable";
    const TIMEOUT: &str = "504 Gateway Timeout";
    let (status, name) = match error {
        RequestError::Lost(_) => (UNAVAILABLE, "destination_unavailable"),
        RequestError::Refused(refusal) => match refusal {
            Refusal::NotPermitted => ("403 Forbidden", "http_request_denied"),
            Refusal::NoSuchHost => (BAD_GATEWAY, "dns_error"),
            Refusal::LookupFailed => (TIMEOUT, "dns_timeout"),
            Refusal::ConnectionRefused => (BAD_GATEWAY, "connection_refused"),
            Refusal::Unreachable => (BAD_GATEWAY, "destination_ip_unroutable"),
            Refusal::TimedOut => (TIMEOUT, "connection_timeout"),
            Refusal::Busy => (UNAVAILABLE, "connection_limit_reached"),
            Refusal::Malformed | Refusal::AddressInUse | Refusal::Gone | Refusal::Failed => {
                (BAD_GATEWAY, "proxy_internal_error")
            }
        },
    };
    http::Response {
        error: Some(name),
        ..http::Response::new(status, error.to_string())
    }
}
