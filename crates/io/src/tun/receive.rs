//! The receiving half: many packets at a time.

use std::io;
use std::task::{Context, Poll};

use rustix::io::Errno;
use tack_base::Instant;
use tokio::io::Interest;

use super::device::Device;
use super::options::TunOptions;
use super::vnet;
use crate::clock::Clock;

/// Bytes of packets that one call receives at most, and packets.
const BATCH_BYTES: usize = 512 << 10;
const MAX_PACKETS: usize = 64;
/// The longest packet, with its header of offloads.
const LONGEST: usize = vnet::LEN + 65_535;

/// The receiving half of a TUN device.
#[derive(Debug)]
pub struct TunReceiver {
    device: Device,
    offload: bool,
    storage: Box<[u8]>,
    slot: usize,
    lengths: Vec<usize>,
}

/// One IP packet from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunPacket<'a> {
    /// When it was read: the device has no timestamps.
    pub arrived: Instant,
    /// IP header and payload.
    pub bytes: &'a [u8],
    /// The kernel vouches for the checksum of the transport; it may be unfinished.
    pub verified: bool,
    /// The packet stands for a train of segments or datagrams with so many bytes of payload each,
    /// the last one possibly shorter, whose headers differ in what follows from that alone.
    pub segment_size: Option<u16>,
}

impl TunReceiver {
    pub(super) fn new(device: Device, options: &TunOptions) -> Self {
        let slot = if options.offload {
            LONGEST
        } else {
            usize::from(options.mtu)
        };
        let slots = (BATCH_BYTES / slot).clamp(1, MAX_PACKETS);
        Self {
            device,
            offload: options.offload,
            storage: vec![0; slots * slot].into_boxed_slice(),
            slot,
            lengths: Vec::with_capacity(slots),
        }
    }

    /// Ready when the device may have packets for [`TunReceiver::receive`]. One task at a time may
    /// wait.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.device
            .poll_read_ready(cx)
            .map(|ready| ready.map(|mut guard| guard.retain_ready()))
    }

    /// Receives the waiting packets, up to a batch, with their arrival on `clock`.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; otherwise what the system says: the device was taken down
    /// or removed.
    pub fn receive(&mut self, clock: &Clock) -> io::Result<impl Iterator<Item = TunPacket<'_>>> {
        let Self {
            device,
            offload,
            storage,
            slot,
            lengths,
        } = self;
        lengths.clear();
        let outcome = device.try_io(Interest::READABLE, |device| {
            for buffer in storage.chunks_exact_mut(*slot) {
                loop {
                    match rustix::io::read(device, &mut *buffer) {
                        Ok(len) => lengths.push(len),
                        Err(Errno::INTR) => continue,
                        Err(error) => return Err(error.into()),
                    }
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = outcome
            && lengths.is_empty()
        {
            return Err(error);
        }
        let arrived = clock.now();
        let offload = *offload;
        Ok(lengths
            .iter()
            .zip(storage.chunks_exact(*slot))
            .filter_map(move |(len, buffer)| {
                let bytes = buffer.get(..*len)?;
                if !offload {
                    return Some(TunPacket {
                        arrived,
                        bytes,
                        verified: false,
                        segment_size: None,
                    });
                }
                let (header, bytes) = bytes.split_first_chunk::<{ vnet::LEN }>()?;
                let vnet::Arrived {
                    verified,
                    segment_size,
                } = vnet::parse(header)?;
                Some(TunPacket {
                    arrived,
                    bytes,
                    verified,
                    segment_size,
                })
            }))
    }
}
