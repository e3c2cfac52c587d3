//! The name server that programs inside of `tack exec` ask: the peer resolves their names, and what
//! it said is remembered, so that a connection to an address can be asked for by its name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use simple_dns::rdata::{A, AAAA, PTR, RData};
use simple_dns::{CLASS, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE};
use simple_dns::{ResourceRecord, SimpleDnsError, TYPE};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::carrier::Carrier;
use super::dial::RequestError;
use super::message::{Answer, Refusal, Request};
use super::target::Host;
use crate::meeting::PeerStream;
use crate::observe::tunnels;

/// How long an answer is used again, here and by who asked.
const LIFETIME: Duration = Duration::from_secs(30);
/// How long the peer may take to answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(15);
/// How long a line about a name is not repeated: one lookup asks for several records, and again.
const REPORT_AGAIN: Duration = Duration::from_secs(10);
/// Lines that are remembered, so that they are not repeated; of more the oldest is forgotten.
const MAX_REPORTED: usize = 64;
/// Names that are remembered; of more the oldest is forgotten.
const MAX_NAMES: usize = 4096;
/// Names that are remembered of one address, the newest first.
const MAX_OF_ADDRESS: usize = 4;
/// Questions to the peer at a time; further ones wait, and are given up by who asked.
const MAX_QUESTIONS: usize = 16;
/// Streams for questions that are kept for the next one.
const MAX_STREAMS: usize = 4;

/// What the peer said of names.
pub(super) struct Names {
    carrier: Arc<Carrier>,
    known: Mutex<Known>,
    streams: Mutex<Vec<PeerStream>>,
    questions: Semaphore,
}

/// What is known of names.
#[derive(Default)]
struct Known {
    by_name: BTreeMap<String, (Vec<IpAddr>, Instant)>,
    by_address: BTreeMap<IpAddr, Vec<String>>,
    /// Names in the order in which they were learned first.
    order: VecDeque<String>,
    /// Addresses of `by_address` that the peer permits by name alone.
    by_name_only: BTreeSet<IpAddr>,
    /// Lines about names that were printed, and when.
    reported: VecDeque<(String, Instant)>,
}

impl Known {
    fn fresh(&self, name: &str, now: Instant) -> Option<Vec<IpAddr>> {
        let (addresses, since) = self.by_name.get(name)?;
        (now.duration_since(*since) < LIFETIME).then(|| addresses.clone())
    }

    fn learn(&mut self, name: &str, addresses: &[IpAddr], now: Instant) {
        self.forget(name);
        if self.by_name.len() >= MAX_NAMES
            && let Some(oldest) = self.order.front().cloned()
        {
            self.forget(&oldest);
        }
        let entry = (addresses.to_vec(), now);
        self.by_name.insert(name.to_owned(), entry);
        self.order.push_back(name.to_owned());
        for address in addresses {
            let names = self.by_address.entry(*address).or_default();
            names.insert(0, name.to_owned());
            names.truncate(MAX_OF_ADDRESS);
        }
    }

    fn hosts_of(&self, address: IpAddr) -> Vec<Host> {
        let names = self.by_address.get(&address).into_iter().flatten();
        let mut hosts = vec![Host::Address(address)];
        hosts.extend(names.map(|name| Host::Name(name.clone())));
        if self.by_name_only.contains(&address) {
            hosts.rotate_left(1);
        }
        hosts
    }

    fn permitted_as(&mut self, address: IpAddr, host: &Host) {
        match host {
            Host::Name(_) if self.by_address.contains_key(&address) => {
                self.by_name_only.insert(address);
            }
            _ => {
                self.by_name_only.remove(&address);
            }
        }
    }

    /// True for a line about a name that was not printed a moment ago.
    fn is_news(&mut self, line: String, now: Instant) -> bool {
        self.reported
            .retain(|(_, since)| now.duration_since(*since) < REPORT_AGAIN);
        if self.reported.iter().any(|(reported, _)| *reported == line) {
            return false;
        }
        if self.reported.len() >= MAX_REPORTED {
            self.reported.pop_front();
        }
        self.reported.push_back((line, now));
        true
    }

