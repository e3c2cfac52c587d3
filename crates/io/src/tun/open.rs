//! Opening a device: its addresses, its routes and its two halves.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::device;
use super::options::TunOptions;
use super::others;
use super::receive::TunReceiver;
use super::route;
use super::send::TunSender;

impl TunOptions {
    /// Creates the device, gives it its addresses, and routes to it. Must be called within a tokio
    /// runtime whose I/O is enabled.
    ///
    /// # Errors
    /// `InvalidInput` for options that make no sense; `PermissionDenied` without CAP_NET_ADMIN;
    /// `NotFound` without TUN support (`/dev/net/tun`); `AddrInUse` for a network that overlaps one
    /// of another interface; otherwise what the system says.
    pub fn open(&self) -> io::Result<(TunSender, TunReceiver)> {
        let (device, name) = self.set_up()?;
        self.divide(device, name)
    }

    /// Does what [`TunOptions::open`] does, without a runtime; the result is for
    /// [`TunOptions::adopt`], here or in another process. The device belongs to the network
    /// namespace that this thread is in.
    ///
    /// # Errors
    /// As [`TunOptions::open`].
    pub fn create(&self) -> io::Result<OwnedFd> {
        self.set_up().map(|(device, _)| device)
    }

    /// Takes a device that [`TunOptions::create`] has set up with the same options. Must be called
    /// within a tokio runtime whose I/O is enabled.
    ///
    /// # Errors
    /// `InvalidInput` for options that make no sense; otherwise what the system says.
    pub fn adopt(&self, device: OwnedFd) -> io::Result<(TunSender, TunReceiver)> {
        self.check()?;
        let name = self.name.clone().unwrap_or_else(|| "tun".into());
        self.divide(device, name)
    }

    fn divide(&self, device: OwnedFd, name: String) -> io::Result<(TunSender, TunReceiver)> {
        let device = device::register(device)?;
        Ok((
            TunSender::new(Arc::clone(&device), self, name),
            TunReceiver::new(device, self),
        ))
    }

    /// The device and its name.
    fn set_up(&self) -> io::Result<(OwnedFd, String)> {
        self.check()?;
        let taken = others::taken()?;
        for network in &self.networks {
            others::check(&taken, network.kernel, network.prefix)?;
            let all = if network.stack.is_ipv4() { 32 } else { 128 };
            others::check(&taken, network.stack, all)?;
        }
        let device = device::create(self)?;
        let explain = |step: &str| {
            let step = step.to_string();
            move |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot {step} of the TUN device: {error}"),
                )
            }
        };
        device
            .set_nonblocking(true)
            .map_err(explain("set the mode"))?;
        let index = device.if_index().map_err(explain("read the number"))?;
        for network in &self.networks {
            if let IpAddr::V6(kernel) = network.kernel {
                route::add_address(index, kernel, network.prefix)
                    .map_err(explain(&format!("add the address {kernel}")))?;
                route::await_local(kernel);
            }
            // An address alone makes a route to its prefix; the stack may lie outside.
            let all = if network.stack.is_ipv4() { 32 } else { 128 };
            route::add(index, network.stack, all)
                .map_err(explain(&format!("add the route to {}", network.stack)))?;
        }
        for (destination, prefix) in &self.routes {
            route::add(index, *destination, *prefix).map_err(|error| {
                let has = (error.kind() == io::ErrorKind::AlreadyExists)
                    .then(|| others::owner(*destination, *prefix))
                    .flatten();
                let error = match has {
                    Some(has) => io::Error::new(error.kind(), format!("there is {has}")),
                    None => error,
                };
                explain(&format!("add the route to {destination}/{prefix}"))(error)
            })?;
        }
        let name = device.name().map_err(explain("read the name"))?;
        Ok((device::descriptor(device), name))
    }
}
