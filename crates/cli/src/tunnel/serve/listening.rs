//! A serving side listens for a peer (`tack forward -R`), for as long as the rules permit it.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::accepted::{Arrivals, PATIENCE};
use super::policy::PeerPolicy;
use crate::tunnel::message::Answer;
use crate::tunnel::target::Host;
use crate::tunnel::{pump, rules};

/// True when a peer with these rules may listen at `at`.
pub(super) fn is_permitted(policy: &PeerPolicy, at: SocketAddr) -> bool {
    let host = Host::Address(at.ip().to_canonical());
    // To listen on any address is to listen on any of this machine.
    let is_near = |_| false;
    let permit = |port| rules::permit(&policy.remote_listen, &host, port, at.ip(), &is_near);
    match at.port() {
        // Any free port is one of all ports.
        0 => permit(1) && permit(u16::MAX),
        port => permit(port),
    }
}

/// Tells the peer of each connection that arrives, until it goes. True when the listening ended
/// because the peer `may` listen no more: that is asked when `rules` change, and of each
/// connection.
pub(super) async fn announce<T>(
    listener: TcpListener,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    arrivals: Arrivals<'_>,
    mut rules: watch::Receiver<T>,
    may: impl Fn() -> bool,
) -> bool {
    let mut byte = [0];
    loop {
        let due = arrivals.expire(Instant::now());
        let next = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let (stream, from) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            // The peer says nothing more; its end ends the listening.
            _ = reader.read(&mut byte) => return false,
            () = end_of_permission(&mut rules, &may) => return true,
            () = next => continue,
        };
        // `tack peers remove` holds from now on.
        if !may() {
            pump::reset(stream);
            return true;
        }
        let _ = stream.set_nodelay(true);
        let Some(number) = arrivals.add(stream, Instant::now()) else {
            continue;
        };
        let answer = Answer::Arrived(number, from);
        let told = tokio::select! {
            told = timeout(PATIENCE, answer.write(&mut writer)) => told,
            () = end_of_permission(&mut rules, &may) => return true,
        };
        // Who does not hear of connections is gone, or never takes them.
        if !matches!(told, Ok(Ok(()))) {
            return false;
        }
    }
}

/// Waits until the rules have changed so that the peer may listen no more.
async fn end_of_permission<T>(rules: &mut watch::Receiver<T>, may: &impl Fn() -> bool) {
    while rules.changed().await.is_ok() {
        if !may() {
            return;
        }
    }
    // Without a sender the rules stay.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{DuplexStream, duplex, split};
    use tokio::net::TcpStream;

    use super::*;
    use crate::tunnel::serve::accepted::AcceptedConnections;

    const PEER: [u8; 32] = [1; 32];

    async fn arrive(address: SocketAddr, peer: &mut DuplexStream) -> (TcpStream, u64) {
        let stream = TcpStream::connect(address).await.unwrap();
        match Answer::read(peer).await.unwrap() {
            Answer::Arrived(number, _) => (stream, number),
            other => panic!("{other:?}"),
        }
    }

    async fn is_reset(mut stream: TcpStream) -> bool {
        let read = stream.read(&mut [0]).await;
        read.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    }

    /// In virtual time.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_nobody_takes_ends() {
        let accepted = AcceptedConnections::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_rules, changes) = watch::channel(());
        let (ours, mut peer) = duplex(1024);
        let (reader, writer) = split(ours);
        let arrivals = accepted.arrivals(PEER, address);
        let serving = announce(listener, reader, writer, arrivals, changes, || true);
        let checks = async {
            let began = Instant::now();
            let (stream, number) = arrive(address, &mut peer).await;
            assert!(is_reset(stream).await);
            assert!(began.elapsed() >= PATIENCE);
            assert!(accepted.take(PEER, number, |_| true).is_none());
            let (mut taken, number) = arrive(address, &mut peer).await;
            assert!(accepted.take([2; 32], number, |_| true).is_none());
            assert!(accepted.take(PEER, number, |_| false).is_none());
            drop(accepted.take(PEER, number, |at| at == address).unwrap());
            assert_eq!(
                taken.read(&mut [0]).await.unwrap(),
                0,
                "an end, not a reset"
            );
            let (waiting, _) = arrive(address, &mut peer).await;
            // The peer goes: what it has not taken goes at once.
            let gone = Instant::now();
            drop(peer);
            assert!(is_reset(waiting).await);
            assert!(gone.elapsed() < PATIENCE);
        };
        let (is_revoked, ()) = tokio::join!(serving, checks);
        assert!(!is_revoked);
    }

    #[tokio::test]
    async fn listening_ends_with_its_permission() {
        for is_told in [true, false] {
            let accepted = AcceptedConnections::default();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (rules, changes) = watch::channel(());
            let (ours, mut peer) = duplex(1024);
            let (reader, writer) = split(ours);
            let arrivals = accepted.arrivals(PEER, address);
            let is_permitted = AtomicBool::new(true);
            let may = || is_permitted.load(Ordering::Relaxed);
            let serving = announce(listener, reader, writer, arrivals, changes, may);
            let checks = async {
                rules.send(()).unwrap();
                let (waiting, _) = arrive(address, &mut peer).await;
                is_permitted.store(false, Ordering::Relaxed);
                match is_told {
                    true => rules.send(()).unwrap(),
                    // The next connection shows it.
                    false => assert!(is_reset(TcpStream::connect(address).await.unwrap()).await),
                }
                assert!(is_reset(waiting).await);
            };
            let (is_revoked, ()) = tokio::join!(serving, checks);
            assert!(is_revoked);
            let refused = TcpStream::connect(address).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        }
    }
}
