//! What carries the connections of a command: UDP sockets, or TCP in the IP packets of one TUN
//! device.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueEnum};
use ipnet::IpNet;
use tack::{Builder, Endpoint, Segmentation, TunNetwork, TunOptions};

use crate::exit::Failure;
use crate::observe;

/// Options of the carrier.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Carrier")]
pub(crate) struct CarrierArgs {
    /// What carries TCP segments. udp: one in each datagram, without privileges. tun: IP packets of
    /// a TUN device that this program makes (Linux, CAP_NET_ADMIN): it is then a host of its own,
    /// speaks plain TCP with every other host, and TACK with those that speak it. Ports in
    /// addresses of peers then have no meaning: each service has its TCP port
    #[arg(long, value_name = "CARRIER", default_value = "udp")]
    carrier: CarrierName,
    /// Send each datagram by itself, without the kernel's segmentation offload (UDP GSO): on a path
    /// that drops the second of two packets that come together it loses less, and costs more
    /// processor time
    #[arg(long, conflicts_with = "tun_address")]
    no_gso: bool,
    /// Address of this program behind the TUN device, with the length of the network's prefix, such
    /// as 10.77.0.2/24; may be given once for IPv4 and once for IPv6
    #[arg(long, value_name = "ADDRESS/LENGTH", value_parser = address)]
    tun_address: Vec<IpNet>,
    /// The kernel's address on the TUN device [default: the first address of the network, or the
    /// second where this program has that]
    #[arg(long, value_name = "ADDRESS", requires = "tun_address")]
    tun_kernel: Vec<IpAddr>,
    /// A further network that the kernel routes into the TUN device
    #[arg(long, value_name = "NETWORK", requires = "tun_address", value_parser = network)]
    tun_route: Vec<IpNet>,
    /// Name of the TUN device [default: tun0, or the next free number]
    #[arg(long, value_name = "NAME", requires = "tun_address")]
    tun_name: Option<String>,
    /// MTU of the TUN device, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..))]
    tun_mtu: u16,
    /// Pass the kernel one packet at a time, with checksums
    #[arg(long, requires = "tun_address")]
    tun_no_offload: bool,
    /// The endpoint behind the device: one for all connections of the program.
    #[arg(skip)]
    opened: Arc<Mutex<Option<Endpoint>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum CarrierName {
    Udp,
    Tun,
}

/// An address with the length of its network's prefix.
fn address(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>().map_err(|_| {
        format!("expected an address with the length of its prefix, such as 10.77.0.2/24 or fd77::2/64, got {text:?}")
    })
}

/// A network, as routes and exceptions have it.
///
/// # Errors
/// In words.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .map_err(|_| format!("expected a network such as 10.0.0.0/8 or fd77::/64, got {text:?}"))
}

impl CarrierArgs {
    pub(crate) fn is_tun(&self) -> bool {
        self.carrier == CarrierName::Tun
    }

    /// The endpoint that `builder` describes, on this carrier. Behind a TUN device it is the same
    /// one each time.
    pub(crate) fn build(&self, builder: Builder) -> io::Result<Endpoint> {
        let options = self.options()?;
        let Some(options) = options else {
            let builder = match self.no_gso {
                true => builder.segmentation(Segmentation::Single),
                false => builder,
            };
            let endpoint = builder.build()?;
            observe::register(&endpoint);
            return Ok(endpoint);
        };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = &*opened {
            return Ok(endpoint.clone());
        }
        let endpoint = builder.mtu(options.mtu).tun(options).build()?;
        observe::register(&endpoint);
        *opened = Some(endpoint.clone());
        Ok(endpoint)
    }

