//! The cryptography behind TLS: aws-lc-rs, with what is offered and in which order.

use std::sync::{Arc, LazyLock};

use rustls::SupportedCipherSuite;
use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// What both sides offer: AES-128-GCM and ChaCha20-Poly1305, X25519MLKEM768 and X25519.
///
/// The hybrid exchange comes first: what is recorded today cannot be read later with a quantum
/// computer.
pub(super) static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    Arc::new(CryptoProvider {
        cipher_suites: cipher_suites(has_aes()),
        kx_groups: vec![
            aws_lc_rs::kx_group::X25519MLKEM768,
            aws_lc_rs::kx_group::X25519,
        ],
        ..aws_lc_rs::default_provider()
    })
});

/// Best first: without instructions for AES, ChaCha20 is the faster one.
fn cipher_suites(has_aes: bool) -> Vec<SupportedCipherSuite> {
    let mut suites = vec![
        aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
        aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    if !has_aes {
        suites.reverse();
    }
    suites
}

/// True when the processor has instructions for AES and for the hash of GCM.
pub(super) fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull")
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}

#[cfg(test)]
mod tests {
    use rustls::{CipherSuite, NamedGroup};

    use super::*;

    #[test]
    fn chacha20_comes_first_without_aes() {
        let first = |has_aes| cipher_suites(has_aes)[0].suite();
        assert_eq!(first(true), CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(first(false), CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }

    #[test]
    fn the_hybrid_exchange_comes_first() {
        let groups: Vec<_> = PROVIDER
            .kx_groups
            .iter()
            .map(|group| group.name())
            .collect();
        assert_eq!(groups, [NamedGroup::X25519MLKEM768, NamedGroup::X25519]);
    }
}
