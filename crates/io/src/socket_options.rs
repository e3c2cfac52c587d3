//! Options of the kernel's sockets for which no safe wrapper exists.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Lets `socket` count as readable from `bytes` on, 1 to `i32::MAX` (`SO_RCVLOWAT`, socket(7)).
/// Until so many wait, the kernel's TCP also acknowledges without regard to how far the program's
/// next read will move the window.
///
/// # Errors
/// `InvalidInput` for more than `i32::MAX` bytes; otherwise what the system says.
pub fn set_low_water_mark(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    set(socket, libc::SO_RCVLOWAT, bytes)
}

/// Limits the rate at which the kernel's TCP sends, bytes a second (`SO_MAX_PACING_RATE`,
/// tc-fq(8)). Any limit but `u64::MAX` turns its pacing on, also with a congestion controller that
/// does not ask for it. Kernels before 4.20, and those of 32 bits, take the low half of the number.
///
/// # Errors
/// What the system says.
pub fn set_max_pacing_rate(socket: impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    set(socket, libc::SO_MAX_PACING_RATE, bytes_per_second)
}

/// Sets an option of the socket's own level. `T` is an integer of the width that the option has.
fn set<T: Copy>(socket: impl AsFd, option: libc::c_int, value: T) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and the value is as long as
    // it is said to be.
    #[expect(unsafe_code, reason = "no safe wrapper of these options exists")]
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
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
        set_low_water_mark(&receiver, 1_000).unwrap();
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
        assert!(set_low_water_mark(&receiver, u32::MAX).is_err());
    }

    #[test]
    fn a_socket_keeps_its_rate() {
        const RATE: u64 = 12_500_000_000;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_max_pacing_rate(&listener, RATE).unwrap();
        let mut rate = 0_u64;
        let mut length = size_of_val(&rate) as libc::socklen_t;
        // SAFETY: the descriptor is open, and `length` is that of the value.
        #[expect(unsafe_code, reason = "no safe wrapper of this option exists")]
        let outcome = unsafe {
            libc::getsockopt(
                listener.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw mut rate).cast(),
                &raw mut length,
            )
        };
        assert_eq!((outcome, rate), (0, RATE));
    }
}
