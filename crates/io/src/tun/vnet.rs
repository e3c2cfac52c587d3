//! The header in front of each packet that tells of offloads (`struct virtio_net_hdr`,
//! linux/virtio_net.h), in the byte order of the machine.

use std::io;
use std::os::fd::AsRawFd;

/// Bytes of the header.
pub(super) const LEN: usize = 10;
/// The checksum is not computed; its place holds the sum of the pseudo-header.
const NEEDS_CHECKSUM: u8 = 1;
/// The checksum was verified.
const CHECKSUM_VALID: u8 = 2;
const NO_SEGMENTS: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
/// Datagrams of one size, of either family.
const UDP: u8 = 5;
/// Flag on a type: the first segment carries CWR.
const WITH_CWR: u8 = 0x80;

/// `TUNSETOFFLOAD` (linux/if_tun.h).
const SET_OFFLOAD: u32 = 0x4004_54d0;

/// What a packet from the kernel comes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrived {
    /// The packet did not leave this machine, or its checksum was verified.
    pub(super) verified: bool,
    /// Payload bytes of each segment that the packet stands for.
    pub(super) segment_size: Option<u16>,
}

/// Reads the header; `None` for offloads that were not asked for.
pub(super) fn parse(bytes: &[u8; LEN]) -> Option<Arrived> {
    let segment_size = match bytes[1] & !WITH_CWR {
        NO_SEGMENTS => None,
        TCP_V4 | TCP_V6 | UDP => match u16::from_ne_bytes([bytes[4], bytes[5]]) {
            0 => return None,
            size => Some(size),
        },
        _ => return None,
    };
    Some(Arrived {
        verified: bytes[0] & (NEEDS_CHECKSUM | CHECKSUM_VALID) != 0,
        segment_size,
    })
}

/// A header for a TCP segment behind an IP header of `ip_len` bytes, whose checksum the kernel is
/// to finish. With `segments`, bytes of all headers and of each segment's payload, the kernel cuts
/// it.
pub(super) fn emit(out: &mut [u8], ip_len: usize, segments: Option<(usize, usize)>) {
    out[..LEN].fill(0);
    out[0] = NEEDS_CHECKSUM;
    if let Some((headers, payload)) = segments {
        out[1] = if ip_len == tack_wire::ip::IPV4_HEADER_LEN {
            TCP_V4
        } else {
            TCP_V6
        };
        out[2..4].copy_from_slice(&(headers as u16).to_ne_bytes());
        out[4..6].copy_from_slice(&(payload as u16).to_ne_bytes());
    }
    out[6..8].copy_from_slice(&(ip_len as u16).to_ne_bytes());
    // Where the checksum lies in a TCP header.
    out[8..10].copy_from_slice(&16_u16.to_ne_bytes());
}

/// Turns off what the kernel may leave to the reader of the device: segmentation, checksums.
///
/// # Errors
/// What the system says.
pub(super) fn receive_segments(device: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the request takes a number, and reads or writes no memory of ours (linux/if_tun.h).
    #[expect(unsafe_code, reason = "no safe wrapper of this request exists")]
    let outcome = unsafe { libc::ioctl(device.as_raw_fd(), SET_OFFLOAD as _, 0) };
    if outcome == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = [0xff; LEN];
        emit(&mut bytes, 40, Some((72, 1428)));
        assert_eq!(
            parse(&bytes),
            Some(Arrived {
                verified: true,
                segment_size: Some(1428)
            })
        );
        emit(&mut bytes, 20, None);
        assert_eq!(parse(&bytes).unwrap().segment_size, None);
        assert_eq!(
            parse(&[0; LEN]),
            Some(Arrived {
                verified: false,
                segment_size: None
            })
        );
        let datagrams = parse(&[0, 5, 0, 0, 1, 1, 0, 0, 0, 0]).unwrap();
        assert_eq!(datagrams.segment_size, Some(257));
        // UDP in fragments, and segments without a size.
        assert_eq!(parse(&[0, 3, 0, 0, 1, 1, 0, 0, 0, 0]), None);
        assert_eq!(parse(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
