//! What is behind an endpoint's lock: the core, the sockets' sending half, and who waits for what.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::task::Waker;

use tack_base::Instant;
use tack_io::{PacingTimer, QuotedSegment, Refused};
use tack_tcp::{ConnectionId, Endpoint as Core, PathError, State as TcpState, Tuple};
use tack_wire::icmp::smaller_mtu;

use crate::address::is_loopback;
use crate::error::EndpointClosed;
use crate::held::Intercepted;
use crate::journal::Watched;
use crate::outgoing::{Flushed, Outgoing};
use crate::slot::Slot;
use crate::waiters::Waiters;
use crate::wakers::Wakers;

/// Everything behind the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) core: Core,
    pub(crate) outgoing: Outgoing,
    /// Connections that the application holds.
    pub(crate) slots: HashMap<ConnectionId, Slot>,
    /// Connections that the application dropped and that still have bytes to deliver or a peer to
    /// answer.
    pub(crate) released: Vec<ConnectionId>,
    /// Connections in SYN-SENT; those that left that state are removed now and then.
    dialing: Vec<ConnectionId>,
    /// Ports listened on, with the tasks that wait in `accept`.
    pub(crate) acceptors: HashMap<u16, Acceptors>,
    pub(crate) life: Life,
    /// Tasks that wait for the last connection to finish.
    pub(crate) closers: Waiters,
    /// The driver's task, to be woken for what no file descriptor signals.
    pub(crate) driver: Option<Waker>,
    /// The socket was full: the driver waits for it to be writable.
    pub(crate) blocked: bool,
    /// When the timer fires.
    pub(crate) armed: Instant,
    /// Only connections in TIME-WAIT are left, and a peer may still need our last acknowledgement.
    lingers: bool,
    pub(crate) received: u64,
    pub(crate) receives: u64,
    pub(crate) malformed: u64,
    pub(crate) wakers: Wakers,
    /// Somebody looks at the connections from beside.
    pub(crate) watched: Option<Watched>,
    /// What is kept for the application by an endpoint that stands for every host.
    pub(crate) intercepted: Option<Intercepted>,
}

/// How far an endpoint's life has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Life {
    /// In use.
    Open,
    /// No new connections; the existing ones finish.
    Closing,
    /// No handle is left; the driver ends when the released connections have finished.
    Abandoned,
    /// The driver has ended.
    Dead,
}

/// Tasks that wait for the connections to a port.
#[derive(Debug, Default)]
pub(crate) struct Acceptors {
    /// The task that polled last.
    pub(crate) polled: Option<Waker>,
    pub(crate) waiters: Waiters,
}

impl Acceptors {
    fn is_waiting(&self) -> bool {
        self.polled.is_some() || !self.waiters.is_empty()
    }

    pub(crate) fn wake(&mut self, wakers: &mut Wakers) {
        self.polled
            .take()
            .into_iter()
            .for_each(|waker| wakers.push(waker));
        self.waiters.wake(wakers);
    }
}

impl State {
    pub(crate) fn new(core: Core, outgoing: Outgoing) -> Self {
        Self {
            core,
            outgoing,
            slots: HashMap::new(),
            released: Vec::new(),
            dialing: Vec::new(),
            acceptors: HashMap::new(),
            life: Life::Open,
            closers: Waiters::default(),
            driver: None,
            blocked: false,
            armed: Instant::FAR_FUTURE,
            lingers: false,
            received: 0,
            receives: 0,
            malformed: 0,
            wakers: Wakers::default(),
            watched: None,
            intercepted: None,
        }
    }

    /// After every change: sends segments, delivers events and sets the timer.
    pub(crate) fn settle(&mut self, now: Instant, timer: &PacingTimer) {
        if self.life == Life::Dead {
            return;
        }
        // A connection raises events and sets deadlines while it sends: send first.
        if !self.blocked {
            self.flush(now);
        }
        let mut deadline = self.core.poll_timeout();
        if deadline.is_some_and(|deadline| deadline <= now) {
            self.core.handle_timeout(now);
            if !self.blocked {
                self.flush(now);
            }
            deadline = self.core.poll_timeout();
        }
        self.drain_events();
        if self.life != Life::Open {
            deadline = self.wind_up(now).into_iter().chain(deadline).min();
        }
        // A timer that fires too early costs less than a system call for each change.
        if let Some(deadline) = deadline
            && deadline < self.armed
            && timer.arm(now, deadline).is_ok()
        {
            self.armed = deadline;
        }
    }

