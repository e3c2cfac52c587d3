//! Protection of TLS 1.3 records (RFC 8446 §5) with the keys that rustls agreed on.
//!
//! rustls' own record layer copies what it encrypts once, and what it decrypts twice, more than the
//! streams do. Here a record is sealed from where its plaintext lies, and opened to where it is
//! read.

use std::io::IoSlice;

use rustls::crypto::cipher::{Iv, Nonce};
use rustls::{ConnectionTrafficSecrets, Error as TlsError};

use super::cipher::{self, Cipher, TAG};

/// Most plaintext of a record, bytes (RFC 8446 §5.1).
pub(super) const FRAGMENT: usize = 1 << 14;
/// What comes before the ciphertext: type, version, length.
const HEADER: usize = 5;
/// What a record has besides its plaintext: header, content type, authentication tag.
pub(super) const OVERHEAD: usize = HEADER + 1 + TAG;
/// Most that follows the header, bytes (RFC 8446 §5.2).
const MAX_BODY: usize = FRAGMENT + 256;
/// Longest record that a peer may send, bytes.
pub(super) const MAX_RECORD: usize = HEADER + MAX_BODY;

/// Content types (RFC 8446 §5.1).
pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;

/// A traffic key and the number of its next record.
struct Key {
    cipher: Cipher,
    iv: Iv,
    number: u64,
}

impl Key {
    /// # Errors
    /// For a cipher that is not offered.
    fn new((number, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Self, TlsError> {
        let (cipher, iv) = Cipher::new(secrets)?;
        Ok(Self { cipher, iv, number })
    }

    /// The nonce of the next record: each number is used once (RFC 8446 §5.3).
    fn nonce(&mut self) -> cipher::Nonce {
        let nonce = Nonce::new(&self.iv, self.number);
        // The keys are renewed long before 2^64 records.
        self.number += 1;
        nonce.0
    }
}

/// Plaintext that is to be sealed, in pieces.
pub(super) struct Plaintext<'a> {
    slices: &'a [IoSlice<'a>],
    /// Bytes of the first slice that were sealed.
    sealed: usize,
    left: usize,
}

impl<'a> Plaintext<'a> {
    /// The first `limit` bytes of `slices`.
    pub(super) fn new(slices: &'a [IoSlice<'a>], limit: usize) -> Self {
        let len = slices
            .iter()
            .fold(0_usize, |sum, slice| sum.saturating_add(slice.len()));
        Self {
            slices,
            sealed: 0,
            left: len.min(limit),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.left
    }

    /// The next piece that lies together, at most `limit` bytes.
    fn next(&mut self, limit: usize) -> &'a [u8] {
        while let [first, rest @ ..] = self.slices {
            if self.sealed < first.len() {
                let piece = &first[self.sealed..];
                let piece = &piece[..piece.len().min(limit).min(self.left)];
                self.sealed += piece.len();
                self.left -= piece.len();
                return piece;
            }
            self.slices = rest;
            self.sealed = 0;
        }
        &[]
    }
}

/// The sending direction.
pub(super) struct Sealer(Key);

impl Sealer {
    pub(super) fn new(secrets: (u64, ConnectionTrafficSecrets)) -> Result<Self, TlsError> {
        Key::new(secrets).map(Self)
    }

    /// As after `number` records.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, number: u64) {
        self.0.number = number;
    }

    /// Records that were sealed with this key.
    pub(super) fn records(&self) -> u64 {
        self.0.number
    }

    /// Makes a record of up to [`FRAGMENT`] bytes of `plaintext`, of the content type `kind`, at
    /// the beginning of `out`; returns its length.
    ///
    /// # Errors
    /// When the cipher fails, which it does not for lengths such as these.
    ///
    /// # Panics
    /// If `out` is shorter than the record.
    pub(super) fn seal(
        &mut self,
        kind: u8,
        plaintext: &mut Plaintext<'_>,
        out: &mut [u8],
    ) -> Result<usize, TlsError> {
        let len = plaintext.len().min(FRAGMENT);
        let body = len + 1 + TAG;
        let (header, rest) = out[..HEADER + body].split_at_mut(HEADER);
        header.copy_from_slice(&[APPLICATION_DATA, 3, 3, (body >> 8) as u8, body as u8]);
        let nonce = self.0.nonce();
        let cipher = &self.0.cipher;
        let first = plaintext.next(len);
        if first.len() == len {
            cipher.seal_to(nonce, header, first, kind, rest)?;
        } else {
            let mut filled = first.len();
            rest[..filled].copy_from_slice(first);
            while filled < len {
                let piece = plaintext.next(len - filled);
                rest[filled..filled + piece.len()].copy_from_slice(piece);
                filled += piece.len();
            }
            cipher.seal_in_place(nonce, header, kind, rest)?;
        }
        Ok(HEADER + body)
    }
}