    fn forget(&mut self, name: &str) {
        let Some((addresses, _)) = self.by_name.remove(name) else {
            return;
        };
        self.order.retain(|it| it != name);
        for address in addresses {
            if let Some(names) = self.by_address.get_mut(&address) {
                names.retain(|it| it != name);
                if names.is_empty() {
                    self.by_name_only.remove(&address);
                    self.by_address.remove(&address);
                }
            }
        }
    }
}

impl Names {
    pub(super) fn new(carrier: Arc<Carrier>) -> Self {
        Self {
            carrier,
            known: Mutex::default(),
            streams: Mutex::default(),
            questions: Semaphore::new(MAX_QUESTIONS),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to ask the peer for in the place of `address`: the address, then the names that it was
    /// the answer for, the newest first. The peer's rules may name any of them. Where they were
    /// found to name the host alone, the address comes last.
    pub(super) fn hosts_of(&self, address: IpAddr) -> Vec<Host> {
        self.known().hosts_of(address)
    }

    /// The peer permits `address` as `host`, one of [`Names::hosts_of`].
    pub(super) fn permitted_as(&self, address: IpAddr, host: &Host) {
        self.known().permitted_as(address, host);
    }

    /// As [`Names::hosts_of`], for a datagram, whose answer has to come from `address`: a name only
    /// if it stands for this address alone.
    pub(super) fn host_of_datagram(&self, address: IpAddr) -> Host {
        let known = self.known();
        let names = known.by_address.get(&address).into_iter().flatten();
        let is_only = |name: &&String| {
            let entry = known.by_name.get(*name);
            entry.is_some_and(|(addresses, _)| addresses.len() == 1)
        };
        names
            .clone()
            .find(is_only)
            .map_or(Host::Address(address), |name| Host::Name(name.clone()))
    }

    /// Gives up the streams that are kept for the next question.
    pub(super) fn close(&self) {
        let streams = std::mem::take(&mut *self.streams());
        drop(streams);
    }

    /// The addresses of `name`, as the peer says.
    ///
    /// # Errors
    /// [`RequestError`].
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, RequestError> {
        if let Some(addresses) = self.known().fresh(name, Instant::now()) {
            return Ok(addresses);
        }
        let _turn = self.questions.acquire().await;
        // Somebody may have asked meanwhile.
        if let Some(addresses) = self.known().fresh(name, Instant::now()) {
            return Ok(addresses);
        }
        let addresses = self.ask(name).await?;
        self.known().learn(name, &addresses, Instant::now());
        Ok(addresses)
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<PeerStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, name: &str) -> Result<Vec<IpAddr>, RequestError> {
        let request = Request::Resolve(name.to_owned());
        loop {
            let kept = self.streams().pop();
            let was_kept = kept.is_some();
            let outcome = match kept {
                Some(stream) => again(stream, &request).await.inspect(|(_, answer)| {
                    if let Answer::Refused(refusal) = answer {
                        tunnels().refused(refusal.name());
                    }
                }),
                None => match self.carrier.peer.request(&request).await {
                    Ok(answered) => Ok(answered),
                    Err(RequestError::Refused(refusal)) => {
                        return Err(RequestError::Refused(refusal));
                    }
                    Err(RequestError::Lost(why)) => Err(io::Error::other(why)),
                },
            };
            match outcome {
                Ok((stream, answer)) => {
                    let mut streams = self.streams();
                    if streams.len() < MAX_STREAMS {
                        streams.push(stream);
                    }
                    return match answer {
                        Answer::Addresses(addresses) => Ok(addresses),
                        Answer::Refused(refusal) => Err(RequestError::Refused(refusal)),
                        _ => Err(RequestError::Lost(
                            "unexpected answer from the other side".into(),
                        )),
                    };
                }
                // The peer keeps a stream for a while only.
                Err(_) if was_kept => {}
                Err(error) => return Err(RequestError::Lost(error.to_string())),
            }
        }
    }

    /// The response to a DNS query; `None` for what is none.
    pub(super) async fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        let asked = match read(query) {
            Ok(asked) => asked,
            Err(response) => return response,
        };
        let outcome = match &asked.what {
            Asked::Addresses(name, _) => match self.resolve(name).await {
                Ok(addresses) => Ok(addresses),
                Err(error) => {
                    // That a name does not exist is an answer; the rest is worth a line.
                    let is_answer = matches!(error, RequestError::Refused(Refusal::NoSuchHost));
                    let line = format!("{name}: {error}");
                    if !is_answer && self.known().is_news(line, Instant::now()) {
                        self.carrier.complain(name, &error);
                    }
                    Err(rcode(&error))
                }
            },
            Asked::Name(_) | Asked::Nothing => Ok(Vec::new()),
        };
        let names = match &asked.what {
            Asked::Name(address) => {
                let known = self.known();
                known.by_address.get(address).cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        asked.respond(outcome, &names)
    }
}

/// Asks on a stream that has answered before.
async fn again(mut stream: PeerStream, request: &Request) -> io::Result<(PeerStream, Answer)> {
    let asking = async {
        request.write(&mut stream).await?;
        Answer::read(&mut stream).await
    };
    let answer = tokio::time::timeout(ANSWER_DEADLINE, asking)
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??;
    Ok((stream, answer))
}

fn rcode(error: &RequestError) -> RCODE {
    match error {
        RequestError::Refused(Refusal::NoSuchHost) => RCODE::NameError,
        RequestError::Refused(Refusal::NotPermitted) => RCODE::Refused,
        RequestError::Refused(_) | RequestError::Lost(_) => RCODE::ServerFailure,
    }
}

/// A query that was understood.
struct Query<'a> {
    id: u16,
    question: Question<'a>,
    what: Asked,
}

/// What a query asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
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
enum Family {
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
fn read(query: &[u8]) -> Result<Query<'_>, Option<Vec<u8>>> {
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
    fn respond(&self, outcome: Result<Vec<IpAddr>, RCODE>, names: &[String]) -> Option<Vec<u8>> {
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
    use proptest::prelude::*;

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
        let many = vec![addresses[1]; super::super::message::MAX_ADDRESSES];
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

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_name_goes_first() {
        let mut known = Known::default();
        let now = Instant::now();
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        for number in 0..MAX_NAMES + 10 {
            known.learn(&format!("host-{number}"), &[address], now);
        }
        assert_eq!(known.by_name.len(), MAX_NAMES);
        assert_eq!(known.order.len(), MAX_NAMES);
        let newest = format!("host-{}", MAX_NAMES + 9);
        assert_eq!(known.by_address[&address][0], newest);
        assert_eq!(known.by_address[&address].len(), MAX_OF_ADDRESS);
        known.learn(&newest, &["10.0.0.2".parse().unwrap()], now);
        assert_ne!(known.by_address[&address][0], newest);
        let other: IpAddr = "10.0.0.2".parse().unwrap();
        let name = Host::Name(newest.clone());
        assert_eq!(known.hosts_of(other), [Host::Address(other), name.clone()]);
        known.permitted_as(other, &name);
        assert_eq!(known.hosts_of(other), [name.clone(), Host::Address(other)]);
        known.permitted_as(other, &Host::Address(other));
        assert_eq!(known.hosts_of(other)[1], name);
        // What nobody asked for has no names, and is not remembered.
        let unknown: IpAddr = "10.0.0.3".parse().unwrap();
        known.permitted_as(unknown, &name);
        assert_eq!(known.hosts_of(unknown), [Host::Address(unknown)]);
        assert!(known.fresh(&newest, now).is_some());
        assert!(known.fresh(&newest, now + LIFETIME).is_none());
    }

    #[test]
    fn a_line_about_a_name_is_repeated_only_after_a_while() {
        let mut known = Known::default();
        let now = Instant::now();
        let mut is_news = |line: &str, now| known.is_news(line.to_owned(), now);
        assert!(is_news("nas: not permitted", now));
        assert!(!is_news("nas: not permitted", now));
        assert!(is_news("www: not permitted", now));
        assert!(is_news("nas: busy", now));
        assert!(is_news("nas: not permitted", now + REPORT_AGAIN));
        for number in 0..MAX_REPORTED + 10 {
            assert!(is_news(&number.to_string(), now + REPORT_AGAIN));
        }
        assert_eq!(known.reported.len(), MAX_REPORTED);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_query_or_draw_at_most_a_header(
            bytes in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            if let Err(Some(response)) = read(&bytes) {
                // A header, or the question again.
                prop_assert!(response.len() == 12 || response.len() <= bytes.len());
            }
        }
    }
}
