//! Last words to a peer that is turned away.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::Stream;

/// How long a peer that is turned away may take to read it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most that it may send meanwhile, bytes.
const MOST: u64 = 64 << 10;

/// Sends `words` and the end of the stream, and lets the peer read them: a reset would discard them
/// (RFC 2525 §2.17).
pub(super) async fn farewell(stream: &mut Stream, words: &[u8]) {
    let parting = async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        let mut rest = stream.take(MOST);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // A peer that does not listen has heard enough.
    let _ = tokio::time::timeout(PATIENCE, parting).await;
}
