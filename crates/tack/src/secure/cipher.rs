//! The AEAD ciphers of TLS 1.3 records, each by the library that is fastest on this processor.
//!
//! AWS-LC encrypts AES-GCM with AES on vectors (VAES) where the processor has AVX-512, and one
//! block at a time elsewhere. ring does it with AVX2, too: twice as fast on processors with VAES
//! and without AVX-512 (AMD Zen 3, Intel Alder Lake). `cargo bench -p tack --bench ciphers`
//! compares them.

use aws_lc_rs::aead as aws;
use aws_lc_rs::error::Unspecified;
#[cfg(target_arch = "x86_64")]
use ring::aead as ring_aead;
use rustls::{ConnectionTrafficSecrets, Error as TlsError};

/// Authentication tag of every cipher here, bytes.
pub(super) const TAG: usize = 16;

/// What goes into a nonce: it differs for each record of a key.
pub(super) type Nonce = [u8; 12];

/// A key for one direction.
pub(super) enum Cipher {
    AwsLc(aws::LessSafeKey),
    #[cfg(target_arch = "x86_64")]
    Ring(Box<ring_aead::LessSafeKey>),
}

/// Which library encrypts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Library {
    AwsLc,
    #[cfg(target_arch = "x86_64")]
    Ring,
}

impl Library {
    /// The faster one for AES-GCM.
    fn of_aes() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected;
            let has_vectors = is_x86_feature_detected!("vaes")
                && is_x86_feature_detected!("vpclmulqdq")
                && is_x86_feature_detected!("avx2");
            if has_vectors && !is_x86_feature_detected!("avx512f") {
                return Self::Ring;
            }
        }
        Self::AwsLc
    }
}

/// Copies in pieces for which the C library does not take `rep movsb`: with some alignments that
/// takes more than twice as long as to encrypt.
#[cfg(target_arch = "x86_64")]
fn copy(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "what is copied fits exactly");
    for (from, to) in from.chunks(2048).zip(to.chunks_mut(2048)) {
        to.copy_from_slice(from);
    }
}

fn unusable<E>(_: E) -> TlsError {
    TlsError::General("unusable traffic key".into())
}

