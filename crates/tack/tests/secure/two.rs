//! Two endpoints that know each other's keys.

use std::sync::{Arc, Mutex};

use tack::secure::{
    Admission, HandshakeLimits, Identity, SecureListenOptions, SecureListener, SecureStream,
};
use tack::{Builder, Endpoint};

use crate::pair::within;

pub(crate) const ALPN: &[u8] = b"tack-test/1";

/// An endpoint that listens and one that connects, each with an identity.
pub(crate) struct Two {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) listener: SecureListener,
    pub(crate) client_id: Identity,
    pub(crate) server_id: Identity,
    /// Why peers were turned away.
    pub(crate) failures: Arc<Mutex<Vec<String>>>,
}

impl Two {
    pub(crate) fn new() -> Self {
        Self::with(Endpoint::builder(), HandshakeLimits::default())
    }

    /// Admits only the client.
    pub(crate) fn with(builder: Builder, limits: HandshakeLimits) -> Self {
        let (client_id, server_id) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let server = builder.clone().identity(server_id.clone()).build().unwrap();
        let client = builder.identity(client_id.clone()).build().unwrap();
        let known = client_id.public_key();
        let failures = Arc::new(Mutex::new(Vec::new()));
        let options = SecureListenOptions::new(ALPN, move |key, _| {
            if *key == known {
                Admission::Admit
            } else {
                Admission::Refuse
            }
        });
        let noted = Arc::clone(&failures);
        let options = options
            .limits(limits)
            .on_failure(move |_, error| noted.lock().unwrap().push(error.to_string()));
        let listener = server.listen_secure(tack::DEFAULT_PORT, options).unwrap();
        Self {
            client,
            server,
            listener,
            client_id,
            server_id,
            failures,
        }
    }

    /// A connection: the client's end and the server's.
    pub(crate) async fn connect(&self) -> (SecureStream, SecureStream) {
        let connecting = self
            .client
            .connect(self.server.local_addr())
            .expecting(self.server_id.public_key(), ALPN)
            .into_future();
        let (client, server) =
            within(async { tokio::join!(connecting, self.listener.accept()) }).await;
        (client.unwrap(), server.unwrap().0)
    }

    /// Waits until one peer more was turned away, and says why.
    pub(crate) async fn failure(&self) -> String {
        within(async {
            loop {
                if let Some(failure) = self.failures.lock().unwrap().pop() {
                    return failure;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await
    }
}
