//! A user-space forwarder between two TUN devices of two network namespaces, with the simulator's
//! faults, or a middlebox of the test's own.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tack_base::{Instant, Rate};
use tack_io::namespace::Namespace;
use tack_io::{Clock, PacingTimer, TunNetwork, TunOptions, TunReceiver, TunSender};
use tack_sim::link::{Bound, LinkRate};
use tack_sim::packet::{Checksums, Head, Inner, Packet};
use tack_sim::path::{Path, PathConfig, PathCounters};
use tack_wire::ip;

use crate::stand_ins::{StandIns, segment_head};
use crate::world::ip as address;

/// From the near namespace to the far one, and back.
pub(crate) const THERE: usize = 0;
pub(crate) const BACK: usize = 1;

/// Decides about a packet, and may rewrite it: false drops it.
pub(crate) type Rule = Box<dyn FnMut(usize, &mut Packet) -> bool + Send>;

/// Two namespaces with a forwarder between them. The thread is in the near one.
pub(crate) struct Link {
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
    task: tokio::task::JoinHandle<()>,
    /// Packets that the forwarder took in, by direction.
    pub(crate) passed: Arc<Mutex<[u64; 2]>>,
    counters: Arc<Mutex<[PathCounters; 2]>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The kernel's address in the near namespace.
pub(crate) const NEAR: &str = "10.80.0.1";
/// The one of IPv6.
pub(crate) const NEAR_V6: &str = "fd80:0::1";
/// MTU of the devices, unless a test has another one.
const MTU: u16 = 1500;

/// A path without faults: fast, with a queue that overflows only when it is full.
pub(crate) fn clean() -> PathConfig {
    PathConfig::new(
        LinkRate::Fixed(Rate::from_bits_per_sec(200_000_000)),
        Duration::from_millis(2),
        Bound::Packets(500),
    )
}

impl Link {
    /// Namespaces in which this thread's is the near one; the near one routes 10.77.1.0/24 and
    /// fd77:1::/64 through the forwarder, the far one 10.80.0.0/24, 10.77.2.0/24, fd80:0::/64 and
    /// fd77:2::/64.
    pub(crate) fn new(paths: [PathConfig; 2], seed: u64, rule: Rule) -> Self {
        Self::with_mtu(paths, seed, rule, MTU)
    }

    /// As [`Link::new`], with another MTU.
    pub(crate) fn with_mtu(paths: [PathConfig; 2], seed: u64, rule: Rule, mtu: u16) -> Self {
        let near = Namespace::current().unwrap();
        let near_device = device(0, &["10.77.1.0", "fd77:1::"], mtu);
        forward();
        let far = Namespace::enter_new().unwrap();
        let routes = ["10.80.0.0", "10.77.2.0", "fd80:0::", "fd77:2::"];
        let far_device = device(1, &routes, mtu);
        forward();
        near.enter().unwrap();
        let passed = Arc::<Mutex<[u64; 2]>>::default();
        let counters = Arc::<Mutex<[PathCounters; 2]>>::default();
        let forwarder = Forwarder {
            devices: [near_device, far_device],
            paths: [
                Path::new(&paths[THERE], seed, 1),
                Path::new(&paths[BACK], seed, 0),
            ],
            rule,
            stand_ins: StandIns::default(),
            clock: Clock::new(),
            timer: PacingTimer::new().unwrap(),
            passed: Arc::clone(&passed),
            counters: Arc::clone(&counters),
        };
        Self {
            near,
            far,
            task: tokio::spawn(forwarder.run()),
            passed,
            counters,
        }
    }

    /// What the two paths did so far to the packets that the rule let through, by direction.
    pub(crate) fn counters(&self) -> [PathCounters; 2] {
        *self.counters.lock().unwrap()
    }

    /// Runs `work` in the far namespace.
    pub(crate) fn far<R>(&self, work: impl FnOnce() -> R) -> R {
        self.far.enter().unwrap();
        let result = work();
        self.near.enter().unwrap();
        result
    }
}

/// Lets this namespace forward packets.
fn forward() {
    for name in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        crate::world::sysctl(name, "1");
    }
}

