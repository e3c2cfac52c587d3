//! Messages between the two processes of `tack exec`, with file descriptors (SCM_RIGHTS, unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Sends `bytes`, which are not empty, with a descriptor or without.
///
/// # Errors
/// What the system says.
pub(super) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let parts = [IoSlice::new(bytes)];
    sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message of at most 4 KiB; an empty one is the end.
///
/// # Errors
/// What the system says.
pub(super) fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = vec![0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match recvmsg(&socket, &mut parts, &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    bytes.truncate(received.bytes);
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((bytes, descriptor))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_descriptor_arrives_with_its_message() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        send(&here, b"one", Some(far.as_fd())).unwrap();
        drop(far);
        let (bytes, passed) = receive(&there).unwrap();
        assert_eq!(bytes, b"one");
        let mut passed = UnixStream::from(passed.unwrap());
        passed.write_all(b"through").unwrap();
        drop(passed);
        let mut heard = String::new();
        near.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "through");
        send(&here, b"two", None).unwrap();
        assert!(matches!(receive(&there).unwrap(), (bytes, None) if bytes == b"two"));
        drop(here);
        assert!(receive(&there).unwrap().0.is_empty());
    }
}
