//! Queries to the name server of `tack exec`, and its responses (RFC 1035).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use simple_dns::rdata::{A, AAAA, PTR, RData};
use simple_dns::{CLASS, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE};
use simple_dns::{ResourceRecord, SimpleDnsError, TYPE};

use crate::tunnel::target::Host;

/// How long an answer is used again, here and by who asked.
pub(super) const LIFETIME: Duration = Duration::from_secs(30);

/// A query that was understood.
pub(super) struct Query<'a> {
    id: u16,
    question: Question<'a>,
    pub(super) what: Asked,
}

/// What a query asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// The addresses of a name, of IPv4, of IPv6 or of both.
    Addresses(String, Family),
    /// The name of an address.
    Name(IpAddr),
    /// What this name cannot have, or a kind of record that the peer's resolver has none of to
    /// give: a name without records of this kind (NODATA, RFC 2308 §2.2), so that programs go on
    /// with what they ask besides.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    V4,
    V6,
    /// As for a question for any records (RFC 8482 §4.1).
    Any,
}

impl Family {
    fn has(self, address: IpAddr) -> bool {
        match self {
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
            Self::Any => true,
        }
    }
}

/// Reads a query; or the response to what is not one.
pub(super) fn read(query: &[u8]) -> Result<Query<'_>, Option<Vec<u8>>> {
    let refused = |id, rcode| Err(reply(id, rcode).build_bytes_vec().ok());
    let packet = match Packet::parse(query) {
        Ok(packet) => packet,
        Err(error) => {
            // Its first two bytes are its number, if it has that many.
            let [high, low, flags, _, ..] = *query else {
                return Err(None);
            };
            if flags & 0x80 != 0 {
                return Err(None);
            }
            return match error {
                // A kind that the parser has no name for is one as any (RFC 3597).
                SimpleDnsError::InvalidQType(_) => match without_records(query) {
                    Some(response) => Err(Some(response)),
                    None => refused(u16::from_be_bytes([high, low]), RCODE::FormatError),
                },
                SimpleDnsError::InvalidQClass(_) | SimpleDnsError::InvalidClass(_) => {
                    refused(u16::from_be_bytes([high, low]), RCODE::Refused)
                }
                _ => refused(u16::from_be_bytes([high, low]), RCODE::FormatError),
            };
        }
    };
    let id = packet.id();
    if packet.has_flags(PacketFlag::RESPONSE) {
        return Err(None);
    }
    if packet.opcode() != OPCODE::StandardQuery {
        return refused(id, RCODE::NotImplemented);
    }
    let mut questions = packet.questions.into_iter();
    let (Some(question), None) = (questions.next(), questions.next()) else {
        return refused(id, RCODE::FormatError);
    };
    let name = question.qname.to_string();
    if !matches!(question.qclass, QCLASS::CLASS(CLASS::IN) | QCLASS::ANY) {
        return refused(id, RCODE::Refused);
    }
    let addresses = |family| match name.parse() {
        Ok(Host::Name(name)) => Asked::Addresses(name, family),
        Ok(Host::Address(_)) | Err(_) => Asked::Nothing,
    };
    let what = match question.qtype {
        QTYPE::TYPE(TYPE::A) => addresses(Family::V4),
        QTYPE::TYPE(TYPE::AAAA) => addresses(Family::V6),
        QTYPE::TYPE(TYPE::PTR) => reverse(&name).map_or(Asked::Nothing, Asked::Name),
        QTYPE::ANY => addresses(Family::Any),
        // Nobody gets a zone from here (RFC 5936 §2.2.1).
        QTYPE::AXFR | QTYPE::IXFR => return refused(id, RCODE::Refused),
        QTYPE::TYPE(_) | QTYPE::MAILA | QTYPE::MAILB => Asked::Nothing,
    };
    Ok(Query { id, question, what })
}