/// The forwarder's device in namespace `number`: 0 near, 1 far.
fn device(number: u8, routes: &[&str], mtu: u16) -> (TunSender, TunReceiver) {
    let network = |prefix, host: &dyn Fn(u8) -> String| TunNetwork {
        kernel: address(&host(1)),
        prefix,
        stack: address(&host(2)),
    };
    let mut options = TunOptions::new(network(24, &|host| format!("10.80.{number}.{host}")));
    let v6 = network(64, &|host| format!("fd80:{number}::{host}"));
    options.networks.push(v6);
    options.offload = false;
    options.mtu = mtu;
    let routes = routes.iter().map(|route| address(route));
    options.routes = routes
        .map(|route| (route, if route.is_ipv4() { 24 } else { 64 }))
        .collect();
    options.open().unwrap()
}

struct Forwarder {
    /// Near, far.
    devices: [(TunSender, TunReceiver); 2],
    /// There, back.
    paths: [Path; 2],
    rule: Rule,
    stand_ins: StandIns,
    clock: Clock,
    timer: PacingTimer,
    passed: Arc<Mutex<[u64; 2]>>,
    counters: Arc<Mutex<[PathCounters; 2]>>,
}

impl Forwarder {
    async fn run(mut self) {
        loop {
            self.take_in();
            self.deliver();
            let now = self.clock.now();
            let next = self.paths.iter().filter_map(Path::next_arrival).min();
            if let Some(next) = next {
                self.timer.arm(now, next).unwrap();
            }
            poll_fn(|cx| {
                let ready = self
                    .devices
                    .iter()
                    .any(|(_, receiver)| receiver.poll_readable(cx).is_ready());
                if ready || self.timer.poll_expired(cx).is_ready() {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            tokio::task::yield_now().await;
        }
    }

    fn take_in(&mut self) {
        for direction in [THERE, BACK] {
            let receiver = &mut self.devices[direction].1;
            let Ok(packets) = receiver.receive(&self.clock) else {
                continue;
            };
            for received in packets {
                let at = received.arrived;
                let packet = packet(received.bytes, at)
                    .or_else(|| self.stand_ins.packet(received.bytes, at));
                let Some(mut packet) = packet else {
                    continue;
                };
                self.passed.lock().unwrap()[direction] += 1;
                if (self.rule)(direction, &mut packet) {
                    self.paths[direction].send(self.clock.now(), packet);
                }
            }
            self.counters.lock().unwrap()[direction] = self.paths[direction].counters();
        }
    }

    fn deliver(&mut self) {
        let now = self.clock.now();
        for direction in [THERE, BACK] {
            while let Some((_, mut packet)) = self.paths[direction].receive(now) {
                packet.write_checksums();
                let bytes = match StandIns::is_one(&packet) {
                    true => self.stand_ins.bytes(&packet),
                    false => Some([&packet.head[..], &packet.payload].concat()),
                };
                if let Some(bytes) = bytes {
                    // The device may be full, as any link.
                    let _ = self.devices[1 - direction].0.send_packet(&bytes);
                }
            }
        }
    }
}

/// The packet that these bytes are, if it is one of TCP in IPv4, with its checksums to be written
/// again.
fn packet(bytes: &[u8], at: Instant) -> Option<Packet> {
    let outer = ip::parse(bytes).ok()?;
    if outer.protocol != tack_wire::checksum::PROTOCOL_TCP || !outer.src.is_ipv4() {
        return None;
    }
    let head_len = ip::IPV4_HEADER_LEN + segment_head(outer.payload)?;
    let mut packet = Packet {
        head: Head::from_slice(bytes.get(..head_len)?)?,
        payload: bytes[head_len..].to_vec().into(),
        checksums: Checksums::Written,
        declared: None,
        inner: Inner::Unknown,
        sent: at,
    };
    packet.blank_checksums();
    Some(packet)
}