/// The length of the record that `bytes` begin with, its header included; none while that cannot be
/// told.
///
/// # Errors
/// When no record of application traffic begins so. Alerts and key updates look like data from
/// outside (RFC 8446 §5.2).
pub(super) fn record_len(bytes: &[u8]) -> Result<Option<usize>, TlsError> {
    let [kind, rest @ ..] = bytes else {
        return Ok(None);
    };
    if *kind != APPLICATION_DATA {
        return Err(unexpected(*kind));
    }
    // The version says nothing (RFC 8446 §5.1), but it is authenticated.
    let [_, _, high, low, ..] = rest else {
        return Ok(None);
    };
    let body = usize::from(u16::from_be_bytes([*high, *low]));
    if body > MAX_BODY {
        return Err(TlsError::PeerSentOversizedRecord);
    }
    if body < TAG + 1 {
        return Err(TlsError::DecryptError);
    }
    Ok(Some(HEADER + body))
}

/// A record of the content type `kind`, where none of it may come.
pub(super) fn unexpected(kind: u8) -> TlsError {
    TlsError::InappropriateMessage {
        expect_types: vec![rustls::ContentType::ApplicationData],
        got_type: kind.into(),
    }
}

/// The receiving direction.
pub(super) struct Opener(Key);

impl Opener {
    pub(super) fn new(secrets: (u64, ConnectionTrafficSecrets)) -> Result<Self, TlsError> {
        Key::new(secrets).map(Self)
    }

    /// As after `number` records.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, number: u64) {
        self.0.number = number;
    }

    /// Bytes of `record` when it is open, padding and content type included.
    pub(super) fn opened_len(record: &[u8]) -> usize {
        record.len() - HEADER - TAG
    }

    /// Opens the whole `record` to `out`, which has exactly [`Opener::opened_len`] bytes: the
    /// content type, and the length of the plaintext at the beginning of `out`.
    ///
    /// # Errors
    /// For a record that was changed, or has no content type. `out` is then of no use.
    pub(super) fn open_to(
        &mut self,
        record: &[u8],
        out: &mut [u8],
    ) -> Result<(u8, usize), TlsError> {
        let (header, body) = record.split_at(HEADER);
        let nonce = self.0.nonce();
        self.0.cipher.open_to(nonce, header, body, out)?;
        content(out)
    }

    /// Opens the whole `record` where it lies: the content type, and where in `record` its
    /// plaintext is.
    ///
    /// # Errors
    /// As [`Opener::open_to`].
    pub(super) fn open_in_place(
        &mut self,
        record: &mut [u8],
    ) -> Result<(u8, std::ops::Range<usize>), TlsError> {
        let (header, body) = record.split_at_mut(HEADER);
        let nonce = self.0.nonce();
        let opened = self.0.cipher.open_in_place(nonce, header, body)?;
        let (kind, len) = content(opened)?;
        Ok((kind, HEADER..HEADER + len))
    }
}

/// The content type of what was in a record, and how long its plaintext is: zeros pad it (RFC 8446
/// §5.4).
fn content(opened: &[u8]) -> Result<(u8, usize), TlsError> {
    let end = opened
        .iter()
        .rposition(|&byte| byte != 0)
        .ok_or_else(|| unexpected(0))?;
    if opened.len() > FRAGMENT + 1 {
        return Err(TlsError::PeerSentOversizedRecord);
    }
    Ok((opened[end], end))
}

#[cfg(test)]
mod tests {
    use rustls::crypto::cipher::AeadKey;

    use super::*;

