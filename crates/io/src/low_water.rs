//! From how many bytes on a socket counts as readable.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Lets `socket` count as readable from `bytes` on, 1 to `i32::MAX` (`SO_RCVLOWAT`, socket(7)).
/// Until so many wait, the kernel's TCP also acknowledges without regard to how far the program's
/// next read will move the window.
///
/// # Errors
/// `InvalidInput` for more than `i32::MAX` bytes; otherwise what the system says.
pub fn set(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and the value is an int of
    // the length given.
    #[expect(unsafe_code, reason = "no safe wrapper of this option exists")]
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn a_socket_is_readable_from_so_many_bytes_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        set(&receiver, 1_000).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let is_readable = || {
            let mut polled = [PollFd::new(&receiver, PollFlags::IN)];
            poll(&mut polled, Some(&Timespec::default())).unwrap() == 1
        };
        let wait_for = |bytes: usize| {
            while !matches!(receiver.peek(&mut [0; 2_000]), Ok(here) if here >= bytes) {
                std::thread::yield_now();
            }
        };
        sender.write_all(&[1; 10]).unwrap();
        wait_for(10);
        assert!(!is_readable());
        sender.write_all(&[1; 990]).unwrap();
        wait_for(1_000);
        assert!(is_readable());
        assert!(set(&receiver, u32::MAX).is_err());
    }
}
