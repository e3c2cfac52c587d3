//! Half-open connections: a record each in the place of a connection, and cookies when there are
//! too many.
//!
//! Of the defences of RFC 4987 these are a SYN cache (§3.5) with SYN cookies (§3.6) behind it. A
//! record keeps all that a SYN said, so as long as there is room nothing is lost by not making a
//! connection at once. There is room for the listener's backlog; a flood of forged SYNs fills it,
//! and from then on SYNs are answered with cookies, which cost nothing and cannot be crowded out.
//! Recycling the oldest half-open connection instead (§3.4) needs no cookies, but locks out every
//! honest peer whose round trip is longer than the flood takes to fill the backlog.
//!
//! What an unproven address is sent: one SYN-ACK for each SYN, and from a record the
//! retransmissions of RFC 6298, at most `syn_retries` of them. A SYN-ACK is not longer than 60
//! bytes.

use alloc::collections::VecDeque;
use core::net::SocketAddr;
use core::time::Duration;

use tack_base::Instant;
use tack_wire::{Ecn, Flags, Header, Segment, SeqNum};

use super::records::Records;
use super::table::Tuple;
use crate::config::Config;
use crate::connection::ChallengeLimit;
use crate::connection::identity::Identity;
use crate::connection::offer::{Offer, Progress, Resumption};
use crate::transmit::{Batch, Transmit};

/// Cookies that wait to leave; more are not made, and their peers ask again. A driver that takes in
/// a batch of datagrams before it sends has so many at most.
const COOKIES_QUEUED: usize = 256;

/// A SYN that was answered, or is about to be, and not acknowledged.
#[derive(Debug)]
pub(super) struct HalfOpen {
    offer: Offer,
    iss: SeqNum,
    seed: u64,
    progress: Progress,
    /// Its SYN-ACK waits to leave.
    queued: bool,
    replies: ChallengeLimit,
}

/// What is to be done about a segment for a half-open connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Nothing.
    Ignore,
    /// Its answer is due again.
    Repeat,
    /// It is answered with this.
    Answer(Header),
    /// It acknowledges something else. That may be a cookie which an earlier SYN of the peer drew,
    /// when there was no room for a record.
    Unknown,
    /// The peer resets the connection, which is forgotten.
    Forget,
    /// The handshake is complete, if the rest of the segment is sound.
    Complete,
}

/// All half-open connections of an endpoint.
#[derive(Debug)]
pub(super) struct HalfOpens {
    pub(super) records: Records<HalfOpen>,
    /// Whose SYN-ACK waits to leave. Some may be gone.
    due: VecDeque<Tuple>,
    /// SYN-ACKs that nothing else remembers.
    cookies: VecDeque<(SocketAddr, Header)>,
}

impl HalfOpen {
    pub(super) fn new(offer: Offer, iss: SeqNum, seed: u64) -> Self {
        Self {
            offer,
            iss,
            seed,
            progress: Progress::default(),
            queued: false,
            replies: ChallengeLimit::default(),
        }
    }

    fn identity(&self, name: &Tuple) -> Identity {
        Identity {
            local_port: name.local_port,
            remote_port: name.remote_port,
            iss: self.iss,
            seed: self.seed,
        }
    }

    /// What the connection is made of.
    pub(super) fn parts(&self, name: &Tuple) -> Resumption {
        Resumption {
            offer: self.offer,
            identity: self.identity(name),
            progress: self.progress,
        }
    }

    /// The reset that ends it.
    pub(super) fn reset(&self, name: &Tuple) -> Header {
        Header {
            src_port: name.local_port,
            dst_port: name.remote_port,
            seq: self.iss + 1,
            ack: self.offer.irs + 1,
            flags: Flags::RST.with(Flags::ACK),
            ..Header::default()
        }
    }

    /// RFC 9293 §3.10.7.4 for SYN-RECEIVED, with RFC 5961.
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        name: &Tuple,
        segment: &Segment<'_>,
        config: &Config,
    ) -> Step {
        let header = &segment.header;
        let flags = header.flags;
        let rcv_nxt = self.offer.irs + 1;
        if flags.syn() && !flags.ack() && !flags.rst() && header.seq == self.offer.irs {
            // What is echoed is of the newest, so that the peer can tell what was answered (RFC
            // 7323 §4.3).
            if let (Some(known), Some(newest)) =
                (&mut self.offer.timestamp, header.options.timestamps)
                && newest.value.wrapping_sub(*known) < 1 << 31
            {
                *known = newest.value;
            }
            return Step::Repeat;
        }
        if flags.rst() {
            return if header.seq == rcv_nxt {
                Step::Forget
            } else if self.in_window(segment, config) {
                self.challenge(now, name, config)
            } else {
                Step::Ignore
            };
        }
        if flags.syn() || !self.in_window(segment, config) {
            return self.challenge(now, name, config);
        }
        if !flags.ack() {
            return Step::Ignore;
        }
        if header.ack == self.iss + 1 {
            return Step::Complete;
        }
        Step::Unknown
    }

    /// The answer to an acknowledgement of something else: a reset, and the connection stays
    /// half-open.
    pub(super) fn refuse(&mut self, now: Instant, name: &Tuple, ack: SeqNum) -> Option<Header> {
        self.replies.allow(now).then(|| Header {
            src_port: name.local_port,
            dst_port: name.remote_port,
            seq: ack,
            flags: Flags::RST,
            ..Header::default()
        })
    }

    fn in_window(&self, segment: &Segment<'_>, config: &Config) -> bool {
        let start = segment.header.seq.distance(self.offer.irs + 1);
        // Lists of a report lie below what they acknowledge, where no bytes are yet.
        let least = -(segment.payload.len() as i64);
        let window = config.initial_receive_buffer.min(1 << 30) as i64;
        (least..=window).contains(&i64::from(start))
    }

    fn challenge(&mut self, now: Instant, name: &Tuple, config: &Config) -> Step {
        if self.replies.allow(now) {
            let identity = self.identity(name);
            Step::Answer(self.offer.challenge(config, &identity, now))
        } else {
            Step::Ignore
        }
    }

    /// How long the SYN-ACK waits for its acknowledgement (RFC 6298 §2.1, §5.5).
    fn timeout(&self, config: &Config) -> Duration {
        config
            .initial_rto
            .max(config.min_rto)
            .saturating_mul(1 << self.progress.timeouts.min(30))
            .min(config.max_rto)
    }
}

