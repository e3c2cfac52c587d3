//! `tack gateway`: the connections of other machines, which this one forwards, carried over a peer.
//! netfilter passes them here (TPROXY); the address that a client connects to is the local one of
//! the accepted connection.

mod clients;
mod rules;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use tack_io::transparent;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use self::clients::Clients;
use self::rules::{Installed, Ruleset};
use super::carrier::Carrier;
use super::dial::{RequestError, StandardInput, TunnelArgs, TunnelPeer};
use super::flows::{Deliver, FlowLimits, Flows};
use super::message::{Answer, Refusal, Request};
use super::pump::{self, join};
use super::target::{Host, TunnelTarget};
use crate::carrier;
use crate::exit::{Exit, Failure};
use crate::meeting::Target;
use crate::observe::{ObserveArgs, tunnels};
use crate::printer;
use crate::signals::Signals;

/// Associations of datagrams: a peer has 256.
const MAX_FLOWS: usize = 240;
/// Sockets that answer in the name of other hosts, which are kept for the next answer.
const MAX_SENDERS: usize = 256;

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// The machine that runs `tack serve`: a known peer (laptop:), a ticket, a code or an address.
    /// Can be left out beside --ticket-file, --ticket-fd, --code and TACK_TICKET
    #[arg(value_name = "PEER")]
    peer: Option<String>,
    /// The interface that the clients are behind, such as wlan0; may be given several times
    #[arg(long, value_name = "NAME", required = true, value_parser = rules::interface)]
    interface: Vec<String>,
    /// Leave connections to this network alone; may be given several times
    #[arg(long, value_name = "NETWORK", value_parser = carrier::network)]
    except: Vec<IpNet>,
    /// The port that netfilter passes connections to; no client has to know it
    #[arg(long, value_name = "PORT", default_value_t = 1081, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The mark of packets that netfilter passes here, and the number of their routing table
    #[arg(long, value_name = "NUMBER", default_value_t = 7281, value_parser = rules::mark)]
    mark: u32,
    /// Print the rules of netfilter and routing that pass the clients' connections here, and exit
    #[arg(long, group = "rules")]
    print_rules: bool,
    /// Install these rules with nft and ip, and remove them at the end
    #[arg(long, group = "rules")]
    install: bool,
    /// With the rules, drop TCP and UDP of clients that no gateway takes: also before it runs, when
    /// it has ended, and when it was killed
    #[arg(long, requires = "rules")]
    block: bool,
    /// Maximum number of connections of one client at a time; further ones are reset. Addresses of
    /// IPv6 that share their first 64 bits are one client
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_client: u32,
    #[command(flatten)]
    tunnel: TunnelArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// Carries connections until a signal.
pub(crate) async fn gateway(args: GatewayArgs) -> Result<Exit, Failure> {
    let ruleset = Ruleset {
        interfaces: args.interface.clone(),
        except: args.except.clone(),
        port: args.port,
        mark: args.mark,
        block: args.block,
    };
    if args.print_rules {
        printer::write_stdout(ruleset.script().as_bytes())?;
        return Ok(Exit::Done);
    }
    let mut signals = Signals::new()?;
    // First of all: a peer that cannot be reached must not leave the clients without a guard.
    let unblock = rules::block(&ruleset).await?;
    let ended = tokio::select! {
        done = run(args, ruleset) => done,
        exit = signals.next() => Ok(exit),
    };
    if let Some(unblock) = unblock {
        eprintln!("tack: the clients stay blocked; `{unblock}` lets them out directly");
    }
    ended
}