/// The response that a name has no records of the kind that is asked for, of which this program
/// knows no more than its number; `None` where that is not the only question.
fn without_records(query: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    const KIND_AND_CLASS: usize = 4;
    // QR, recursion available, and what the query said of recursion (RFC 1035 §4.1.1).
    let header = query.get(..HEADER)?;
    if header[2] & 0x78 != 0 || header[4..6] != [0, 1] {
        return None;
    }
    let mut end = HEADER;
    loop {
        match usize::from(*query.get(end)?) {
            0 => break,
            label @ 1..=63 => end += 1 + label,
            // A pointer has nothing before it to point to.
            _ => return None,
        }
    }
    end += 1 + KIND_AND_CLASS;
    let [.., high, low] = *query.get(..end)? else {
        return None;
    };
    // Names have 255 bytes at most, with their end.
    if end - HEADER - KIND_AND_CLASS > 255 || [high, low] != (CLASS::IN as u16).to_be_bytes() {
        return None;
    }
    let flags = [0x80 | header[2] & 0x01, 0x80];
    let counts = [0, 1, 0, 0, 0, 0, 0, 0];
    Some([&header[..2], &flags, &counts, &query[HEADER..end]].concat())
}

fn reply<'a>(id: u16, rcode: RCODE) -> Packet<'a> {
    let mut reply = Packet::new_reply(id);
    reply.set_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::RECURSION_DESIRED);
    *reply.rcode_mut() = rcode;
    reply
}

impl Query<'_> {
    pub(super) fn respond(
        &self,
        outcome: Result<Vec<IpAddr>, RCODE>,
        names: &[String],
    ) -> Option<Vec<u8>> {
        let (addresses, rcode) = match outcome {
            Ok(addresses) => (addresses, RCODE::NoError),
            Err(rcode) => (Vec::new(), rcode),
        };
        let mut reply = reply(self.id, rcode);
        let record = |data| {
            let ttl = LIFETIME.as_secs() as u32;
            ResourceRecord::new(self.question.qname.clone(), CLASS::IN, ttl, data)
        };
        let wanted = |address: &IpAddr| match &self.what {
            Asked::Addresses(_, family) => family.has(*address),
            Asked::Name(_) | Asked::Nothing => false,
        };
        for address in addresses.into_iter().filter(wanted) {
            let data = match address {
                IpAddr::V4(address) => RData::A(A {
                    address: address.to_bits(),
                }),
                IpAddr::V6(address) => RData::AAAA(AAAA {
                    address: address.to_bits(),
                }),
            };
            reply.answers.push(record(data));
        }
        for name in names {
            if let Ok(name) = Name::new(name) {
                reply.answers.push(record(RData::PTR(PTR(name))));
            }
        }
        reply.questions.push(self.question.clone());
        reply.build_bytes_vec_compressed().ok()
    }
}