    /// Sends what may be sent; when the socket is full, the driver continues.
    pub(crate) fn flush(&mut self, now: Instant) {
        loop {
            match self.outgoing.flush(&mut self.core, now) {
                Flushed::Idle => {
                    self.blocked = false;
                    return;
                }
                Flushed::Blocked => {
                    self.blocked = true;
                    self.wake_driver();
                    return;
                }
                Flushed::TooLong { peer, len } => self.narrow(now, peer, len),
                Flushed::NoRoute { peer, segment } => {
                    self.fail(now, peer, segment, PathError::NoRoute);
                }
            }
        }
    }

    pub(crate) fn wake_driver(&mut self) {
        let driver = self.driver.take();
        self.wake(driver);
    }

    fn drain_events(&mut self) {
        while let Some(id) = self.core.poll_ready() {
            while let Some(event) = self
                .core
                .get_mut(id)
                .and_then(|connection| connection.poll_event())
            {
                if let Some(slot) = self.slots.get_mut(&id) {
                    slot.on_event(event, &mut self.wakers);
                }
            }
            // Both streams have ended: TIME-WAIT is not the application's concern.
            if let Some(connection) = self.core.get(id)
                && connection.state() == TcpState::TimeWait
                && let Some(slot) = self.slots.get_mut(&id)
            {
                slot.watchers.wake(&mut self.wakers);
            }
        }
    }

