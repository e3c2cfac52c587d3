//! Connections of peers that are not let in yet.

use tack::secure::SecureStream;

/// The connection of a peer that is not let in, or not yet. It is reset when it is given up, also
/// with its meeting: one that waited for the peer to close it would take a place until then.
pub(super) struct Stranger(Option<SecureStream>);

impl Stranger {
    pub(super) fn new(stream: SecureStream) -> Self {
        Self(Some(stream))
    }

    pub(super) fn stream(&mut self) -> &mut SecureStream {
        self.0.as_mut().expect("only `let_in` takes it")
    }

    pub(super) fn let_in(mut self) -> SecureStream {
        self.0.take().expect("taken once")
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.reset();
        }
    }
}
