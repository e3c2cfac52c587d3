//! Standard input and output as the local end of a tunnel, for `tack connect`.

use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncWrite, Stdout};
use tokio::time::timeout;

use super::pump::Direction;
use crate::exit::OutputClosed;
use crate::meeting::PeerStream;
use crate::transfer::channel::Writer;

/// How often it is looked whether the connection is over in both directions, once the peer has
/// ended its own.
const LOOK: Duration = Duration::from_millis(200);

/// Joins standard input and output and a stream of the tunnel, until both directions have ended and
/// the peer has everything. The end of the peer's stream closes standard output, so that who reads
/// it knows; on a terminal, where nobody would, it ends the connection.
///
/// # Errors
/// The first failure of a side, after which neither is of use. It is [`OutputClosed`] where nobody
/// reads standard output any more.
pub(super) async fn join_standard_streams(peer: PeerStream) -> io::Result<()> {
    let (mut peer_reader, mut peer_writer) = peer.into_split();
    let (mut input, mut output) = (tokio::io::stdin(), Output(tokio::io::stdout()));
    let (mut up, mut down) = (Direction::to_peer(), Direction::from_peer());
    let moving = async {
        poll_fn(|cx| {
            let _ = up.poll(cx, &mut input, &mut peer_writer)?;
            down.poll(cx, &mut peer_reader, &mut output)
        })
        .await?;
        if io::stdin().is_terminal() {
            let mut nothing = tokio::io::empty();
            return poll_fn(|cx| up.poll(cx, &mut nothing, &mut peer_writer)).await;
        }
        // The peer may still take what we say.
        loop {
            let rest = poll_fn(|cx| up.poll(cx, &mut input, &mut peer_writer));
            if let Ok(moved) = timeout(LOOK, rest).await {
                return moved;
            }
            let closed = timeout(Duration::ZERO, Writer::closed(&peer_writer));
            if closed.await.is_ok() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
    };
    let moved = moving.await;
    match moved {
        Ok(()) => peer_writer.finished().await,
        Err(error) => {
            peer_writer.abort();
            Err(error)
        }
    }
}

fn closed(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, OutputClosed),
        _ => error,
    }
}

/// Standard output, which is closed when it is shut down.
struct Output(Stdout);

impl AsyncWrite for Output {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes).map_err(closed)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx).map_err(closed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        // The descriptor stays in use: what is opened next must not become standard output.
        let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
        Poll::Ready(Ok(rustix::stdio::dup2_stdout(nowhere)?))
    }
}
