//! The messages of client and server of a test: JSON with bounded lengths.
//!
//! On the control connection the client sends [`MAGIC`] and a
//! [`TestRequest`](super::request::TestRequest), then a [`ClientMessage`] for each connection whose
//! results leave bytes out, and in a UDP test one when it has sent everything; all else there is a
//! [`ServerMessage`]. A data connection begins with [`Ticket`]
//! bytes from the client; after that each direction carries nothing but test data until its end.
//! Datagrams of a UDP test: see `udp`.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::omitted::Omitted;
use super::report::Output;
use super::results::FlowResult;

/// First bytes of a control connection; the last one is the version.
pub(crate) const MAGIC: [u8; 9] = *b"tackperf\x03";
/// Largest request, bytes.
pub(crate) const MAX_REQUEST: usize = 4 << 10;
/// Largest answer, bytes: the results of the most connections fit several times.
pub(crate) const MAX_ANSWER: usize = 8 << 20;
/// Messages of the server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerMessage {
    /// Data connections go to this TCP port and begin with this token.
    Accepted { port: u16, token: u64 },
    /// The test is refused.
    Refused { message: String },
    /// The server is busy; another attempt may succeed.
    Busy { message: String },
    /// All data connections are here: the test begins.
    Started,
    /// The results leave out the first bytes that the server sent on a connection.
    Omitted(Omitted),
    /// A UDP test: the server has sent everything.
    Sent,
    /// The test ended before its end, for this reason.
    Stopped { message: String },
    /// The server's side of the finished test.
    Results {
        flows: Vec<FlowResult>,
        cpu_seconds: f64,
        /// Of those, in user mode.
        #[serde(default)]
        cpu_user_seconds: Option<f64>,
        /// Its intervals, if the request wants them.
        #[serde(default)]
        output: Option<Output>,
    },
}

/// Messages of the client during a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ClientMessage {
    /// The results leave out the first bytes that the client sent on a connection.
    Omitted(Omitted),
    /// A UDP test: the client has sent everything.
    Sent,
}

/// The first bytes of a data connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    pub(crate) token: u64,
    pub(crate) stream: u16,
}

/// Bytes of a [`Ticket`].
pub(crate) const TICKET: u64 = 10;

impl Ticket {
    pub(crate) async fn write<W: AsyncWrite + Unpin>(self, to: &mut W) -> io::Result<()> {
        let mut bytes = [0; TICKET as usize];
        bytes[..8].copy_from_slice(&self.token.to_be_bytes());
        bytes[8..].copy_from_slice(&self.stream.to_be_bytes());
        to.write_all(&bytes).await?;
        to.flush().await
    }

    pub(crate) async fn read<R: AsyncRead + Unpin>(from: &mut R) -> io::Result<Self> {
        Ok(Self {
            token: from.read_u64().await?,
            stream: from.read_u16().await?,
        })
    }
}

/// Sends one message: four bytes of length, big-endian, and JSON.
pub(crate) async fn write_message<W: AsyncWrite + Unpin>(
    to: &mut W,
    message: &impl Serialize,
) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let len = u32::try_from(json.len()).map_err(|_| io::Error::other("a message is too long"))?;
    to.write_all(&len.to_be_bytes()).await?;
    to.write_all(&json).await?;
    to.flush().await
}

/// Reads one message of at most `max` bytes.
pub(crate) async fn read_message<R, T>(from: &mut R, max: usize) -> io::Result<T>
where
    R: AsyncRead + Unpin,
    T: DeserializeOwned,
{
    let len = from.read_u32().await? as usize;
    if len > max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {len} bytes, expected at most {max}"),
        ));
    }
    let mut json = vec![0; len];
    from.read_exact(&mut json).await?;
    serde_json::from_slice(&json).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_round_trip_and_are_bounded() {
        let message = || ServerMessage::Refused {
            message: "no".into(),
        };
        let (mut a, mut b) = tokio::io::duplex(1 << 16);
        write_message(&mut a, &message()).await.unwrap();
        assert_eq!(
            read_message::<_, ServerMessage>(&mut b, MAX_REQUEST)
                .await
                .unwrap(),
            message()
        );
        write_message(&mut a, &message()).await.unwrap();
        assert!(read_message::<_, ServerMessage>(&mut b, 10).await.is_err());
        let (mut a, mut b) = tokio::io::duplex(64);
        a.write_all(&[0, 0, 0, 2, b'n', b'o']).await.unwrap();
        assert!(read_message::<_, ServerMessage>(&mut b, 10).await.is_err());
    }
}
