//! Carries the messages of a meeting over a stream, with a bound on length and on time for each.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tack_pairing::Rotation;
use tack_pairing::meeting::{
    Authenticated, Connecting, Failed, Host, MAX_MESSAGE, Refusal, Step, Waiting,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Time limit of a message. A meeting has at most six messages.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for a peer to read its refusal: two round trips of a slow path.
const FAREWELL: Duration = Duration::from_secs(6);

/// The reason why a meeting failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeetingError {
    /// One side refused the other.
    #[error("{0}")]
    Failed(Failed),
    /// The stream ended early.
    #[error("the connection was lost during the meeting: {0}")]
    Lost(io::Error),
    /// The other side did not answer in time.
    #[error("the other side sent nothing for {} s", PATIENCE.as_secs())]
    Silent,
    /// The other side has our proof of a code, and the meeting ended without its own.
    #[error(
        "the other side did not prove that it knows the code ({0}): the connection broke, or somebody guessed at the code. \
         The code was not shown to anybody else and is used up: use the one that the other side shows next"
    )]
    Unproven(Box<MeetingError>),
}

impl MeetingError {
    /// Why one side refused the other, if it did.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Failed(failed) => Some(failed.refusal()),
            _ => None,
        }
    }
}

/// The result of a connecting side.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Both sides proved themselves; the protocol of the intent follows.
    Authenticated(Box<Authenticated>),
    /// The rotations that were asked for.
    Rotations(Vec<Rotation>),
}

/// The connecting side, whose machine has begun with `first`.
pub(crate) async fn connect<S>(
    stream: &mut S,
    (mut machine, first): (Connecting, Vec<u8>),
) -> Result<Answer, MeetingError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    put(stream, &first).await?;
    loop {
        let is_unproven = machine.awaits_proof_of_code();
        let unproven = |error| match is_unproven {
            true => unproven(error),
            false => error,
        };
        let message = take(stream).await.map_err(unproven)?;
        match machine.handle(&message) {
            Ok(Step::Send(message)) => match put(stream, &message).await {
                // It may have left.
                Err(error) if machine.awaits_proof_of_code() => {
                    return Err(self::unproven(error));
                }
                sent => sent?,
            },
            Ok(Step::Authenticated { send, met }) => {
                if let Some(message) = send {
                    put(stream, &message).await?;
                }
                return Ok(Answer::Authenticated(met));
            }
            Ok(Step::Rotations(rotations)) => return Ok(Answer::Rotations(rotations)),
            // Only a waiting side closes.
            Ok(Step::Close(_)) => return Err(lost(io::ErrorKind::InvalidData)),
            Err(failed) => return Err(unproven(part(stream, failed).await)),
        }
    }
}

/// What went wrong while the other side owed its proof of a code. A wrong code has its own words.
fn unproven(error: MeetingError) -> MeetingError {
    match error {
        MeetingError::Failed(failed) if failed.refusal() == Refusal::WrongSecret => {
            MeetingError::Failed(failed)
        }
        error => MeetingError::Unproven(Box::new(error)),
    }
}

/// The waiting side; `None` when the other side only asked for rotations, or only looked at our key
/// and ended the stream in order.
pub(crate) async fn wait<S>(
    stream: &mut S,
    mut machine: Waiting,
    host: &Mutex<impl Host>,
) -> Result<Option<Box<Authenticated>>, MeetingError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut began = false;
    loop {
        let message = match take(stream).await {
            Ok(message) => message,
            Err(MeetingError::Lost(error)) if !began && is_end(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        began = true;
        let step = {
            let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
            machine.handle(&message, &mut *host)
        };
        match step {
            Ok(Step::Send(message)) => put(stream, &message).await?,
            Ok(Step::Authenticated { send, met }) => {
                if let Some(message) = send {
                    put(stream, &message).await?;
                }
                return Ok(Some(met));
            }
            Ok(Step::Close(message)) => {
                put(stream, &message).await?;
                close(stream).await;
                return Ok(None);
            }
            // Only a connecting side asks.
            Ok(Step::Rotations(_)) => return Err(lost(io::ErrorKind::InvalidData)),
            Err(failed) => return Err(part(stream, failed).await),
        }
    }
}

/// True for a stream that ended where a message might have begun, and not for one that was cut off.
fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
        && !error
            .get_ref()
            .is_some_and(|inner| inner.is::<tack::secure::SecureError>())
}

fn lost(kind: io::ErrorKind) -> MeetingError {
    MeetingError::Lost(kind.into())
}

