//! The table of flows: one for each client address, each with a socket of its own towards the far
//! side.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tack_base::Instant;
use tack_io::{Clock, UdpOptions, UdpReceiver, UdpSender};

use crate::batch::Batch;
use crate::content::Counting;
use crate::figures::{FlowFigures, Totals};
use crate::lateness::Meter;

/// A flow that has been silent for this long makes room for a new one when the table is full.
const IDLE: Duration = Duration::from_secs(10);

/// Names a flow on its way through the model: its place in the table, and which flow of that place
/// it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlowId {
    place: u16,
    generation: u16,
}

impl FlowId {
    /// As four bytes, which packets of the model carry where UDP ports would be: in this order from
    /// a client, with the two halves swapped on the way back.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let [a, b] = self.place.to_be_bytes();
        let [c, d] = self.generation.to_be_bytes();
        [a, b, c, d]
    }

    pub(crate) fn from_bytes([a, b, c, d]: [u8; 4]) -> Self {
        Self {
            place: u16::from_be_bytes([a, b]),
            generation: u16::from_be_bytes([c, d]),
        }
    }
}

/// One client's traffic.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    pub(crate) client: SocketAddr,
    /// Its host in the model, 1 for the first station.
    pub(crate) host: usize,
    pub(crate) counting: Counting,
    pub(crate) sender: UdpSender,
    pub(crate) receiver: UdpReceiver,
    /// The socket was not seen writable yet.
    pub(crate) is_new: bool,
    /// What goes to the far side, and what goes to the client.
    pub(crate) outgoing: [Batch; 2],
    pub(crate) up: Totals,
    pub(crate) down: Totals,
    /// When the latest datagram of the far side arrived.
    pub(crate) latest: Instant,
    last_used: Instant,
}

impl Flow {
    pub(crate) fn figures(&self) -> FlowFigures {
        FlowFigures {
            client: self.client.to_string(),
            peer: None,
            protocol: None,
            station: format!("sta{}", self.host - 1),
            counted: self.counting,
            up: self.up,
            down: self.down,
        }
    }

    /// Something passed.
    pub(crate) fn touch(&mut self, now: Instant) {
        self.last_used = self.last_used.max(now);
    }

    /// Sends what waits for the far side at `to`. Returns how many datagrams the kernel refused.
    pub(crate) fn flush_up(&mut self, to: SocketAddr, clock: &Clock, meter: &mut Meter) -> u64 {
        let sent = self.outgoing[0].flush(&mut self.sender, to, clock, meter);
        sent.add_to(&mut self.up)
    }

    /// Sends what waits for the client through `sender`. Returns how many datagrams the kernel
    /// refused.
    pub(crate) fn flush_down(
        &mut self,
        sender: &mut UdpSender,
        clock: &Clock,
        meter: &mut Meter,
    ) -> u64 {
        let sent = self.outgoing[1].flush(sender, self.client, clock, meter);
        sent.add_to(&mut self.down)
    }
}

/// Why a datagram of a new client starts no flow.
#[derive(Debug)]
pub(crate) enum NoFlow {
    /// The table of flows is full, and all its flows are in use.
    Full,
    /// The system gives no socket, usually because too many files are open.
    Socket,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct Flows {
    places: Vec<Option<Flow>>,
    by_client: HashMap<SocketAddr, u16>,
    most: usize,
    stations: usize,
    to: SocketAddr,
    /// Flows there ever were.
    pub(crate) seen: u64,
    /// Totals of flows that have gone: up and down.
    pub(crate) gone: [Totals; 2],
    /// What the kernel dropped of those.
    pub(crate) gone_drops: u64,
}

impl Flows {
    /// An empty table for at most `most` flows over `stations` stations to `to`.
    pub(crate) fn new(most: usize, stations: usize, to: SocketAddr) -> Self {
        Self {
            places: Vec::new(),
            by_client: HashMap::new(),
            most: most.clamp(1, usize::from(u16::MAX)),
            stations: stations.max(1),
            to,
            seen: 0,
            gone: [Totals::default(); 2],
            gone_drops: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_client.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.places.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.places.iter_mut().flatten()
    }

    /// The flow, unless it has gone.
    pub(crate) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let flow = self.places.get_mut(usize::from(id.place))?.as_mut()?;
        (flow.id == id).then_some(flow)
    }

