//! What the handles and the driver of an endpoint share, and the lock around its state.
//!
//! Reads and writes work on the core directly, under one lock, and what they cause to be sent
//! leaves on the calling task. Only arrivals, timers and a full socket need the driver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tack_base::Instant;
use tack_io::{Clock, PacingTimer};
use tack_tcp::config::Carrier;
use tack_tcp::{Config, Endpoint as Core};

use crate::carrier::Local;
use crate::outgoing::Outgoing;
use crate::secure::Identity;
use crate::settings::{Coalesce, Settings};
use crate::state::{Life, State};
use crate::wakers::Parting;

/// Keeps an endpoint's driver alive.
#[derive(Clone, Debug)]
pub(crate) struct Handle(pub(crate) Arc<LastOut>);

#[derive(Debug)]
pub(crate) struct LastOut(pub(crate) Arc<Shared>);

impl std::ops::Deref for Handle {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0.0
    }
}

impl Drop for LastOut {
    fn drop(&mut self) {
        self.0.run(|state, _| {
            state.life = state.life.max(Life::Abandoned);
            state.wake_driver();
        });
    }
}

/// Shared by every handle of an endpoint and its driver.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) timer: PacingTimer,
    pub(crate) local: Local,
    pub(crate) insecure: bool,
    pub(crate) identity: Option<Identity>,
    /// How many guards ask for each segment to be answered by itself; at zero, batches are
    /// answered together.
    pub(crate) uncoalesced: AtomicUsize,
    pub(crate) config: Config,
    pub(crate) mtu: u16,
    state: Mutex<State>,
}

impl Shared {
    pub(crate) fn new(
        settings: &Settings,
        timer: PacingTimer,
        core: Core,
        outgoing: Outgoing,
    ) -> Self {
        let local = outgoing.sender().local();
        let state = State::new(core, outgoing);
        Self {
            clock: Clock::new(),
            timer,
            insecure: settings.insecure,
            identity: settings.identity.clone(),
            uncoalesced: AtomicUsize::new(usize::from(settings.coalesce == Coalesce::Off)),
            config: settings.config.clone(),
            mtu: settings.mtu.min(local.mtu()),
            local,
            state: Mutex::new(state),
        }
    }

    /// Changes the state under the lock, then sends what that caused, sets the timer, and wakes
    /// tasks without the lock.
    pub(crate) fn run<R>(&self, work: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.lock();
        let now = self.clock.now();
        let result = work(&mut state, now);
        state.settle(now, &self.timer);
        let mut wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.part();
        if wakers.more.capacity() > 0 {
            self.put_back(wakers.more);
        }
        result
    }

    /// Keeps the memory of a long list of wakers for the next one.
    #[cold]
    fn put_back(&self, empty: Vec<Parting>) {
        let mut state = self.lock();
        if state.wakers.more.capacity() == 0 {
            state.wakers.more = empty;
        }
    }

    /// Changes what no connection and no peer sees: nothing is sent, nobody is woken.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.lock())
    }

    /// Looks at the state without consequences.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State, Instant) -> R) -> R {
        look(&self.lock(), self.clock.now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a bug in the core; the other connections go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `config` for a connection to `peer`: with the facts of the carrier, and an MSS that fits the
    /// MTU.
    ///
    /// A listener has no peer: the larger headers of IPv6 are assumed where the socket can use
    /// them, and how far it is worth looking for larger segments, what the system refuses tells.
    pub(crate) fn prepare(&self, config: &Config, peer: Option<SocketAddr>) -> Config {
        let most = match (config.base_mss, &self.local, peer) {
            (None, ..) | (_, Local::Host { .. } | Local::Everywhere { .. }, _) => self.mtu,
            (Some(_), Local::Socket(_), None) => u16::MAX,
            (Some(_), Local::Socket(_), Some(peer)) => {
                let route = self.local.route_mtu(peer);
                route.unwrap_or(self.mtu).max(self.mtu)
            }
        };
        let peer = match peer {
            Some(peer) => peer.ip().to_canonical(),
            None if self.local.has_ipv6() => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        let overhead = self.local.overhead(peer);
        let room = |mtu: u16| mtu.saturating_sub(overhead + 20).max(1);
        let max_batch = self.look(|state, _| state.outgoing.sender().max_batch());
        Config {
            mss: config.mss.clamp(1, room(most)),
            base_mss: config.base_mss.map(|base| base.min(room(self.mtu))),
            carrier: Carrier {
                timer_granularity: PacingTimer::GRANULARITY,
                max_batch,
                overhead,
            },
            ..config.clone()
        }
    }
}
