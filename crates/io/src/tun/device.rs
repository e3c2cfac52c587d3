//! Opening and configuring the device, and its registration with the runtime.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::{fmt, io};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::options::TunOptions;
use super::receive::TunReceiver;
use super::route;
use super::send::TunSender;

/// The device; it disappears, with its addresses and routes, when the last owner drops it.
pub(super) type Device = Arc<AsyncFd<Descriptor>>;

/// The descriptor of the device.
pub(super) struct Descriptor(SyncDevice);

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Descriptor")
            .field(&self.as_raw_fd())
            .finish()
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl TunOptions {
    /// Creates the device, gives it its addresses, and routes to it. Must be called within a tokio
    /// runtime whose I/O is enabled.
    ///
    /// # Errors
    /// `InvalidInput` for options that make no sense; `PermissionDenied` without CAP_NET_ADMIN;
    /// `NotFound` without TUN support (`/dev/net/tun`); otherwise what the system says.
    pub fn open(&self) -> io::Result<(TunSender, TunReceiver)> {
        self.check()?;
        let device = self.create()?;
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
            }
            // An address alone makes a route to its prefix; the stack may lie outside.
            let all = if network.stack.is_ipv4() { 32 } else { 128 };
            route::add(index, network.stack, all)
                .map_err(explain(&format!("add the route to {}", network.stack)))?;
        }
        for (destination, prefix) in &self.routes {
            route::add(index, *destination, *prefix)
                .map_err(explain(&format!("add the route to {destination}/{prefix}")))?;
        }
        let name = device.name().map_err(explain("read the name"))?;
        // SAFETY: the device owns its descriptor and is never lent out mutably, so the descriptor
        // stays open and the same until the `AsyncFd` is dropped.
        #[expect(
            unsafe_code,
            reason = "registering with the poller takes a promise about the descriptor"
        )]
        let registered = unsafe {
            AsyncFd::register_with_interest(
                Descriptor(device),
                Interest::READABLE | Interest::WRITABLE,
            )
        };
        let device = Arc::new(registered?);
        Ok((
            TunSender::new(Arc::clone(&device), self, name),
            TunReceiver::new(device, self),
        ))
    }

    fn create(&self) -> io::Result<SyncDevice> {
        let mut builder = DeviceBuilder::new()
            .mtu(self.mtu)
            .offload(self.offload)
            .tx_queue_len(self.queue)
            .enable(true);
        if let Some(name) = &self.name {
            builder = builder.name(name.as_str());
        }
        for network in &self.networks {
            if let IpAddr::V4(kernel) = network.kernel {
                builder = builder.ipv4(kernel, network.prefix, None);
            }
        }
        builder.build_sync().map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "a TUN device needs the capability CAP_NET_ADMIN ({error}); run as root, or give it with \
                     setcap cap_net_admin+ep to the program"
                ),
            ),
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => io::Error::new(
                io::ErrorKind::NotFound,
                format!("this machine has no TUN devices: cannot open /dev/net/tun ({error})"),
            ),
            Some(libc::EBUSY) => io::Error::new(
                io::ErrorKind::AddrInUse,
                format!(
                    "another program has the TUN device {} ({error})",
                    self.name.as_deref().unwrap_or_default()
                ),
            ),
            _ => io::Error::new(error.kind(), format!("cannot set up a TUN device: {error}")),
        })
    }
}