impl Cipher {
    /// # Errors
    /// For a cipher that is not offered. Also the nonce's fixed part.
    pub(super) fn new(
        secrets: ConnectionTrafficSecrets,
    ) -> Result<(Self, rustls::crypto::cipher::Iv), TlsError> {
        match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
                Ok((Self::aes(key.as_ref(), Library::of_aes())?, iv))
            }
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                Ok((Self::aws_lc(&aws::CHACHA20_POLY1305, key.as_ref())?, iv))
            }
            _ => Err(TlsError::General("expected AES-128-GCM or ChaCha20".into())),
        }
    }

    fn aws_lc(algorithm: &'static aws::Algorithm, key: &[u8]) -> Result<Self, TlsError> {
        let key = aws::UnboundKey::new(algorithm, key).map_err(unusable)?;
        Ok(Self::AwsLc(aws::LessSafeKey::new(key)))
    }

    fn aes(key: &[u8], library: Library) -> Result<Self, TlsError> {
        match library {
            Library::AwsLc => Self::aws_lc(&aws::AES_128_GCM, key),
            #[cfg(target_arch = "x86_64")]
            Library::Ring => {
                let key = ring_aead::UnboundKey::new(&ring_aead::AES_128_GCM, key);
                let key = key.map_err(unusable)?;
                Ok(Self::Ring(Box::new(ring_aead::LessSafeKey::new(key))))
            }
        }
    }

    /// Encrypts `text` and one byte more, `last`, to the beginning of `out`, with the tag behind.
    ///
    /// # Errors
    /// When the cipher fails, which it does not for lengths such as these.
    ///
    /// # Panics
    /// If `out` does not have the length of all three.
    pub(super) fn seal_to(
        &self,
        nonce: Nonce,
        aad: &[u8],
        text: &[u8],
        last: u8,
        out: &mut [u8],
    ) -> Result<(), TlsError> {
        match self {
            Self::AwsLc(key) => {
                let nonce = aws::Nonce::assume_unique_for_key(nonce);
                let (out, end) = out.split_at_mut(text.len());
                key.seal_out_of_place_scatter(nonce, aws::Aad::from(aad), text, out, &[last], end)
                    .map_err(|Unspecified| TlsError::EncryptError)
            }
            #[cfg(target_arch = "x86_64")]
            Self::Ring(_) => {
                copy(text, &mut out[..text.len()]);
                self.seal_in_place(nonce, aad, last, out)
            }
        }
    }

    /// As [`Cipher::seal_to`], of the text at the beginning of `out`.
    pub(super) fn seal_in_place(
        &self,
        nonce: Nonce,
        aad: &[u8],
        last: u8,
        out: &mut [u8],
    ) -> Result<(), TlsError> {
        let len = out.len() - TAG - 1;
        match self {
            Self::AwsLc(key) => {
                let nonce = aws::Nonce::assume_unique_for_key(nonce);
                let (text, end) = out.split_at_mut(len);
                key.seal_in_place_scatter(nonce, aws::Aad::from(aad), text, &[last], end)
                    .map_err(|Unspecified| TlsError::EncryptError)
            }
            #[cfg(target_arch = "x86_64")]
            Self::Ring(key) => {
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce);
                out[len] = last;
                let (text, tag) = out.split_at_mut(len + 1);
                let sealed = key.seal_in_place_separate_tag(nonce, ring_aead::Aad::from(aad), text);
                let sealed = sealed.map_err(|ring::error::Unspecified| TlsError::EncryptError)?;
                tag.copy_from_slice(sealed.as_ref());
                Ok(())
            }
        }
    }

    /// Decrypts `sealed`, which ends with its tag, to `out`.
    ///
    /// # Errors
    /// When it was changed; `out` is then of no use.
    ///
    /// # Panics
    /// If `out` is not as long as what is sealed.
    pub(super) fn open_to(
        &self,
        nonce: Nonce,
        aad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), TlsError> {
        let (text, tag) = sealed.split_at(sealed.len() - TAG);
        match self {
            Self::AwsLc(key) => {
                let nonce = aws::Nonce::assume_unique_for_key(nonce);
                key.open_separate_gather(nonce, aws::Aad::from(aad), text, tag, out)
                    .map_err(|Unspecified| TlsError::DecryptError)
            }
            #[cfg(target_arch = "x86_64")]
            Self::Ring(key) => {
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce);
                let failed = |_| TlsError::DecryptError;
                let tag = ring_aead::Tag::try_from(tag).map_err(failed)?;
                copy(text, out);
                key.open_in_place_separate_tag(nonce, ring_aead::Aad::from(aad), tag, out, 0..)
                    .map_err(|ring::error::Unspecified| TlsError::DecryptError)?;
                Ok(())
            }
        }
    }

    /// Decrypts `sealed`, which ends with its tag, where it is.
    ///
    /// # Errors
    /// When it was changed.
    pub(super) fn open_in_place<'a>(
        &self,
        nonce: Nonce,
        aad: &[u8],
        sealed: &'a mut [u8],
    ) -> Result<&'a [u8], TlsError> {
        match self {
            Self::AwsLc(key) => {
                let nonce = aws::Nonce::assume_unique_for_key(nonce);
                let opened = key.open_in_place(nonce, aws::Aad::from(aad), sealed);
                opened
                    .map(|opened| &*opened)
                    .map_err(|Unspecified| TlsError::DecryptError)
            }
            #[cfg(target_arch = "x86_64")]
            Self::Ring(key) => {
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce);
                let opened = key.open_in_place(nonce, ring_aead::Aad::from(aad), sealed);
                opened
                    .map(|opened| &*opened)
                    .map_err(|ring::error::Unspecified| TlsError::DecryptError)
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn both() -> [Cipher; 2] {
        [Library::AwsLc, Library::Ring].map(|library| Cipher::aes(&[7; 16], library).unwrap())
    }

    fn text(len: usize) -> Vec<u8> {
        (0..len).map(|place| (place * 31 % 251) as u8).collect()
    }

    #[test]
    fn both_libraries_write_the_same_bytes_and_read_each_others() {
        let ciphers = both();
        for len in [0, 1, 15, 16, 17, 255, 4_000, 1 << 14] {
            let nonce = [len as u8; 12];
            let [sealed, other] = [0, 1].map(|which: usize| {
                let mut out = vec![0; len + 1 + TAG];
                let cipher = &ciphers[which];
                cipher
                    .seal_to(nonce, b"header", &text(len), 23, &mut out)
                    .unwrap();
                let mut in_place = text(len);
                in_place.resize(len + 1 + TAG, 0);
                cipher
                    .seal_in_place(nonce, b"header", 23, &mut in_place)
                    .unwrap();
                assert_eq!(in_place, out, "{len}");
                out
            });
            assert_eq!(sealed, other, "{len}");
            let expected = [&text(len)[..], &[23]].concat();
            for cipher in &ciphers {
                let mut out = vec![0; len + 1];
                cipher.open_to(nonce, b"header", &sealed, &mut out).unwrap();
                assert_eq!(out, expected, "{len}");
                let mut sealed = sealed.clone();
                let opened = cipher.open_in_place(nonce, b"header", &mut sealed);
                assert_eq!(opened.unwrap(), expected, "{len}");
            }
        }
    }

    #[test]
    fn what_was_changed_is_refused_by_both() {
        for cipher in both() {
            let mut sealed = vec![0; 20 + 1 + TAG];
            cipher
                .seal_to([1; 12], b"header", &text(20), 23, &mut sealed)
                .unwrap();
            let refused = |nonce, aad: &[u8], sealed: &[u8]| {
                let mut out = vec![0; sealed.len() - TAG];
                let to = cipher.open_to(nonce, aad, sealed, &mut out);
                let in_place = cipher.open_in_place(nonce, aad, &mut sealed.to_vec()).err();
                assert_eq!(to, Err(TlsError::DecryptError));
                assert_eq!(in_place, Some(TlsError::DecryptError));
            };
            refused([2; 12], b"header", &sealed);
            refused([1; 12], b"Header", &sealed);
            for place in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[place] ^= 1;
                refused([1; 12], b"header", &changed);
            }
        }
    }
}
