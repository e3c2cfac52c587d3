//! The device: how it is made, and its registration with the runtime.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::{fmt, io};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::options::TunOptions;

/// The device; it disappears, with its addresses and routes, when the last owner drops it.
pub(super) type Device = Arc<AsyncFd<Descriptor>>;

/// The descriptor of the device.
pub(super) struct Descriptor(OwnedFd);

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

/// Registers the device with the runtime.
///
/// # Errors
/// What the system says.
pub(super) fn register(device: OwnedFd) -> io::Result<Device> {
    // SAFETY: the device owns its descriptor and is never lent out mutably, so the descriptor stays
    // open and the same until the `AsyncFd` is dropped.
    #[expect(
        unsafe_code,
        reason = "registering with the poller takes a promise about the descriptor"
    )]
    let registered = unsafe {
        AsyncFd::register_with_interest(Descriptor(device), Interest::READABLE | Interest::WRITABLE)
    };
    Ok(Arc::new(registered?))
}

/// The descriptor alone: nothing else is needed of a device that is set up.
pub(super) fn descriptor(device: SyncDevice) -> OwnedFd {
    // SAFETY: `into_raw_fd` gives up the descriptor, which is open and belongs to nobody else.
    #[expect(
        unsafe_code,
        reason = "the library passes its descriptor on as a number"
    )]
    unsafe {
        OwnedFd::from_raw_fd(device.into_raw_fd())
    }
}

/// Creates the device, with its IPv4 address, and turns it on.
///
/// # Errors
/// Why it cannot be had, in words.
pub(super) fn create(options: &TunOptions) -> io::Result<SyncDevice> {
    let mut builder = DeviceBuilder::new()
        .mtu(options.mtu)
        .offload(options.offload)
        .enable(true);
    if options.queue > 0 {
        builder = builder.tx_queue_len(options.queue);
    }
    if let Some(name) = &options.name {
        builder = builder.name(name.as_str());
    }
    for network in &options.networks {
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
                    options.name.as_deref().unwrap_or_default()
                ),
            ),
            _ => io::Error::new(error.kind(), format!("cannot set up a TUN device: {error}")),
        })
}
