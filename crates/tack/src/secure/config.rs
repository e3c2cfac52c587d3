//! What a handshake is set up with: for each connection anew, as each has its own judge of keys and
//! exporter.

use std::sync::Arc;

use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::pki_types::CertificateDer;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, Error, ServerConfig, version};

use super::exporter::SecretKeeper;
use super::identity::Identity;
use super::provider::{PROVIDER, has_aes};
use super::verify::RawKeys;

/// What both sides of a connection need.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) identity: Identity,
    /// The one protocol that is spoken (RFC 7301).
    pub(super) alpn: Vec<u8>,
    pub(super) keys: Arc<RawKeys>,
}

/// The name of a protocol, as TLS can carry it (RFC 7301 §3.1).
pub(super) fn protocol(alpn: &[u8]) -> Vec<u8> {
    let len = alpn.len();
    assert!(
        (1..=255).contains(&len),
        "expected the name of a protocol of 1 to 255 bytes, got {len}"
    );
    alpn.to_vec()
}

impl Setup {
    pub(super) fn new(identity: Identity, alpn: Vec<u8>, keys: Arc<RawKeys>) -> Self {
        Self {
            identity,
            alpn,
            keys,
        }
    }

    fn own_key(&self) -> Arc<CertifiedKey> {
        let spki = self.identity.public_key().to_spki();
        let shown = vec![CertificateDer::from(spki)];
        Arc::new(CertifiedKey::new(shown, self.identity.signing()))
    }

    /// For the side that connects; the secret of its exporter will be in the keeper.
    pub(super) fn client(&self) -> Result<(Arc<ClientConfig>, Arc<SecretKeeper>), Error> {
        let keeper = Arc::new(SecretKeeper::default());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.keys) as _)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                self.own_key(),
            )));
        config.alpn_protocols = vec![self.alpn.clone()];
        // Keys are the names here.
        config.enable_sni = false;
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        // Records are sealed and opened by `records`.
        config.enable_secret_extraction = true;
        config.key_log = Arc::clone(&keeper) as _;
        Ok((Arc::new(config), keeper))
    }

    /// For the side that listens, as [`Setup::client`].
    pub(super) fn server(&self) -> Result<(Arc<ServerConfig>, Arc<SecretKeeper>), Error> {
        let keeper = Arc::new(SecretKeeper::default());
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(Arc::clone(&self.keys) as _)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                self.own_key(),
            )));
        config.alpn_protocols = vec![self.alpn.clone()];
        // A resumed session would bring its key along without being asked about it: a peer that is
        // not wanted any more would come back.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        // Without instructions for AES this side's order counts; else the client's, which may lack
        // them.
        config.ignore_client_order = !has_aes();
        config.enable_secret_extraction = true;
        config.key_log = Arc::clone(&keeper) as _;
        Ok((Arc::new(config), keeper))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use rustls::pki_types::ServerName;
    use rustls::server::ServerSessionMemoryCache;
    use rustls::{ClientConnection, HandshakeKind, ServerConnection};

    use super::super::verify::Wanted;
    use super::*;

    pub(in super::super) fn setup() -> Setup {
        let identity = Identity::generate().unwrap();
        Setup::new(identity, b"test".to_vec(), RawKeys::new(Wanted::Anybody))
    }

    /// Carries what both sides say until neither has more.
    pub(in super::super) fn meet(client: &mut ClientConnection, server: &mut ServerConnection) {
        while client.wants_write() || server.wants_write() {
            let mut words = Vec::new();
            client.write_tls(&mut words).unwrap();
            server.read_tls(&mut &words[..]).unwrap();
            server.process_new_packets().unwrap();
            words.clear();
            server.write_tls(&mut words).unwrap();
            client.read_tls(&mut &words[..]).unwrap();
            client.process_new_packets().unwrap();
        }
    }

    /// How the second of two handshakes went that a client begins which would resume the first one.
    fn second(server: ServerConfig) -> HandshakeKind {
        let (config, _) = setup().client().unwrap();
        let mut config = Arc::unwrap_or_clone(config);
        config.resumption = Resumption::in_memory_sessions(8);
        config.enable_early_data = true;
        let (client, server) = (Arc::new(config), Arc::new(server));
        let kinds = [(); 2].map(|()| {
            let name = ServerName::try_from("tack.invalid").unwrap();
            let mut client = ClientConnection::new(Arc::clone(&client), name).unwrap();
            let mut server = ServerConnection::new(Arc::clone(&server)).unwrap();
            assert!(client.early_data().is_none());
            meet(&mut client, &mut server);
            client.handshake_kind().unwrap()
        });
        assert_ne!(kinds[0], HandshakeKind::Resumed);
        kinds[1]
    }

    #[test]
    fn no_session_is_resumed() {
        let server = || Arc::unwrap_or_clone(setup().server().unwrap().0);
        assert_ne!(second(server()), HandshakeKind::Resumed);
        // One that issues tickets would resume it.
        let mut other = server();
        other.session_storage = ServerSessionMemoryCache::new(8);
        other.send_tls13_tickets = 1;
        assert_eq!(second(other), HandshakeKind::Resumed);
    }

    #[test]
    fn a_client_of_ours_resumes_nothing() {
        let mut server = Arc::unwrap_or_clone(setup().server().unwrap().0);
        server.session_storage = ServerSessionMemoryCache::new(8);
        server.send_tls13_tickets = 1;
        let (client, server) = (setup().client().unwrap().0, Arc::new(server));
        for _ in 0..2 {
            let name = ServerName::try_from("tack.invalid").unwrap();
            let mut client = ClientConnection::new(Arc::clone(&client), name).unwrap();
            let mut server = ServerConnection::new(Arc::clone(&server)).unwrap();
            meet(&mut client, &mut server);
            assert_ne!(client.handshake_kind(), Some(HandshakeKind::Resumed));
        }
    }
}
