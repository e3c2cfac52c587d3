//! Two endpoints, and bytes between them.

use std::time::Duration;

use tack::{Builder, Endpoint, Listener, Stream};
use tokio::io::AsyncWriteExt;

#[path = "../support/pattern.rs"]
#[allow(dead_code, reason = "shared with the tests over TUN devices")]
mod pattern;

pub(crate) use pattern::{check_stream, write_stream};

/// Long enough for any machine; reached only when something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// An endpoint that listens and one that connects, both set up by `builder`.
pub(crate) struct Pair {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) listener: Listener,
}

impl Pair {
    pub(crate) async fn new(builder: Builder) -> Self {
        let server = builder.clone().build().unwrap();
        let client = builder.build().unwrap();
        let listener = server.listen(tack::DEFAULT_PORT).unwrap();
        Self {
            client,
            server,
            listener,
        }
    }

    /// A connection: the client's end and the server's.
    pub(crate) async fn connect(&mut self) -> (Stream, Stream) {
        let connecting = self.client.connect(self.server.local_addr());
        let (client, server) =
            within(async { tokio::join!(connecting, self.listener.accept()) }).await;
        (client.unwrap(), server.unwrap().0)
    }
}

/// Fails when `work` hangs.
pub(crate) async fn within<F: IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(PATIENCE, work).await.expect("hangs")
}

/// Sends everything back until the other side is done.
pub(crate) async fn echo(stream: Stream) {
    let (mut reader, mut writer) = stream.into_split();
    tokio::io::copy(&mut reader, &mut writer).await.unwrap();
    writer.shutdown().await.unwrap();
}

/// Sends `len` bytes through `echo` and checks what comes back.
pub(crate) async fn through_echo(stream: Stream, seed: u64, len: u64) {
    let (mut reader, mut writer) = stream.into_split();
    let writing = write_stream(&mut writer, seed, len);
    let reading = check_stream(&mut reader, seed, len);
    tokio::join!(writing, reading);
}