    /// Wakes the tasks that wait for connections. To be called after arrivals, which alone complete
    /// handshakes.
    pub(crate) fn wake_acceptors(&mut self) {
        let Self {
            acceptors,
            core,
            wakers,
            ..
        } = self;
        #[expect(
            clippy::iter_over_hash_type,
            reason = "each is looked at by itself; order does not matter"
        )]
        for (port, acceptors) in acceptors {
            if acceptors.is_waiting() && core.is_acceptable(*port) {
                acceptors.wake(wakers);
            }
        }
    }

    /// A segment of `len` bytes was too long for the path to `peer`: tells its connections the MTU
    /// that the system knows of, or the next smaller usual one.
    fn narrow(&mut self, now: Instant, peer: SocketAddr, len: usize) {
        let local = self.outgoing.sender().local();
        let len = len + usize::from(local.overhead(peer.ip()));
        let route = local.route_mtu(peer);
        let shorter = route.filter(|mtu| usize::from(*mtu) < len);
        let Some(mtu) = shorter.or_else(|| smaller_mtu(len)) else {
            return;
        };
        let Self {
            core,
            slots,
            released,
            ..
        } = self;
        for id in slots.keys().chain(released.iter()) {
            if core.tuple(*id).is_some_and(|tuple| tuple.peer == peer)
                && let Some(connection) = core.get_mut(*id)
            {
                connection.handle_path_mtu(now, mtu);
            }
        }
    }

    /// Notes that connection `id` is in SYN-SENT.
    pub(crate) fn dial(&mut self, id: ConnectionId) {
        // Cleaned up when it is full: amortised constant cost, and the list stays proportional to
        // those in SYN-SENT.
        if self.dialing.len() == self.dialing.capacity() {
            let core = &self.core;
            self.dialing.retain(|id| is_dialing(core, *id));
        }
        self.dialing.push(id);
    }

    /// ICMP says that a peer's port is closed: connections in SYN-SENT to it fail. Established
    /// connections end on loopback, where nobody can forge ICMP. Elsewhere the one ends whose
    /// segment is quoted, if its settings say so, and timers decide of the others.
    pub(crate) fn refused(&mut self, now: Instant, refused: &Refused) {
        let Refused { peer, segment } = *refused;
        if let Some(segment) = segment.filter(|_| !is_loopback(peer)) {
            self.fail(now, peer, segment, PathError::PortUnreachable);
        }
        let Self {
            core,
            slots,
            released,
            dialing,
            ..
        } = self;
        dialing.retain(|id| is_dialing(core, *id));
        let mut end = |id: ConnectionId| {
            if core.tuple(id).is_some_and(|tuple| tuple.peer == peer)
                && let Some(connection) = core.get_mut(id)
            {
                connection.handle_unreachable(now);
            }
        };
        if is_loopback(peer) {
            #[expect(
                clippy::iter_over_hash_type,
                reason = "all to the peer are ended; order does not matter"
            )]
            for id in slots.keys() {
                end(*id);
            }
            released.iter().copied().for_each(end);
        } else {
            dialing.iter().copied().for_each(end);
        }
    }

    /// A segment to `peer` did not arrive.
    fn fail(&mut self, now: Instant, peer: SocketAddr, segment: QuotedSegment, why: PathError) {
        let tuple = Tuple {
            local_port: segment.src_port,
            remote_port: segment.dst_port,
            peer,
        };
        self.core.handle_path_error(now, &tuple, segment.seq, why);
    }

    /// Wakes `waker` once the lock is free.
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wakers.push(waker);
        }
    }

    /// The application let go of `id`. What is returned may hold the last reference to a task: drop
    /// it without the lock.
    pub(crate) fn release(&mut self, now: Instant, id: ConnectionId) -> Option<Slot> {
        self.depart(now, id);
        let slot = self.slots.remove(&id);
        self.core.release(now, id);
        // Cleaned up when it is full: amortised constant cost, and the list stays proportional to
        // the open ones.
        if self.released.len() == self.released.capacity() {
            let core = &self.core;
            self.released.retain(|id| core.get(*id).is_some());
        }
        self.released.push(id);
        slot
    }

    /// # Errors
    /// [`EndpointClosed`] when nothing new may begin.
    pub(crate) fn check_open(&self) -> Result<(), EndpointClosed> {
        if self.life == Life::Open {
            Ok(())
        } else {
            Err(EndpointClosed)
        }
    }

    /// True when no connection needs this endpoint any more. A TIME-WAIT counts only while its peer
    /// may need an answer.
    pub(crate) fn is_wound_up(&self) -> bool {
        self.slots.is_empty() && self.released.is_empty() && !self.lingers
    }

    /// While the endpoint closes: forgets finished connections, and returns when to call again.
    fn wind_up(&mut self, now: Instant) -> Option<Instant> {
        let core = &self.core;
        self.released.retain(|id| core.get(*id).is_some());
        // The peer may not have our last acknowledgement. Stay long enough to answer one more FIN,
        // which comes after two or three round trips, rather than a whole TIME-WAIT.
        let again = self.core.lingers_until().filter(|end| now < *end);
        self.lingers = again.is_some();
        if self.is_wound_up() {
            self.closers.wake(&mut self.wakers);
            if self.life == Life::Abandoned {
                self.wake_driver();
            }
        }
        again
    }

    /// Ends everything now, and wakes all that wait.
    pub(crate) fn die(&mut self, now: Instant) {
        for id in self.held() {
            self.depart(now, id);
        }
        self.life = Life::Dead;
        let wakers = &mut self.wakers;
        #[expect(
            clippy::iter_over_hash_type,
            reason = "all are woken; order does not matter"
        )]
        for slot in self.slots.values_mut() {
            slot.wake_all(wakers);
        }
        #[expect(
            clippy::iter_over_hash_type,
            reason = "all are woken; order does not matter"
        )]
        for acceptors in self.acceptors.values_mut() {
            acceptors.wake(wakers);
        }
        self.closers.wake(wakers);
        if let Some(intercepted) = &mut self.intercepted {
            intercepted.wake_all(wakers);
        }
    }
}

fn is_dialing(core: &Core, id: ConnectionId) -> bool {
    core.get(id)
        .is_some_and(|connection| connection.state() == TcpState::SynSent)
}
