//! What a new connection costs: each that is carried is one of ours, with a handshake.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::air::air;
use crate::amount::{Amount, median};
use crate::connections::{echo, target};
use crate::process::Background;
use crate::relay;
use crate::sides::{Sides, processor_time};

/// Connections of one measurement, one after the other, for each 10,000 exchanges of another row.
const SHARE: usize = 20;
/// The same over a path of 40 ms.
const FAR: usize = 5;
/// Time between two of them: what a tunnel prepares for the next one is ready by then.
const PAUSE: Duration = Duration::from_millis(250);

/// How a program comes to its target.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// What listens there leads to the target.
    Straight(SocketAddr),
    /// SOCKS5 leads to the second.
    Socks(SocketAddr, SocketAddr),
}

/// Connects, has an exchange of 64 bytes, and ends.
fn once(way: Way) -> Result<()> {
    let mut stream = match way {
        Way::Straight(to) => TcpStream::connect(to)?,
        Way::Socks(proxy, target) => {
            let mut stream = TcpStream::connect(proxy)?;
            let SocketAddr::V4(target) = target else {
                anyhow::bail!("expected an IPv4 address");
            };
            stream.write_all(&[5, 1, 0])?;
            stream.read_exact(&mut [0; 2])?;
            let mut request = vec![5, 1, 0, 1];
            request.extend(target.ip().octets());
            request.extend(target.port().to_be_bytes());
            stream.write_all(&request)?;
            let mut reply = [0; 10];
            stream.read_exact(&mut reply)?;
            ensure!(reply[1] == 0, "refused with {}", reply[1]);
            stream
        }
    };
    let mut bytes = [7; 64];
    stream.write_all(&bytes)?;
    stream.read_exact(&mut bytes)?;
    Ok(())
}

/// The median time of `count` connections, ms.
fn times(way: Way, count: usize, pause: Duration) -> Result<f64> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        std::thread::sleep(pause);
        let began = Instant::now();
        once(way)?;
        all.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(&mut all))
}

/// The time of a connection with one exchange, on loopback and over 40 ms.
pub(crate) fn connections(sides: &Sides, amount: Amount) -> Result<String> {
    let target = target(echo)?;
    let count = amount.exchanges / SHARE;
    let (serving, address) = sides.serve(&[], None)?;
    let (forwarding, near) = sides.forward(target, &[])?;
    let (proxying, proxy) = sides.proxy()?;
    let (_second, behind) = relay::start(target)?;
    let (_first, relayed) = relay::start(behind)?;
    let spent = |of: &[&Background]| -> Result<f64> {
        let mut sum = 0.0;
        for process in of {
            sum += processor_time(process.id())?;
        }
        Ok(sum)
    };
    let direct = times(Way::Straight(target), count, Duration::ZERO)?;
    let plain = times(Way::Straight(relayed), count, Duration::ZERO)?;
    let ends = [&serving, &forwarding, &proxying];
    let before = spent(&ends)?;
    let forwarded = times(Way::Straight(near), count, Duration::ZERO)?;
    let proxied = times(Way::Socks(proxy, target), count, Duration::ZERO)?;
    let cost = (spent(&ends)? - before) / (2 * count) as f64 * 1e3;
    drop((forwarding, proxying));
    let (_air, over) = air(sides, &address)?;
    sides.introduce(&over)?;
    let (_forwarding, near) = sides.forward(target, &[])?;
    let (_proxying, proxy) = sides.proxy()?;
    let far_forwarded = times(Way::Straight(near), FAR, PAUSE)?;
    let far_proxied = times(Way::Socks(proxy, target), FAR, PAUSE)?;
    Ok(format!(
        "a connection with one exchange takes {:.2} ms through tack forward and {:.2} through tack proxy (SOCKS5), of \
         which the processor works {cost:.2}; without tunnel {direct:.2}, through two plain relays {plain:.2}; over \
         802.11n at 40 ms {far_forwarded:.0} and {far_proxied:.0} ms",
        forwarded, proxied,
    ))
}