/// The address whose name is asked for (RFC 1035 §3.5, RFC 3596 §2.5).
fn reverse(name: &str) -> Option<IpAddr> {
    let name = name.to_ascii_lowercase();
    if let Some(octets) = name.strip_suffix(".in-addr.arpa") {
        let octets: Vec<&str> = octets.split('.').rev().collect();
        return octets.join(".").parse::<Ipv4Addr>().ok().map(Into::into);
    }
    let digits = name.strip_suffix(".ip6.arpa")?;
    let mut bits = 0_u128;
    let mut count = 0;
    for digit in digits.split('.').rev() {
        let digit = u128::from_str_radix(digit, 16).ok().filter(|it| *it < 16)?;
        bits = bits << 4 | digit;
        count += 1;
    }
    (count == 32).then(|| Ipv6Addr::from_bits(bits).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: TYPE) -> Vec<u8> {
        let mut query = Packet::new_query(7);
        let name = Name::new_unchecked(name);
        let class = QCLASS::CLASS(CLASS::IN);
        query
            .questions
            .push(Question::new(name, kind.into(), class, false));
        query.build_bytes_vec().unwrap()
    }

    fn asked(name: &str, kind: TYPE) -> Asked {
        read(&query(name, kind)).ok().unwrap().what
    }

    #[test]
    fn questions_are_for_addresses_and_names() {
        let name = "www.example.org".to_owned();
        assert_eq!(
            asked("WWW.example.org", TYPE::A),
            Asked::Addresses(name.clone(), Family::V4)
        );
        assert_eq!(
            asked("www.example.org", TYPE::AAAA),
            Asked::Addresses(name, Family::V6)
        );
        // What the peer's resolver has none of.
        assert_eq!(asked("www.example.org", TYPE::MX), Asked::Nothing);
        assert_eq!(asked("www.example.org", TYPE::HTTPS), Asked::Nothing);
        assert_eq!(asked("1.2.3.4", TYPE::A), Asked::Nothing);
        assert_eq!(
            asked("4.3.2.1.in-addr.arpa", TYPE::PTR),
            Asked::Name("1.2.3.4".parse().unwrap())
        );
        let six = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(
            asked(six, TYPE::PTR),
            Asked::Name("2001:db8::1".parse().unwrap())
        );
        assert_eq!(asked("9.in-addr.arpa", TYPE::PTR), Asked::Nothing);
    }

    #[test]
    fn answers_carry_the_addresses_of_the_family_that_was_asked_for() {
        let bytes = query("nas", TYPE::A);
        let query = read(&bytes).ok().unwrap();
        let addresses = ["192.168.1.7", "fd00::7"].map(|text| text.parse().unwrap());
        let response = query.respond(Ok(addresses.to_vec()), &[]).unwrap();
        let response = Packet::parse(&response).unwrap();
        assert_eq!((response.id(), response.rcode()), (7, RCODE::NoError));
        assert!(response.has_flags(PacketFlag::RESPONSE));
        assert_eq!(response.answers.len(), 1);
        let A { address } = match &response.answers[0].rdata {
            RData::A(a) => a.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(IpAddr::from(Ipv4Addr::from_bits(address)), addresses[0]);
        let response = query.respond(Err(RCODE::NameError), &[]).unwrap();
        assert_eq!(Packet::parse(&response).unwrap().rcode(), RCODE::NameError);
        // The most that a peer says fits a datagram of old.
        let many = vec![addresses[1]; crate::tunnel::message::MAX_ADDRESSES];
        let bytes = self::query("nas", TYPE::AAAA);
        let query = read(&bytes).ok().unwrap();
        assert!(query.respond(Ok(many), &[]).unwrap().len() <= 512);
    }

    /// A query for `name`, with a kind and a class by their numbers.
    fn numbered(kind: u16, class: u16) -> Vec<u8> {
        let mut query = self::query("www.example.org", TYPE::A);
        let end = query.len();
        query[end - 4..end - 2].copy_from_slice(&kind.to_be_bytes());
        query[end - 2..].copy_from_slice(&class.to_be_bytes());
        query
    }

    /// As a resolver has it: a name without such records, and not an error (RFC 2308 §2.2).
    #[test]
    fn unknown_kinds_are_answered_by_a_name_without_records() {
        // A kind that the parser knows, one that it does not, and one of a range for private use.
        for kind in [15, 65, 4711, 65_280] {
            let query = numbered(kind, 1);
            let response = match read(&query) {
                Ok(query) => query.respond(Ok(Vec::new()), &[]),
                Err(response) => response,
            };
            let response = response.unwrap();
            assert_eq!(response[..2], query[..2], "{kind}");
            assert!(response[2] & 0x80 != 0 && response[3] & 0x0f == 0, "{kind}");
            assert_eq!(response[4..12], [0, 1, 0, 0, 0, 0, 0, 0], "{kind}");
            assert_eq!(response[12..], query[12..], "{kind}");
        }
        let code = |query: &[u8]| read(query).err().unwrap().unwrap()[3] & 0x0f;
        assert_eq!(code(&numbered(1, 3)), RCODE::Refused as u8, "CHAOS");
        assert_eq!(code(&numbered(1, 77)), RCODE::Refused as u8);
        assert_eq!(code(&numbered(252, 1)), RCODE::Refused as u8, "AXFR");
        let any = numbered(255, 1);
        let any = read(&any).ok().unwrap();
        let addresses = ["192.168.1.7", "fd00::7"].map(|text| text.parse().unwrap());
        let response = any.respond(Ok(addresses.to_vec()), &[]).unwrap();
        assert_eq!(Packet::parse(&response).unwrap().answers.len(), 2);
    }
}
