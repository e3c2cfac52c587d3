//! Somebody between client and listener, who passes bytes on, or does not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tack::{Endpoint, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What happens to the bytes of one direction, counted from its first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    /// All pass.
    Pass,
    /// So many pass; then nothing comes any more.
    Stall(u64),
    /// So many pass; then the stream ends.
    Cut(u64),
    /// All pass, the byte at this place changed by these bits.
    Flip(u64, u8),
    /// All pass, with these bytes before the byte at this place.
    Insert(u64, &'static [u8]),
}

/// Passes one connection on, and counts what passes: from the client, from the server.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    pub(crate) passed: Arc<[AtomicU64; 2]>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Relay {
    pub(crate) fn new(server: SocketAddr, from_client: Deed, from_server: Deed) -> Self {
        let endpoint = Endpoint::builder().build().unwrap();
        let listener = endpoint.listen(tack::DEFAULT_PORT).unwrap();
        let address = listener.local_addr();
        let passed: Arc<[AtomicU64; 2]> = Arc::default();
        let counts = Arc::clone(&passed);
        let task = tokio::spawn(async move {
            let (client, _) = listener.accept().await.unwrap();
            let server = endpoint.connect(server).await.unwrap();
            let (client_in, client_out) = client.into_split();
            let (server_in, server_out) = server.into_split();
            tokio::join!(
                pass(client_in, server_out, from_client, &counts[0]),
                pass(server_in, client_out, from_server, &counts[1]),
            );
        });
        Self {
            address,
            passed,
            task,
        }
    }

    /// Bytes that passed: from the client, from the server.
    pub(crate) fn passed(&self) -> [u64; 2] {
        [0, 1].map(|side| self.passed[side].load(Ordering::Relaxed))
    }
}

async fn pass(
    mut from: tack::OwnedReadHalf,
    mut to: tack::OwnedWriteHalf,
    deed: Deed,
    count: &AtomicU64,
) {
    let mut block = [0; 4096];
    loop {
        let at = count.load(Ordering::Relaxed);
        let most = match deed {
            Deed::Stall(most) | Deed::Cut(most) => most - at,
            Deed::Pass | Deed::Flip(..) | Deed::Insert(..) => u64::MAX,
        };
        if most == 0 {
            if matches!(deed, Deed::Stall(_)) {
                std::future::pending::<()>().await;
            }
            break;
        }
        let most = most.min(block.len() as u64) as usize;
        let Ok(len @ 1..) = from.read(&mut block[..most]).await else {
            break;
        };
        if let Deed::Flip(place, bits) = deed
            && (at..at + len as u64).contains(&place)
        {
            block[(place - at) as usize] ^= bits;
        }
        let mut whole = block[..len].to_vec();
        if let Deed::Insert(place, bytes) = deed
            && (at..at + len as u64).contains(&place)
        {
            let place = (place - at) as usize;
            whole.splice(place..place, bytes.iter().copied());
        }
        if to.write_all(&whole).await.is_err() {
            break;
        }
        count.fetch_add(len as u64, Ordering::Relaxed);
    }
    let _ = to.shutdown().await;
}

/// A connection in clear text to `address`.
pub(crate) async fn bare(endpoint: &Endpoint, address: SocketAddr) -> Stream {
    endpoint.connect(address).await.unwrap()
}
