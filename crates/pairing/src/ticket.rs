//! Tickets: everything that a peer needs to reach us and to be let in, in one text.
//!
//! `tack1` and then, in base32 without padding: version (1 byte, 1), public key of the issuer (32),
//! secret (16), expiry (4, seconds since 1970; 0 is never), the number of addresses (1), each with
//! its family (1, 4 or 6), address (4 or 16) and UDP port (2), and the first 4 bytes of SHA-256
//! over all of that. Numbers are big-endian. A text has at most [`MAX_TEXT`] characters, so that it
//! fits a line of a chat and a QR code that a telephone reads.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use data_encoding::BASE32_NOPAD_NOCASE;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::secret::Secret;
use tack::secure::PublicKey;

/// The first characters of a ticket.
pub const PREFIX: &str = "tack1";
/// Maximum number of characters of a ticket.
pub const MAX_TEXT: usize = 160;
/// Maximum number of addresses in a ticket.
pub const MAX_ADDRESSES: usize = 3;

const VERSION: u8 = 1;
const CHECKSUM: usize = 4;
/// Bytes beside the addresses.
const FIXED: usize = 1 + 32 + 16 + 4 + 1 + CHECKSUM;
/// What [`MAX_TEXT`] leaves for addresses.
const ADDRESS_ROOM: usize = (MAX_TEXT - PREFIX.len()) * 5 / 8 - FIXED;

/// A ticket: an invitation to one peer.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The key of the issuer, which the holder connects to.
    pub issuer: PublicKey,
    /// The secret that the holder has to prove.
    pub secret: Secret,
    /// When it ends, seconds since 1970; 0 is never. Only the issuer judges this: clocks differ.
    pub expires: u32,
    addresses: Vec<SocketAddr>,
}

/// The identifier of a ticket, which does not reveal its secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TicketId(pub [u8; 8]);

impl TicketId {
    /// The identifier of the ticket with this secret.
    pub fn of(secret: &Secret) -> Self {
        // Keyed with the secret, so that the identifier says nothing about it.
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("takes any length");
        mac.update(b"tack ticket id 1");
        let mut id = [0; 8];
        id.copy_from_slice(&mac.finalize().into_bytes()[..8]);
        Self(id)
    }
}

/// A text that is not a ticket.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadTicket {
    /// The text does not begin with [`PREFIX`].
    #[error("expected a ticket: {PREFIX} and then letters and digits, as the other side prints it")]
    NoTicket,
    /// A character that no ticket has.
    #[error(
        "the ticket has {found:?} as character {position}; only letters and the digits 2 to 7 occur there"
    )]
    Character {
        /// Which, from 1.
        position: usize,
        /// What stands there.
        found: char,
    },
    /// Characters are missing or too many.
    #[error(
        "the ticket has {0} characters, which no ticket has: some are missing or too many; copy all of it"
    )]
    Length(usize),
    /// The checksum is wrong.
    #[error("the ticket has a typo: its checksum is wrong; copy it again")]
    Typo,
    /// Of another version of this program.
    #[error(
        "the ticket has version {0}, this program reads version {VERSION}; a newer tack may read it"
    )]
    Version(u8),
    /// The checksum is right, but the contents are malformed.
    #[error("the ticket is malformed, though its checksum is right: {0}")]
    Malformed(&'static str),
}

impl Ticket {
    /// A ticket that names as many of `addresses` as fit, in their order: three IPv4, or two IPv6.
    /// Link-local ones of IPv6 are left out: each machine has its own name for the interface that
    /// they need beside them.
    pub fn new(
        issuer: PublicKey,
        secret: Secret,
        expires: u32,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Self {
        let mut room = ADDRESS_ROOM;
        let mut fitting: Vec<SocketAddr> = Vec::new();
        for address in addresses {
            let needs_interface =
                matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local());
            if fitting.len() < MAX_ADDRESSES
                && !needs_interface
                && encoded_len(&address) <= room
                && !fitting.contains(&address)
            {
                room -= encoded_len(&address);
                fitting.push(SocketAddr::new(address.ip(), address.port()));
            }
        }
        Self {
            issuer,
            secret,
            expires,
            addresses: fitting,
        }
    }

    /// Where the issuer may be reached, the likeliest first.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The identifier of the ticket.
    pub fn id(&self) -> TicketId {
        TicketId::of(&self.secret)
    }

    /// The whole ticket as text: a secret.
    pub fn text(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(FIXED + ADDRESS_ROOM));
        bytes.push(VERSION);
        bytes.extend_from_slice(self.issuer.as_bytes());
        bytes.extend_from_slice(self.secret.as_bytes());
        bytes.extend_from_slice(&self.expires.to_be_bytes());
        bytes.push(self.addresses.len() as u8);
        for address in &self.addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend_from_slice(&ip.octets());
                }
            }
            bytes.extend_from_slice(&address.port().to_be_bytes());
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum);
        let mut text = Zeroizing::new(BASE32_NOPAD_NOCASE.encode(&bytes));
        text.make_ascii_lowercase();
        text.insert_str(0, PREFIX);
        text
    }
}