async fn run(args: GatewayArgs, ruleset: Ruleset) -> Result<Exit, Failure> {
    // What cannot be listened on is noticed before anybody is asked.
    let addresses = [
        IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::from(Ipv6Addr::UNSPECIFIED),
    ];
    let mut listeners = Vec::new();
    let mut receivers = Vec::new();
    for address in addresses.map(|address| SocketAddr::new(address, args.port)) {
        let cannot =
            |error: io::Error| Failure::network(format!("cannot listen on {address}: {error}"));
        match open(address) {
            Ok((listener, receiver)) => {
                listeners.push(listener);
                receivers.push(receiver);
            }
            // A machine without IPv6 has IPv4.
            Err(error)
                if address.is_ipv6()
                    && matches!(
                        error.kind(),
                        io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported
                    ) => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    let peer = args.peer.as_deref();
    let target = args.tunnel.target(peer, StandardInput::Free)?;
    let ready = ready(&ruleset.interfaces, &target);
    let (peer, stream) = TunnelPeer::meet(Arc::new(args.tunnel), target).await?;
    // The peer lets us in: that was the question.
    stream.reset();
    let shared = Arc::new(Shared {
        carrier: Arc::new(Carrier::new(peer)),
        clients: Arc::new(Clients::new(args.max_per_client)),
        port: args.port,
    });
    let senders = Arc::new(Senders::default());
    let limits = FlowLimits {
        total: MAX_FLOWS,
        of_client: MAX_FLOWS / 4,
    };
    let flows = Flows::new(Arc::clone(&shared.carrier), senders, limits);
    for listener in listeners {
        tokio::spawn(connections(listener, Arc::clone(&shared)));
    }
    for receiver in receivers {
        tokio::spawn(datagrams(receiver, Arc::clone(&shared), Arc::clone(&flows)));
    }
    let _installed = match args.install {
        true => Some(Installed::new(&ruleset).await?),
        false => None,
    };
    eprintln!("{ready}");
    std::future::pending().await
}

/// What is said once connections are carried: without a ticket's or a code's secret, as it may end
/// in a journal.
fn ready(interfaces: &[String], target: &Target) -> String {
    let (interfaces, peer) = (interfaces.join(", "), target.shown());
    format!("tack: connections of clients behind {interfaces} lead to {peer}")
}

fn open(address: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let listener = TcpListener::from_std(transparent::listen(address)?)?;
    let receiver = UdpSocket::from_std(transparent::receiver(address)?)?;
    Ok((listener, receiver))
}

struct Shared {
    carrier: Arc<Carrier>,
    clients: Arc<Clients>,
    port: u16,
}

impl Shared {
    /// Whether somebody connects to this program itself, and not through it: that would be carried
    /// in a circle.
    fn is_direct(&self, to: SocketAddr) -> bool {
        to.port() == self.port && if_addrs_has(to.ip())
    }
}

/// True for addresses of this machine.
fn if_addrs_has(address: IpAddr) -> bool {
    address.is_loopback()
        || if_addrs::get_if_addrs()
            .is_ok_and(|interfaces| interfaces.iter().any(|it| it.ip() == address))
}

async fn connections(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let place = Arc::clone(&shared.carrier.places).acquire_owned().await;
        let place = place.expect("never closed");
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                shared.carrier.complain(&"cannot accept", &error);
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(of_client) = shared.clients.enter(from.ip()) else {
            pump::reset(stream);
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let _places = (place, of_client);
            carry(stream, &shared).await;
        });
    }
}

async fn carry(stream: TcpStream, shared: &Shared) {
    let to = match stream.local_addr() {
        Ok(to) if !shared.is_direct(to) => SocketAddr::new(to.ip().to_canonical(), to.port()),
        _ => return pump::reset(stream),
    };
    let _ = stream.set_nodelay(true);
    let target = target_of(to);
    match shared.carrier.peer.request(&Request::Connect(target)).await {
        // How it ended both of its ends know.
        Ok((peer, Answer::Open(_))) => {
            let _open = tunnels().opened();
            drop(join(stream, peer).await);
        }
        Ok((peer, _)) => {
            peer.reset();
            pump::reset(stream);
        }
        Err(error) => {
            pump::reset(stream);
            // A client learns nothing else, so it is said here.
            if !matches!(error, RequestError::Refused(Refusal::ConnectionRefused)) {
                shared.carrier.complain(&to, &error);
            }
        }
    }
}

fn target_of(to: SocketAddr) -> TunnelTarget {
    TunnelTarget {
        host: Host::Address(to.ip()),
        port: to.port(),
    }
}

async fn datagrams(receiver: UdpSocket, shared: Arc<Shared>, flows: Arc<Flows<Senders>>) {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        let received = receiver
            .async_io(Interest::READABLE, || {
                transparent::receive(&receiver, &mut buffer)
            })
            .await;
        match received {
            Ok(arrived) if arrived.to.port() != 0 && !shared.is_direct(arrived.to) => {
                let payload = buffer[..arrived.len].to_vec();
                flows.carry(arrived.from, target_of(arrived.to), payload);
            }
            Ok(_) => {}
            // What ICMP said of an answer.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => {
                shared.carrier.complain(&"UDP", &error);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Sockets that send in the name of other hosts, the one used last at the end.
#[derive(Default)]
struct Senders(Mutex<Vec<(SocketAddr, std::net::UdpSocket)>>);

impl Deliver for Senders {
    fn deliver(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        if from.is_ipv4() != to.is_ipv4() {
            return;
        }
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = senders.iter().position(|(address, _)| *address == from);
        let sender = match kept {
            Some(place) => senders.remove(place).1,
            None => match transparent::sender(from) {
                Ok(sender) => sender,
                // A datagram may be lost.
                Err(_) => return,
            },
        };
        let _ = sender.send_to(payload, to);
        if senders.len() >= MAX_SENDERS {
            senders.remove(0);
        }
        senders.push((from, sender));
    }
}

#[cfg(test)]
mod tests {
    use tack_pairing::{PublicKey, Secret, Ticket};

    use super::*;

    #[test]
    fn no_secret_of_a_ticket_is_said() {
        let (issuer, secret) = (PublicKey::from([5; 32]), Secret::from_bytes([3; 16]));
        let ticket = Ticket::new(issuer, secret, 0, ["192.0.2.1:7777".parse().unwrap()]);
        let text = ticket.text().to_string();
        let said = ready(&["wl0".into(), "wl1".into()], &Target::Ticket(ticket, None));
        assert!(!said.contains(&text[..10]), "{said}");
        let short = tack_pairing::short(&issuer).to_string();
        assert!(said.contains("wl0, wl1") && said.contains(&short), "{said}");
    }
}