    /// The flow of `client`; a new one, counted as `first` suggests, when there is none. Must be
    /// called within a tokio runtime.
    pub(crate) fn of_client(
        &mut self,
        now: Instant,
        client: SocketAddr,
        first: &[u8],
    ) -> Result<&mut Flow, NoFlow> {
        let place = match self.by_client.get(&client) {
            Some(place) => usize::from(*place),
            None => self.open(now, client, first)?,
        };
        self.places[place].as_mut().ok_or(NoFlow::Full)
    }

    fn open(&mut self, now: Instant, client: SocketAddr, first: &[u8]) -> Result<usize, NoFlow> {
        let place = self.free_place(now).ok_or(NoFlow::Full)?;
        let (sender, receiver) = UdpOptions::new(towards(self.to))
            .open()
            .map_err(|_| NoFlow::Socket)?;
        let id = FlowId {
            place: place as u16,
            // Packets of a flow that has gone leave the model long before its place was taken
            // 65,536 times.
            generation: self.seen as u16,
        };
        let host = 1 + (self.seen % self.stations as u64) as usize;
        self.seen += 1;
        self.by_client.insert(client, id.place);
        self.places[place] = Some(Flow {
            id,
            client,
            host,
            counting: Counting::of_flow(first),
            sender,
            receiver,
            is_new: true,
            outgoing: Default::default(),
            up: Totals::default(),
            down: Totals::default(),
            latest: Instant::ZERO,
            last_used: now,
        });
        Ok(place)
    }

    /// A place that is free, or becomes free because its flow has been idle for longest.
    fn free_place(&mut self, now: Instant) -> Option<usize> {
        if let Some(place) = self.places.iter().position(Option::is_none) {
            return Some(place);
        }
        if self.places.len() < self.most {
            self.places.push(None);
            return Some(self.places.len() - 1);
        }
        let idle_since = |flow: &Option<Flow>| flow.as_ref().map(|flow| flow.last_used);
        let place = (0..self.places.len()).min_by_key(|place| idle_since(&self.places[*place]))?;
        let last_used = idle_since(&self.places[place])?;
        if now.saturating_since(last_used) < IDLE {
            return None;
        }
        let flow = self.places[place].take()?;
        self.by_client.remove(&flow.client);
        self.gone[0] += flow.up;
        self.gone[1] += flow.down;
        self.gone_drops += crate::kernel_drops(flow.sender.local_addr()).unwrap_or(0);
        Some(place)
    }

    /// Totals of both directions, flows that have gone included.
    pub(crate) fn totals(&self) -> [Totals; 2] {
        let mut totals = self.gone;
        for flow in self.iter() {
            totals[0] += flow.up;
            totals[1] += flow.down;
        }
        totals
    }

    /// What the kernel dropped at the sockets of all flows.
    pub(crate) fn kernel_drops(&self) -> u64 {
        let living: u64 = self
            .iter()
            .filter_map(|flow| crate::kernel_drops(flow.sender.local_addr()))
            .sum();
        self.gone_drops + living
    }
}

/// An address from which `to` can be reached.
fn towards(to: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match to.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1_000 + number)
    }

    #[tokio::test]
    async fn the_table_is_bounded_and_forgets_only_the_idle() {
        let to = client(9_000);
        let mut flows = Flows::new(3, 2, to);
        let now = Instant::from_millis(1);
        for number in 0..3 {
            let flow = flows.of_client(now, client(number), b"hello").unwrap();
            assert_eq!(flow.host, 1 + usize::from(number) % 2, "stations in turn");
        }
        let first = flows.of_client(now, client(0), b"again").unwrap().id;
        assert_eq!((flows.len(), flows.seen), (3, 3), "known clients are known");
        assert!(matches!(
            flows.of_client(now, client(3), b"one too many"),
            Err(NoFlow::Full)
        ));
        let later = now + IDLE;
        for number in [1, 2] {
            let flow = flows.of_client(later, client(number), b"").unwrap();
            flow.touch(later);
        }
        flows.get_mut(first).unwrap().up.datagrams = 7;
        let flow = flows
            .of_client(later, client(3), b"now there is room")
            .unwrap();
        let id = flow.id;
        assert_eq!(FlowId::from_bytes(id.to_bytes()), id);
        assert!(flows.get_mut(first).is_none(), "the idle one has gone");
        assert!(flows.get_mut(id).is_some());
        assert_eq!(flows.len(), 3);
        assert_eq!(flows.totals()[0].datagrams, 7, "its counts have not");
    }
}
