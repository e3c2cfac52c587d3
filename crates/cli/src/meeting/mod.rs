//! Meeting a peer: what people type to reach one, what waiting programs show, and the proof that
//! both are who they should be.
//!
//! `tack_pairing::meeting` has the rules; here they get sockets, files and words.

mod args;
mod connecting;
mod dial;
mod exchange;
mod host;
mod invitations;
mod known;
mod peer_stream;
mod places;
mod show;
mod stranger;
mod target;
mod used_codes;
mod waiting;
mod whereabouts;

pub(crate) use args::{MeetingArgs, PeerArgs, WaitArgs};
pub(crate) use connecting::{ConnectOptions, reach};
pub(crate) use dial::Dial;
pub(crate) use host::AlsoServes;
pub(crate) use peer_stream::{PeerReader, PeerStream, PeerWriter};
pub(crate) use target::{Target, is_explicit};
pub(crate) use waiting::{WaitingConfig, WaitingSide};

/// The protocol inside TLS (RFC 7301): a meeting, then what its intent names.
const ALPN: &[u8] = b"tack/1";
/// Which TCP port of the same UDP port serves codes: there TLS shows a key that is made for one run
/// of the program.
const CODE_PORT: u16 = tack::DEFAULT_PORT + 16;

use tack::secure::SecureStream;
use tack_pairing::meeting::{Channel, EXPORTER_LABEL};

/// What the stream says of itself.
fn channel(stream: &SecureStream) -> Result<Channel, tack::secure::ExportError> {
    let mut exporter = [0; 32];
    stream.export_keying_material(EXPORTER_LABEL, b"", &mut exporter)?;
    Ok(Channel {
        exporter,
        own_key: stream.own_key(),
        peer_key: stream.peer_key(),
    })
}
