//! UDP of programs that know nothing of tunnels: an association with the peer for each port that
//! they send from, as a NAT has a mapping, given up when nothing passes for a while.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::carrier::Carrier;
use super::datagram;
use super::message::{Answer, Request};
use super::target::{Host, TunnelTarget};
use crate::meeting::{PeerReader, PeerWriter};
use crate::observe::tunnels;
use crate::transfer::channel::Writer;

/// How long an association lasts without datagrams in either direction: what RFC 4787 §4.3 asks of
/// a NAT at least.
const IDLE: Duration = Duration::from_secs(120);
/// Datagrams that wait for an association, each; more are dropped.
const QUEUE: usize = 64;

/// Where datagrams from the peer go.
pub(super) trait Deliver: Send + Sync + 'static {
    /// Delivers a datagram from a host beyond the peer to the program that sends from `to`.
    fn deliver(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]);
}

/// How many associations there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowLimits {
    /// In total; a serving side has 256 for each peer.
    pub(super) total: usize,
    /// For one address.
    pub(super) of_client: usize,
}

/// The associations.
pub(super) struct Flows<D> {
    carrier: Arc<Carrier>,
    deliver: Arc<D>,
    limits: FlowLimits,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    flows: BTreeMap<SocketAddr, Flow>,
    serial: u64,
}

struct Flow {
    queue: mpsc::Sender<(TunnelTarget, Vec<u8>)>,
    used: Instant,
    serial: u64,
}

impl Table {
    /// Makes room for an association of `client`: the one of this client, or else of all, that was
    /// not used for the longest time goes.
    fn make_room(&mut self, client: IpAddr, limits: FlowLimits) {
        let of = |flows: &BTreeMap<SocketAddr, Flow>, whose: Option<IpAddr>| {
            let own = flows
                .iter()
                .filter(|(from, _)| whose.is_none_or(|whose| from.ip() == whose));
            let oldest = own.clone().min_by_key(|(_, flow)| flow.used);
            (own.count(), oldest.map(|(from, _)| *from))
        };
        for (whose, most) in [(Some(client), limits.of_client), (None, limits.total)] {
            if let (count, Some(oldest)) = of(&self.flows, whose)
                && count >= most
            {
                self.flows.remove(&oldest);
            }
        }
    }
}

impl<D: Deliver> Flows<D> {
    pub(super) fn new(carrier: Arc<Carrier>, deliver: Arc<D>, limits: FlowLimits) -> Arc<Self> {
        Arc::new(Self {
            carrier,
            deliver,
            limits,
            table: Mutex::default(),
        })
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all associations.
    pub(super) fn close(&self) {
        let flows = std::mem::take(&mut self.table().flows);
        drop(flows);
    }

    /// Sends a datagram on, which the program at `from` sends; like any other it may be lost.
    pub(super) fn carry(self: &Arc<Self>, from: SocketAddr, to: TunnelTarget, payload: Vec<u8>) {
        let mut table = self.table();
        let datagram = match table.flows.get_mut(&from) {
            Some(flow) => {
                flow.used = Instant::now();
                match flow.queue.try_send((to, payload)) {
                    Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => return,
                    Err(mpsc::error::TrySendError::Closed(datagram)) => datagram,
                }
            }
            None => (to, payload),
        };
        table.make_room(from.ip(), self.limits);
        let (queue, datagrams) = mpsc::channel(QUEUE);
        let _ = queue.try_send(datagram);
        let serial = table.serial;
        table.serial += 1;
        let used = Instant::now();
        let flow = Flow {
            queue,
            used,
            serial,
        };
        table.flows.insert(from, flow);
        drop(table);
        let flows = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = flows.run(from, datagrams).await;
            let mut table = flows.table();
            if table.flows.get(&from).is_some_and(|it| it.serial == serial) {
                table.flows.remove(&from);
            }
            drop(table);
            if let Err(error) = outcome {
                flows
                    .carrier
                    .complain(&format_args!("UDP of {from}"), &error);
            }
        });
    }

    async fn run(
        &self,
        from: SocketAddr,
        datagrams: mpsc::Receiver<(TunnelTarget, Vec<u8>)>,
    ) -> io::Result<()> {
        let asked = self.carrier.peer.request(&Request::Associate).await;
        let (peer, answer) = asked.map_err(|error| io::Error::other(error.to_string()))?;
        if answer != Answer::Associated {
            peer.reset();
            return Err(io::Error::other("unexpected answer from the other side"));
        }
        let (reader, mut writer) = peer.into_split();
        let active = Mutex::new(Instant::now());
        tokio::select! {
            // The peer went, or the association was given up: UDP has no word for either.
            _ = self.incoming(from, reader, &active) => {}
            _ = outgoing(datagrams, &mut writer, &active) => {}
            () = idle(&active) => {}
        }
        writer.abort();
        Ok(())
    }

    async fn incoming(
        &self,
        to: SocketAddr,
        mut reader: PeerReader,
        active: &Mutex<Instant>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        while datagram::read(&mut reader, &mut bytes).await? {
            let (from, payload) = datagram::decode(&bytes)?;
            if let Host::Address(address) = from.host {
                note(active);
                tunnels().datagrams.from_peer.inc();
                let from = SocketAddr::new(address, from.port);
                self.deliver.deliver(from, to, payload);
            }
        }
        Ok(())
    }
}

async fn outgoing(
    mut datagrams: mpsc::Receiver<(TunnelTarget, Vec<u8>)>,
    writer: &mut PeerWriter,
    active: &Mutex<Instant>,
) -> io::Result<()> {
    let mut out = Vec::new();
    while let Some((to, payload)) = datagrams.recv().await {
        note(active);
        tunnels().datagrams.to_peer.inc();
        out.clear();
        if datagram::encode(&to, &payload, &mut out).is_ok() {
            writer.write_all(&out).await?;
            writer.flush().await?;
        }
    }
    Ok(())
}

fn note(active: &Mutex<Instant>) {
    *active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
}

async fn idle(active: &Mutex<Instant>) {
    loop {
        let last = *active.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= IDLE {
            return;
        }
        tokio::time::sleep_until(last + IDLE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_association_that_was_not_used_for_longest_makes_room() {
        let limits = FlowLimits {
            total: 6,
            of_client: 3,
        };
        let mut table = Table::default();
        let add = |table: &mut Table, from: SocketAddr| {
            table.make_room(from.ip(), limits);
            let (queue, _) = mpsc::channel(1);
            let used = Instant::now();
            let flow = Flow {
                queue,
                used,
                serial: 0,
            };
            table.flows.insert(from, flow);
        };
        let from = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
        for port in 1..=5 {
            add(&mut table, from(1, port));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let ports = |table: &Table| table.flows.keys().map(|it| it.port()).collect::<Vec<_>>();
        assert_eq!(ports(&table), [3, 4, 5], "one client has three");
        for host in 2..=5 {
            add(&mut table, from(host, 9));
        }
        assert_eq!(ports(&table), [4, 5, 9, 9, 9, 9], "all have six");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_begins_with_the_last_datagram() {
        let active = Mutex::new(Instant::now());
        let began = Instant::now();
        let noting = async {
            tokio::time::sleep(IDLE / 2).await;
            note(&active);
        };
        tokio::join!(idle(&active), noting);
        assert_eq!(began.elapsed(), IDLE * 3 / 2);
    }
}
