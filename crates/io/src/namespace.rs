//! Network namespaces: a network stack of the kernel for one thread and those that it starts.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::netlink;

/// Number of the loopback device of every namespace.
const LOOPBACK: u32 = 1;

/// Turns on the loopback device of this thread's namespace.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = LOOPBACK;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    netlink::request(RouteNetlinkMessage::SetLink(message), 0)
}

/// A network namespace, which exists at least as long as this.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// The namespace that this thread is in.
    ///
    /// # Errors
    /// What the system says about `/proc/thread-self/ns/net`.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Moves this thread into a new namespace, whose loopback device is up. Sockets and devices
    /// that the thread opens from now on belong to it, as do threads and programs that it starts.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN; otherwise what the system says.
    pub fn enter_new() -> io::Result<Self> {
        // SAFETY: unsharing is unsafe because of descriptor tables (`UnshareFlags::FILES`), which
        // stay shared: only the network namespace of this thread changes.
        #[expect(unsafe_code, reason = "no safe wrapper of this one flag exists")]
        unsafe {
            unshare_unsafe(UnshareFlags::NEWNET)?;
        }
        raise_loopback()?;
        Self::current()
    }

    /// Moves this thread into the namespace.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN; otherwise what the system says.
    pub fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// A second handle on the same namespace.
    ///
    /// # Errors
    /// What the system says, such as that too many files are open.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

/// A descriptor of a namespace, such as another process passes on.
impl From<OwnedFd> for Namespace {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor.into())
    }
}

/// To pass the namespace on to another process.
impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