    /// Makes the device of a program that connects, if it is to have one. Without it every attempt
    /// to connect would fail.
    ///
    /// # Errors
    /// A usage error for options that do not fit together; what prevents the device otherwise.
    pub(crate) fn open(&self, builder: Builder) -> Result<(), Failure> {
        let made = match self.options() {
            Ok(None) => return Ok(()),
            Ok(Some(_)) => self.build(builder).map(drop),
            Err(error) => Err(error),
        };
        made.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => Failure::usage(error.to_string()),
            _ => Failure::network(error.to_string()),
        })
    }

    /// The addresses that a peer can type, with `port`; `None` for those of this machine.
    pub(crate) fn addresses(&self, port: u16) -> Option<Vec<SocketAddr>> {
        self.is_tun().then(|| {
            self.tun_address
                .iter()
                .map(|network| SocketAddr::new(network.addr(), port))
                .collect()
        })
    }

    /// The error that prevented a listening endpoint.
    pub(crate) fn cannot_listen(&self, address: SocketAddr, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::InvalidInput {
            Failure::usage(error.to_string())
        } else if self.is_tun() {
            Failure::network(error.to_string())
        } else if error.kind() == io::ErrorKind::AddrInUse {
            Failure::network(format!(
                "cannot listen on {address}: another program uses this port; --listen ADDR takes another one"
            ))
        } else {
            Failure::network(format!("cannot listen on {address}: {error}"))
        }
    }

    /// # Errors
    /// `InvalidInput` with what is missing or does not fit together.
    fn options(&self) -> io::Result<Option<TunOptions>> {
        let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        if !self.is_tun() {
            return match self.tun_address.first() {
                None => Ok(None),
                Some(address) => Err(wrong(format!(
                    "--tun-address {address} needs --carrier tun"
                ))),
            };
        }
        let Some(first) = self.tun_address.first() else {
            return Err(wrong(
                "--carrier tun needs --tun-address, an address of this program behind the device, such as 10.77.0.2/24"
                    .into(),
            ));
        };
        let mut networks = Vec::new();
        for address in &self.tun_address {
            let mut given = self.tun_kernel.iter().copied();
            let stack = address.addr();
            let kernel = given
                .find(|kernel| kernel.is_ipv4() == stack.is_ipv4())
                .or_else(|| first_other(address))
                .ok_or_else(|| {
                    wrong(format!(
                        "{address} has no room for the kernel's address; give it with --tun-kernel"
                    ))
                })?;
            networks.push(TunNetwork {
                kernel,
                prefix: address.prefix_len(),
                stack,
            });
        }
        for kernel in &self.tun_kernel {
            let family = |address: &IpNet| address.addr().is_ipv4() == kernel.is_ipv4();
            if !self.tun_address.iter().any(family) {
                return Err(wrong(format!(
                    "--tun-kernel {kernel} has no --tun-address of its family; got {first}"
                )));
            }
        }
        let mut options = TunOptions::new(networks[0]);
        options.networks = networks;
        options.name = self.tun_name.clone();
        options.mtu = self.tun_mtu;
        options.offload = !self.tun_no_offload;
        options.routes = self
            .tun_route
            .iter()
            .map(|network| (network.network(), network.prefix_len()))
            .collect();
        Ok(Some(options))
    }
}

/// The first address of a host in the network, other than the one given.
fn first_other(network: &IpNet) -> Option<IpAddr> {
    let stack = network.addr();
    let nth = |number: u8| match network.network() {
        IpAddr::V4(base) => IpAddr::from(Ipv4Addr::from_bits(base.to_bits() + u32::from(number))),
        IpAddr::V6(base) => IpAddr::from(Ipv6Addr::from_bits(base.to_bits() + u128::from(number))),
    };
    if network.prefix_len() >= network.max_prefix_len() - 1 {
        return None;
    }
    [nth(1), nth(2)]
        .into_iter()
        .find(|address| *address != stack)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        carrier: CarrierArgs,
    }

    fn options(line: &str) -> Result<Option<TunOptions>, String> {
        let words = std::iter::once("tack").chain(line.split_whitespace());
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        program.carrier.options().map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn without_offload_each_datagram_is_sent_by_itself() {
        let program = Program::try_parse_from(["tack", "--no-gso"]).unwrap();
        let loopback = "127.0.0.1:0".parse().unwrap();
        let endpoint = program.carrier.build(Endpoint::builder().bind(loopback));
        assert_eq!(endpoint.unwrap().carrier_stats().max_batch, 1);
    }

    #[test]
    fn addresses_become_a_device() {
        assert_eq!(options("").unwrap(), None);
        let tun = options(
            "--carrier tun --tun-address 10.77.0.2/24 --tun-address fd77::1/64 --tun-route 192.0.2.9/24",
        )
        .unwrap()
        .unwrap();
        let network = |kernel: &str, prefix, stack: &str| TunNetwork {
            kernel: kernel.parse().unwrap(),
            prefix,
            stack: stack.parse().unwrap(),
        };
        assert_eq!(
            tun.networks,
            [
                network("10.77.0.1", 24, "10.77.0.2"),
                network("fd77::2", 64, "fd77::1")
            ]
        );
        assert_eq!(tun.routes, [("192.0.2.0".parse().unwrap(), 24)]);
        let tun = options("--carrier tun --tun-address 10.1.1.1/32 --tun-kernel 10.2.2.2")
            .unwrap()
            .unwrap();
        assert_eq!(tun.networks, [network("10.2.2.2", 32, "10.1.1.1")]);
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        let refused = |line: &str| options(line).unwrap_err();
        assert!(refused("--carrier tun").contains("--tun-address"));
        assert!(refused("--tun-address 10.77.0.2/24").contains("--carrier tun"));
        assert!(refused("--carrier tun --tun-address 10.77.0.2").contains("10.77.0.2/24"));
        assert!(refused("--carrier tun --tun-address 10.1.1.1/32").contains("--tun-kernel"));
        assert!(
            refused("--carrier tun --tun-address 10.1.1.1/24 --tun-kernel fd77::1")
                .contains("family")
        );
        assert!(refused("--carrier ham").contains("udp"));
        for network in ["10.0.0.0/40", "1.2.3.4", "fd77::/129"] {
            let why = refused(&format!("--tun-address 10.1.1.1/24 --tun-route {network}"));
            assert!(why.contains("10.0.0.0/8") && why.contains(network), "{why}");
        }
    }
}
