//! Two endpoints, and bytes that show where they belong.

use std::time::Duration;

use tack::{Builder, Endpoint, Listener, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

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

/// Byte number `position` of the stream named `seed`: a shifted, repeated or missing byte shows.
fn byte(seed: u64, position: u64) -> u8 {
    let mixed =
        (position ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 56) as u8
}

/// Writes `len` bytes of the stream named `seed` and ends it.
pub(crate) async fn write_stream(writer: &mut (impl AsyncWrite + Unpin), seed: u64, len: u64) {
    let mut block = vec![0; 64 << 10];
    let mut at = 0;
    while at < len {
        let take = (len - at).min(block.len() as u64);
        for (offset, slot) in block[..take as usize].iter_mut().enumerate() {
            *slot = byte(seed, at + offset as u64);
        }
        writer.write_all(&block[..take as usize]).await.unwrap();
        at += take;
    }
    writer.shutdown().await.unwrap();
}

/// Reads to the end and checks that it is `len` bytes of the stream named `seed`.
pub(crate) async fn check_stream(reader: &mut (impl AsyncRead + Unpin), seed: u64, len: u64) {
    let mut block = vec![0; 64 << 10];
    let mut at = 0;
    loop {
        let got = reader.read(&mut block).await.unwrap();
        if got == 0 {
            break;
        }
        for (offset, read) in block[..got].iter().enumerate() {
            assert_eq!(
                *read,
                byte(seed, at + offset as u64),
                "byte {}",
                at + offset as u64
            );
        }
        at += got as u64;
    }
    assert_eq!(at, len);
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