/// Tells the peer why it is refused, if we refuse it.
async fn part<S>(stream: &mut S, failed: Failed) -> MeetingError
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Failed::Refusing { tell, .. } = &failed
        && put(stream, tell).await.is_ok()
    {
        close(stream).await;
    }
    MeetingError::Failed(failed)
}

/// Ends our stream, and gives the peer a moment to read it to its end.
async fn close<S>(stream: &mut S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let closing = async {
        stream.shutdown().await?;
        let mut rest = [0; 256];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(FAREWELL, closing).await;
}

async fn put<S: AsyncWrite + Unpin>(stream: &mut S, message: &[u8]) -> Result<(), MeetingError> {
    let mut bytes = Vec::with_capacity(2 + message.len());
    bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
    bytes.extend_from_slice(message);
    let writing = async {
        stream.write_all(&bytes).await?;
        stream.flush().await
    };
    within(writing).await
}

async fn take<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Vec<u8>, MeetingError> {
    let reading = async {
        let len = usize::from(stream.read_u16().await?);
        if len > MAX_MESSAGE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the other side sent a message that is too long for a meeting",
            ));
        }
        let mut message = vec![0; len];
        stream.read_exact(&mut message).await?;
        Ok(message)
    };
    within(reading).await
}

async fn within<T>(work: impl Future<Output = io::Result<T>>) -> Result<T, MeetingError> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(MeetingError::Lost),
        Err(_) => Err(MeetingError::Silent),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use tack_pairing::code::{Attempt, CurrentCode, Unavailable};
    use tack_pairing::meeting::{Channel, Credential, Intent};
    use tack_pairing::ticket::TicketId;
    use tack_pairing::{Identity, PublicKey, Secret};

    use super::*;

    struct Codes(Arc<CurrentCode>);

    impl Host for Codes {
        fn serves(&mut self, _: Intent) -> Result<(), Refusal> {
            Ok(())
        }

        fn ticket(&mut self, _: &TicketId) -> Result<Secret, Refusal> {
            Err(Refusal::UnknownTicket)
        }

        fn bind(&mut self, _: &TicketId, _: &PublicKey) -> Result<(), Refusal> {
            Err(Refusal::UnknownTicket)
        }

        fn code(&mut self, number: u16) -> Result<Attempt, Unavailable> {
            self.0.take(number)
        }

        fn meet(&mut self, _: &PublicKey) -> Result<(), Refusal> {
            Ok(())
        }

        fn admit(&mut self, _: &PublicKey, _: &[Rotation]) -> Result<(), Refusal> {
            Err(Refusal::UnknownKey)
        }
    }

    fn host() -> Mutex<Codes> {
        Mutex::new(Codes(CurrentCode::new(Some(
            "7-guitarist-orca".parse().unwrap(),
        ))))
    }

    /// Both ends of a stream with keys made for it, and the long-term identities.
    fn ends() -> (Channel, Channel, Identity, Identity) {
        let make = || Identity::generate().unwrap();
        let (a, b) = (make().public_key(), make().public_key());
        let end = |own_key, peer_key| Channel {
            exporter: [1; 32],
            own_key,
            peer_key,
        };
        (end(a, b), end(b, a), make(), make())
    }

    fn begin(channel: Channel, code: &str, own: &Identity) -> (Connecting, Vec<u8>) {
        let code = Credential::Code(code.parse().unwrap());
        Connecting::begin(channel, Intent::Send, &code, own.clone(), Vec::new()).unwrap()
    }

    #[tokio::test]
    async fn a_code_crosses_the_narrowest_pipe() {
        for (code, is_right) in [("7-guitarist-orca", true), ("7-guitarist-tiger", false)] {
            let (near, far, near_id, far_id) = ends();
            let (mut near_end, mut far_end) = tokio::io::duplex(3);
            let host = host();
            let waiting = Waiting::new(far, far_id.clone(), Vec::new());
            let (near, far) = tokio::join!(
                connect(&mut near_end, begin(near, code, &near_id)),
                wait(&mut far_end, waiting, &host),
            );
            if is_right {
                let Ok(Answer::Authenticated(near)) = near else {
                    panic!("{near:?}")
                };
                assert_eq!(near.peer, far_id.public_key());
                assert_eq!(far.unwrap().unwrap().peer, near_id.public_key());
            } else {
                let (near, far) = (near.unwrap_err(), far.unwrap_err());
                assert_eq!(near.refusal(), Some(Refusal::WrongSecret));
                assert_eq!(far.refusal(), Some(Refusal::WrongSecret));
                for words in [near.to_string(), far.to_string()] {
                    assert!(words.contains("guess") && words.contains("typ"), "{words}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_given_up_in_each_state() {
        // Nothing at all; half a length; a length without its message.
        for said in [&[][..], &[0], &[0, 9, 1, 2]] {
            let (_, far, _, far_id) = ends();
            let (mut near_end, mut far_end) = tokio::io::duplex(64);
            near_end.write_all(said).await.unwrap();
            let host = host();
            let ended = wait(&mut far_end, Waiting::new(far, far_id, Vec::new()), &host).await;
            assert!(matches!(ended, Err(MeetingError::Silent)), "{ended:?}");
        }
        // After its first message: the code is burnt.
        let (near, far, near_id, far_id) = ends();
        let (mut near_end, mut far_end) = tokio::io::duplex(4096);
        let (_, first) = begin(near, "7-guitarist-orca", &near_id);
        put(&mut near_end, &first).await.unwrap();
        let host = host();
        let ended = wait(&mut far_end, Waiting::new(far, far_id, Vec::new()), &host).await;
        assert!(matches!(ended, Err(MeetingError::Silent)), "{ended:?}");
        assert!(host.lock().unwrap().0.is_burnt());
        // A waiting side that never answers.
        let (near, _, near_id, _) = ends();
        let (mut near_end, _far_end) = tokio::io::duplex(4096);
        let ended = connect(&mut near_end, begin(near, "7-guitarist-orca", &near_id)).await;
        assert!(matches!(ended, Err(MeetingError::Silent)), "{ended:?}");
    }

    /// Carries `count` messages from one stream to the other, and then nothing.
    async fn carry<R, W>(from: &mut R, to: &mut W, count: usize)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        for _ in 0..count {
            let Ok(message) = take(from).await else {
                break;
            };
            put(to, &message).await.unwrap();
        }
        std::future::pending::<()>().await;
    }

    /// What both sides make of a meeting by code in which so many messages of each side arrive.
    async fn met_by(
        from_near: usize,
        from_far: usize,
    ) -> (Result<(), MeetingError>, Result<(), MeetingError>) {
        let (near, far, near_id, far_id) = ends();
        let (mut near_end, near_path) = tokio::io::duplex(4096);
        let (far_path, mut far_end) = tokio::io::duplex(4096);
        let (mut near_out, mut near_in) = tokio::io::split(near_path);
        let (mut far_out, mut far_in) = tokio::io::split(far_path);
        let host = host();
        let waiting = Waiting::new(far, far_id, Vec::new());
        let meeting = async {
            tokio::join!(
                connect(&mut near_end, begin(near, "7-guitarist-orca", &near_id)),
                wait(&mut far_end, waiting, &host),
            )
        };
        tokio::select! {
            (near, far) = meeting => (near.map(|_| ()), far.map(|_| ())),
            () = carry(&mut near_out, &mut far_in, from_near) => unreachable!(),
            () = carry(&mut far_out, &mut near_in, from_far) => unreachable!(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_falls_silent_after_any_message_is_given_up() {
        let is_silent =
            |ended: &Result<(), MeetingError>| matches!(ended, Err(MeetingError::Silent));
        // code, confirm, identity; pake, confirmed, welcome.
        for messages in 0..3 {
            let (_, far) = met_by(messages, 3).await;
            assert!(is_silent(&far), "after {messages}: {far:?}");
            let (near, _) = met_by(3, messages).await;
            match near {
                // It has our proof, and gave none.
                Err(MeetingError::Unproven(why)) if messages == 1 => {
                    assert!(matches!(*why, MeetingError::Silent));
                }
                near => assert!(
                    messages != 1 && is_silent(&near),
                    "after {messages}: {near:?}"
                ),
            }
        }
        let (near, far) = met_by(3, 3).await;
        assert!(near.is_ok() && far.is_ok(), "{near:?} {far:?}");
    }

    #[tokio::test]
    async fn a_long_message_is_not_read() {
        let (_, far, _, far_id) = ends();
        let (mut near_end, mut far_end) = tokio::io::duplex(64);
        near_end.write_all(&[0xff, 0xff, 1]).await.unwrap();
        let host = host();
        let ended = wait(&mut far_end, Waiting::new(far, far_id, Vec::new()), &host).await;
        assert!(matches!(ended, Err(MeetingError::Lost(_))), "{ended:?}");
    }
}
