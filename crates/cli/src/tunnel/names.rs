//! The name server that programs inside of `tack exec` ask: the peer resolves their names, and what
//! it said is remembered, so that a connection to an address can be asked for by its name.

mod dns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use simple_dns::RCODE;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::dns::{Asked, LIFETIME, read};
use super::carrier::Carrier;
use super::dial::RequestError;
use super::message::{Answer, Refusal, Request};
use super::target::Host;
use crate::meeting::PeerStream;
use crate::observe::tunnels;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