    fn secrets() -> (u64, ConnectionTrafficSecrets) {
        let key = AeadKey::from([7; 32]);
        let iv = Iv::from([9; 12]);
        (0, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv })
    }

    fn pair() -> (Sealer, Opener) {
        (
            Sealer::new(secrets()).unwrap(),
            Opener::new(secrets()).unwrap(),
        )
    }

    fn sealed(sealer: &mut Sealer, kind: u8, slices: &[&[u8]]) -> Vec<u8> {
        let slices: Vec<_> = slices.iter().map(|slice| IoSlice::new(slice)).collect();
        let mut plaintext = Plaintext::new(&slices, usize::MAX);
        let mut out = vec![0; MAX_RECORD];
        let len = sealer.seal(kind, &mut plaintext, &mut out).unwrap();
        out.truncate(len);
        out
    }

    #[test]
    fn records_come_back_whole_from_one_piece_and_from_many() {
        let (mut sealer, mut opener) = pair();
        let pieces: [&[&[u8]]; 4] = [&[b"one"], &[b"o", b"", b"ne"], &[], &[b"", b"one"]];
        for slices in pieces {
            let mut record = sealed(&mut sealer, APPLICATION_DATA, slices);
            assert_eq!(record_len(&record).unwrap(), Some(record.len()));
            let (kind, range) = opener.open_in_place(&mut record).unwrap();
            assert_eq!(kind, APPLICATION_DATA);
            assert_eq!(record[range], slices.concat());
        }
        let record = sealed(&mut sealer, ALERT, &[&[1, 0]]);
        let mut out = vec![0; Opener::opened_len(&record)];
        assert_eq!(opener.open_to(&record, &mut out).unwrap(), (ALERT, 2));
        assert_eq!(out[..2], [1, 0]);
    }

    #[test]
    fn a_write_is_cut_at_its_limit_and_into_fragments() {
        let (mut sealer, mut opener) = pair();
        let bytes = vec![5; FRAGMENT + 10];
        let slices = [IoSlice::new(&bytes), IoSlice::new(&bytes)];
        let mut plaintext = Plaintext::new(&slices, FRAGMENT + 20);
        let mut out = vec![0; MAX_RECORD];
        let mut lens = Vec::new();
        while plaintext.len() > 0 {
            let len = sealer
                .seal(APPLICATION_DATA, &mut plaintext, &mut out)
                .unwrap();
            lens.push(opener.open_in_place(&mut out[..len]).unwrap().1.len());
        }
        assert_eq!(lens, [FRAGMENT, 20]);
    }

    #[test]
    fn records_out_of_turn_and_changed_ones_are_refused() {
        let (mut sealer, mut opener) = pair();
        let first = sealed(&mut sealer, APPLICATION_DATA, &[b"first"]);
        let mut second = sealed(&mut sealer, APPLICATION_DATA, &[b"second"]);
        assert!(opener.open_in_place(&mut second).is_err());
        for place in 0..first.len() {
            let (_, mut opener) = pair();
            let mut changed = first.clone();
            changed[place] ^= 0x40;
            let mut out = vec![0; Opener::opened_len(&changed)];
            assert_eq!(
                opener.open_to(&changed, &mut out),
                Err(TlsError::DecryptError),
                "byte {place}"
            );
        }
    }

    #[test]
    fn padding_is_taken_off_and_nothing_but_padding_is_refused() {
        assert_eq!(content(&[1, 2, 23, 0, 0]).unwrap(), (23, 2));
        assert_eq!(content(&[21]).unwrap(), (21, 0));
        assert!(content(&[0, 0]).is_err());
        assert!(content(&[]).is_err());
        let mut long = vec![1; FRAGMENT + 1];
        assert!(content(&long).is_ok());
        long.push(23);
        assert_eq!(content(&long), Err(TlsError::PeerSentOversizedRecord));
    }

    #[test]
    fn headers_are_judged_before_their_record_is_here() {
        assert_eq!(record_len(&[]), Ok(None));
        assert_eq!(record_len(&[23, 3, 3, 0]), Ok(None));
        assert_eq!(record_len(&[23, 3, 3, 0, 17]), Ok(Some(22)));
        assert_eq!(record_len(&[23, 3, 3, 0, 16]), Err(TlsError::DecryptError));
        assert_eq!(record_len(&[23, 3, 3, 65, 0]), Ok(Some(MAX_RECORD)));
        assert_eq!(
            record_len(&[23, 3, 3, 65, 1]),
            Err(TlsError::PeerSentOversizedRecord)
        );
        assert_eq!(record_len(&[22]), Err(unexpected(22)));
    }
}