fn encoded_len(address: &SocketAddr) -> usize {
    if address.is_ipv4() {
        1 + 4 + 2
    } else {
        1 + 16 + 2
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::new_with_prefix(b"tack ticket")
        .chain_update(bytes)
        .finalize();
    [digest[0], digest[1], digest[2], digest[3]]
}

/// True for a text that begins like a ticket: whatever follows, it was meant as one.
pub fn looks_like(text: &str) -> bool {
    text.trim_start()
        .get(..PREFIX.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

impl FromStr for Ticket {
    type Err = BadTicket;

    /// Reads a ticket in either case. White space in it is skipped: mail programs break lines.
    fn from_str(text: &str) -> Result<Self, BadTicket> {
        if !looks_like(text) {
            return Err(BadTicket::NoTicket);
        }
        // The first character too many ends it: a long text costs nothing.
        let text: Zeroizing<String> = Zeroizing::new(
            text.chars()
                .filter(|c| !c.is_whitespace())
                .take(MAX_TEXT + 1)
                .collect(),
        );
        let count = text.chars().count();
        if count > MAX_TEXT {
            return Err(BadTicket::Length(count));
        }
        let wrong = |(at, c): (usize, char)| {
            let is_right = c.is_ascii_alphabetic() || ('2'..='7').contains(&c);
            (at >= PREFIX.len() && !is_right).then_some((at + 1, c))
        };
        if let Some((position, found)) = text.chars().enumerate().find_map(wrong) {
            return Err(BadTicket::Character { position, found });
        }
        let bytes = BASE32_NOPAD_NOCASE
            .decode(&text.as_bytes()[PREFIX.len()..])
            .map(Zeroizing::new)
            // All characters are right, so it is their number, or bits left over at the end.
            .map_err(|error| match error.kind {
                data_encoding::DecodeKind::Trailing => BadTicket::Typo,
                _ => BadTicket::Length(count),
            })?;
        let Some((payload, sum)) = bytes.split_last_chunk::<CHECKSUM>() else {
            return Err(BadTicket::Length(count));
        };
        if *sum != checksum(payload) {
            return Err(BadTicket::Typo);
        }
        parse(payload)
    }
}

fn parse(bytes: &[u8]) -> Result<Ticket, BadTicket> {
    let short = BadTicket::Malformed("it ends early");
    let (&version, bytes) = bytes.split_first().ok_or(short.clone())?;
    if version != VERSION {
        return Err(BadTicket::Version(version));
    }
    let (issuer, bytes) = bytes.split_first_chunk::<32>().ok_or(short.clone())?;
    let (secret, bytes) = bytes.split_first_chunk::<16>().ok_or(short.clone())?;
    let (expires, bytes) = bytes.split_first_chunk::<4>().ok_or(short.clone())?;
    let (&count, mut bytes) = bytes.split_first().ok_or(short.clone())?;
    if usize::from(count) > MAX_ADDRESSES {
        return Err(BadTicket::Malformed("it has more than three addresses"));
    }
    let mut addresses = Vec::with_capacity(count.into());
    for _ in 0..count {
        let (&family, rest) = bytes.split_first().ok_or(short.clone())?;
        let (ip, rest): (IpAddr, _) = match family {
            4 => {
                let (ip, rest) = rest.split_first_chunk::<4>().ok_or(short.clone())?;
                ((*ip).into(), rest)
            }
            6 => {
                let (ip, rest) = rest.split_first_chunk::<16>().ok_or(short.clone())?;
                ((*ip).into(), rest)
            }
            _ => return Err(BadTicket::Malformed("an address is neither IPv4 nor IPv6")),
        };
        let (port, rest) = rest.split_first_chunk::<2>().ok_or(short.clone())?;
        bytes = rest;
        let address = SocketAddr::new(ip, u16::from_be_bytes(*port));
        if addresses.contains(&address) {
            return Err(BadTicket::Malformed("an address stands there twice"));
        }
        addresses.push(address);
    }
    if !bytes.is_empty() {
        return Err(BadTicket::Malformed("bytes follow its end"));
    }
    Ok(Ticket {
        issuer: PublicKey::from(*issuer),
        secret: Secret::from_bytes(*secret),
        expires: u32::from_be_bytes(*expires),
        addresses,
    })
}

impl fmt::Display for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::identity;

    fn ticket(addresses: &[&str]) -> Ticket {
        Ticket::new(
            identity(5).public_key(),
            Secret::from_bytes([0x5a; 16]),
            1_800_000_000,
            addresses.iter().map(|address| address.parse().unwrap()),
        )
    }

    #[test]
    fn a_ticket_is_read_again_as_it_was_written() {
        for addresses in [
            &[][..],
            &["192.0.2.1:7777"],
            &["192.0.2.1:7777", "198.51.100.7:1", "203.0.113.9:65535"],
            &["[2001:db8::1]:7777", "192.0.2.1:7777", "198.51.100.7:1"],
            &["[2001:db8::1]:7777", "[2001:db8::2]:7777"],
        ] {
            let ticket = ticket(addresses);
            let text = ticket.text();
            assert!(text.len() <= MAX_TEXT, "{} of {addresses:?}", text.len());
            assert!(addresses.is_empty() || text.len() >= 100, "{}", text.len());
            assert_eq!(ticket.addresses().len(), addresses.len());
            let broken = format!(" {}\n  {} ", &text[..40], text[40..].to_uppercase());
            for text in [&*text, &broken] {
                let read: Ticket = text.parse().unwrap();
                assert_eq!(read.issuer, ticket.issuer);
                assert_eq!(read.secret.as_bytes(), ticket.secret.as_bytes());
                assert_eq!(read.expires, ticket.expires);
                assert_eq!(read.addresses, ticket.addresses);
                assert_eq!(read.id(), ticket.id());
            }
        }
    }

    #[test]
    fn addresses_beyond_the_room_are_left_out() {
        let many = ticket(&[
            "[2001:db8::1]:1",
            "[2001:db8::2]:1",
            "[2001:db8::3]:1",
            "192.0.2.1:1",
        ]);
        assert_eq!(many.addresses().len(), 2);
        assert!(many.text().len() <= MAX_TEXT);
        let twice = ticket(&["192.0.2.1:1", "192.0.2.1:1"]);
        assert_eq!(twice.addresses().len(), 1);
    }

    #[test]
    fn every_typo_is_told() {
        let text = ticket(&["192.0.2.1:7777"]).text().to_string();
        for at in PREFIX.len()..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[at] = if wrong[at] == b'q' { b'z' } else { b'q' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert_eq!(
                wrong.parse::<Ticket>().unwrap_err(),
                BadTicket::Typo,
                "{at}"
            );
        }
        let mut turned = text.clone().into_bytes();
        turned.swap(20, 21);
        let turned = String::from_utf8(turned).unwrap();
        assert!(turned == text || turned.parse::<Ticket>().is_err());
    }

    #[test]
    fn what_is_not_a_ticket_is_named() {
        let text = ticket(&["192.0.2.1:7777"]).text().to_string();
        for (wrong, error) in [
            ("7-guitarist-orca".to_owned(), BadTicket::NoTicket),
            (String::new(), BadTicket::NoTicket),
            ("tack1".to_owned(), BadTicket::Length(5)),
            (
                format!("{}0{}", &text[..9], &text[10..]),
                BadTicket::Character {
                    position: 10,
                    found: '0',
                },
            ),
            (format!("{text}{text}"), BadTicket::Length(161)),
        ] {
            assert_eq!(wrong.parse::<Ticket>().unwrap_err(), error, "{wrong}");
        }
        for len in 0..text.len() {
            assert!(text[..len].parse::<Ticket>().is_err(), "{len}");
        }
    }

    /// A ticket with this payload and its right checksum.
    fn sealed(payload: &[u8]) -> String {
        let bytes = [payload, &checksum(payload)].concat();
        format!("{PREFIX}{}", BASE32_NOPAD_NOCASE.encode(&bytes))
    }

    #[test]
    fn a_right_checksum_does_not_excuse_wrong_contents() {
        let key = identity(5).public_key();
        let whole = |version: u8, rest: &[u8]| {
            [&[version][..], key.as_bytes(), &[1; 16], &[0; 4], rest].concat()
        };
        let error = |payload: &[u8]| sealed(payload).parse::<Ticket>().unwrap_err();
        assert_eq!(error(&whole(2, &[0])), BadTicket::Version(2));
        for rest in [
            &[][..],
            &[4],
            &[1],
            &[1, 5, 1, 2, 3, 4, 0, 1],
            &[1, 4, 1, 2, 3, 4, 0],
            &[2, 4, 1, 2, 3, 4, 0, 1, 4, 1, 2, 3, 4, 0, 1],
            &[0, 0],
        ] {
            assert!(
                matches!(error(&whole(1, rest)), BadTicket::Malformed(_)),
                "{rest:?}"
            );
        }
    }

    #[test]
    fn a_ticket_is_not_printed_by_accident() {
        let ticket = ticket(&["192.0.2.1:7777"]);
        let printed = format!("{ticket:?}");
        assert!(
            !printed.contains("90, 90") && !printed.contains("5a5a"),
            "{printed}"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_ticket_or_an_error(text in ".{0,200}", tail in "[a-z2-7]{0,160}") {
            let _ = text.parse::<Ticket>();
            let _ = format!("tack1{tail}").parse::<Ticket>();
        }
    }
}