impl HalfOpens {
    pub(super) const fn new() -> Self {
        Self {
            records: Records::new(),
            due: VecDeque::new(),
            cookies: VecDeque::new(),
        }
    }

    /// Keeps a record; its SYN-ACK is due.
    pub(super) fn insert(&mut self, now: Instant, name: Tuple, record: HalfOpen, config: &Config) {
        let deadline = now + record.timeout(config);
        self.records.insert(name, deadline, record);
        self.answer(&name);
    }

    /// The SYN-ACK of this one is due.
    pub(super) fn answer(&mut self, name: &Tuple) {
        if let Some(record) = self.records.get_mut(name)
            && !core::mem::replace(&mut record.queued, true)
        {
            self.due.push_back(*name);
        }
    }

    /// Answers a SYN whose initial sequence number `iss` is a cookie. Returns whether there was
    /// room to.
    pub(super) fn answer_with_cookie(
        &mut self,
        now: Instant,
        name: &Tuple,
        offer: &Offer,
        (iss, seed): (SeqNum, u64),
        config: &Config,
    ) -> bool {
        if self.cookies.len() >= COOKIES_QUEUED {
            return false;
        }
        let identity = Identity {
            local_port: name.local_port,
            remote_port: name.remote_port,
            iss,
            seed,
        };
        self.cookies
            .push_back((name.peer, offer.syn_ack(config, &identity, now)));
        true
    }

    /// The record whose SYN-ACK was not acknowledged in time, if there is one: its SYN-ACK is due
    /// again. With `config` of the listener; `Err` names a record that has had its last chance,
    /// or no listener, and is gone.
    pub(super) fn expire<'a>(
        &mut self,
        now: Instant,
        config: impl FnOnce(u16) -> Option<&'a Config>,
    ) -> Option<Result<(), Tuple>> {
        let (deadline, name) = self.records.first().filter(|(at, _)| *at <= now)?;
        let config = config(name.local_port);
        if let Some(record) = self.records.get_mut(&name)
            && let Some(config) = config
            && record.progress.timeouts < config.syn_retries
        {
            record.progress.timeouts += 1;
            let next = deadline.max(now) + record.timeout(config);
            self.records.postpone(&name, next);
            self.answer(&name);
            return Some(Ok(()));
        }
        self.records.remove(&name);
        Some(Err(name))
    }

    /// A SYN-ACK may wait to leave.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        !self.cookies.is_empty() || !self.due.is_empty()
    }

    /// The next SYN-ACK to leave.
    pub(super) fn poll_transmit<'a>(
        &mut self,
        now: Instant,
        batch: &mut Batch<'_>,
        config: impl Fn(u16) -> Option<&'a Config>,
    ) -> Option<(SocketAddr, Transmit)> {
        if let Some((peer, header)) = self.cookies.pop_front() {
            return Some((peer, batch.single(now, &header)));
        }
        loop {
            let name = self.due.pop_front()?;
            let Some(config) = config(name.local_port) else {
                continue;
            };
            let Some(record) = self.records.get_mut(&name).filter(|record| record.queued) else {
                continue;
            };
            record.queued = false;
            record.progress.transmissions += 1;
            record.progress.sent_at.get_or_insert(now);
            record.progress.newest_at = Some(now);
            let header = record.offer.syn_ack(config, &record.identity(&name), now);
            return Some((name.peer, batch.single(now, &header)));
        }
    }
}

impl Batch<'_> {
    /// Appends a segment without payload.
    pub(super) fn single(&mut self, now: Instant, header: &Header) -> Transmit {
        let start = self.buf.len();
        let len = self.prefix + header.encoded_len();
        self.buf.resize(start + len, 0);
        header.emit(&mut self.buf[start + self.prefix..]);
        Transmit {
            len,
            segment_size: len,
            segments: 1,
            ecn: Ecn::NotEct,
            departure: now,
        }
    }
}
