//! PPDUs as bytes: radiotap and 802.11 headers, so that packet analysers read what goes on the air.
//!
//! Every MPDU becomes a packet of its own; those of an A-MPDU share a reference number. Link type
//! 127 (LINKTYPE_IEEE802_11_RADIOTAP); fields as <https://www.radiotap.org/fields/defined> has
//! them.

mod radiotap;

use alloc::vec::Vec;

use tack_base::Duration;
use tack_base::time::nanos;

use crate::frame::{
    AccessCategory, AckPolicy, Addba, AddbaKind, Data, Frame, Mpdu, NodeId, Ppdu, len,
};
use crate::mac::config::WINDOW;
use crate::phy::{Band, Standard};
use crate::world::Captured;

/// Turns PPDUs into the packets of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    standard: Standard,
    band: Band,
    /// Radios up to here belong to the network itself.
    members: u16,
    beacon_interval: Duration,
}

const RETRY: u8 = 0x08;
const MORE_DATA: u8 = 0x20;
/// SYNC of TCP/HACK without QoS Control: the paper gives it no place. The Order bit means nothing
/// in frames of this kind (§9.2.4.1.10).
const ORDER: u8 = 0x80;
/// SYNC in QoS Control: the last bit, which is a part of the buffer states that neither side tells
/// here (§9.2.4.5).
const SYNC: u8 = 0x80;
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
/// IPv4 behind LLC/SNAP, and the local experimental Ethertype for packets without content.
const LLC_IPV4: [u8; 8] = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00];
const LLC_NOTHING: [u8; 8] = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x88, 0xb5];
const BROADCAST: [u8; 6] = [0xff; 6];
/// The network behind the access point.
const WIRED: [u8; 6] = [0x02, 0, 0, 1, 0, 0];

fn address(node: NodeId) -> [u8; 6] {
    let [high, low] = node.0.to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}

impl Encoder {
    /// An encoder for a network of so many `members`: its access point and stations.
    pub fn new(standard: Standard, band: Band, members: u16, beacon_interval: Duration) -> Self {
        Self {
            standard,
            band,
            members,
            beacon_interval,
        }
    }

    /// Calls `packet` with the bytes of every packet of a PPDU. `payload` appends the bytes of an
    /// IPv4 packet.
    pub fn encode<M>(
        &self,
        captured: &Captured<M>,
        bytes: &mut Vec<u8>,
        mut payload: impl FnMut(&M, &mut Vec<u8>),
        mut packet: impl FnMut(&[u8]),
    ) {
        let ppdu = &captured.ppdu;
        let count = match &ppdu.frame {
            Frame::Data(data) => data.mpdus.len(),
            _ => 1,
        };
        for index in 0..count {
            bytes.clear();
            let is_aggregate = count > 1 || {
                let is_data = matches!(ppdu.frame, Frame::Data(_));
                is_data && ppdu.mode.is_always_aggregate()
            };
            let subframe = is_aggregate.then_some(radiotap::Subframe {
                reference: captured.number as u32,
                is_last: index + 1 == count,
            });
            radiotap::write(bytes, captured.at, ppdu.mode, self.band, subframe);
            let start = bytes.len();
            match &ppdu.frame {
                Frame::Data(data) => self.data(bytes, ppdu, data, &data.mpdus[index], &mut payload),
                frame => self.other(bytes, ppdu, frame, captured.at.as_micros()),
            }
            let fcs = crc32fast::hash(&bytes[start..]);
            bytes.extend_from_slice(&fcs.to_le_bytes());
            packet(bytes);
        }
    }

    /// The access point of the network that `node` belongs to.
    fn bssid(&self, node: NodeId) -> [u8; 6] {
        if node.0 < self.members {
            address(NodeId::AP)
        } else {
            address(NodeId(self.members))
        }
    }

    fn data<M>(
        &self,
        bytes: &mut Vec<u8>,
        ppdu: &Ppdu<M>,
        data: &Data<M>,
        mpdu: &Mpdu<M>,
        payload: &mut impl FnMut(&M, &mut Vec<u8>),
    ) {
        let is_qos = self.standard.is_qos();
        let is_down = ppdu.from == NodeId::AP;
        let flags = if is_down { FROM_DS } else { TO_DS }
            | if mpdu.retry { RETRY } else { 0 }
            | if data.more_data { MORE_DATA } else { 0 }
            | if data.sync && !is_qos { ORDER } else { 0 };
        bytes.extend([if is_qos { 0x88 } else { 0x08 }, flags]);
        bytes.extend(duration(ppdu.reserves));
        let receiver = ppdu.to.map_or(BROADCAST, address);
        // §9.2.4.1.4: the third address is that of the end the frame does not show otherwise.
        let other = if is_down {
            mpdu.msdu.src
        } else {
            mpdu.msdu.dst
        };
        let third = match other {
            NodeId::AP => WIRED,
            node => address(node),
        };
        bytes.extend(receiver);
        bytes.extend(address(ppdu.from));
        bytes.extend(third);
        bytes.extend((mpdu.seq << 4).to_le_bytes());
        if is_qos {
            // Ack policy 00: an ACK, or the implicit Block ACK request of an A-MPDU.
            let policy = match data.ack {
                AckPolicy::Normal | AckPolicy::BlockAck => 0,
            };
            bytes.extend([
                data.category.tid() | policy,
                if data.sync { SYNC } else { 0 },
            ]);
        }
        let wanted = bytes.len() + len::LLC_SNAP as usize + mpdu.msdu.len as usize;
        match &mpdu.msdu.payload {
            Some(content) => {
                bytes.extend(LLC_IPV4);
                payload(content, bytes);
            }
            None => bytes.extend(LLC_NOTHING),
        }
        bytes.resize(wanted, 0);
    }

    fn other<M>(&self, bytes: &mut Vec<u8>, ppdu: &Ppdu<M>, frame: &Frame<M>, now: u64) {
        let first = match frame {
            Frame::Ack { .. } => 0xd4,
            Frame::Cts => 0xc4,
            Frame::Rts => 0xb4,
            Frame::BlockAck { .. } => 0x94,
            Frame::BlockAckReq { .. } => 0x84,
            Frame::Addba(_) => 0xd0,
            Frame::Beacon | Frame::Data(_) => 0x80,
        };
        let is_retry = matches!(frame, Frame::Addba(addba) if addba.retry);
        bytes.extend([first, if is_retry { RETRY } else { 0 }]);
        bytes.extend(duration(ppdu.reserves));
        bytes.extend(ppdu.to.map_or(BROADCAST, address));
        match frame {
            Frame::Ack { carried } => bytes.extend(carried),
            Frame::Cts | Frame::Data(_) => {}
            Frame::Rts => bytes.extend(address(ppdu.from)),
            Frame::BlockAckReq { category, start } => {
                bytes.extend(address(ppdu.from));
                window(bytes, *category, *start);
            }
            Frame::BlockAck {
                category,
                start,
                bitmap,
                carried,
            } => {
                bytes.extend(address(ppdu.from));
                window(bytes, *category, *start);
                bytes.extend(bitmap.to_le_bytes());
                bytes.extend(carried);
            }
            Frame::Addba(addba) => {
                bytes.extend(address(ppdu.from));
                bytes.extend(self.bssid(ppdu.from));
                self::addba(bytes, addba);
            }
            Frame::Beacon => self.beacon(bytes, ppdu, now),
        }
    }

    fn beacon<M>(&self, bytes: &mut Vec<u8>, ppdu: &Ppdu<M>, now: u64) {
        let header = bytes.len() - 10;
        bytes.extend(address(ppdu.from));
        bytes.extend(self.bssid(ppdu.from));
        let count = now / (nanos(self.beacon_interval) / 1_000).max(1);
        bytes.extend((((count & 0xfff) as u16) << 4).to_le_bytes());
        bytes.extend(now.to_le_bytes());
        let units = nanos(self.beacon_interval).div_ceil(1_024_000);
        bytes.extend((units.clamp(1, 65_535) as u16).to_le_bytes());
        // An infrastructure network; short slots where OFDM shares the band with 802.11b.
        let short_slot = u16::from(self.standard == Standard::G) << 10;
        bytes.extend((0x0001 | short_slot).to_le_bytes());
        bytes.extend([0, 4]);
        bytes.extend(b"tack");
        if self.standard == Standard::B {
            bytes.extend([1, 4, 0x82, 0x84, 0x0b, 0x16]);
        } else {
            bytes.extend([1, 8, 0x8c, 0x12, 0x98, 0x24, 0xb0, 0x48, 0x60, 0x6c]);
        }
        if matches!(self.standard, Standard::B | Standard::G) {
            bytes.extend([3, 1, radiotap::CHANNEL_2_4]);
        }
        bytes.extend([5, 4, 0, 1, 0, 0]);
        if self.standard == Standard::G {
            bytes.extend([42, 1, 0]);
        }
        // What is said of QoS, HT, VHT and HE takes the length it has, as one vendor-specific
        // element.
        let rest =
            (ppdu.psdu - len::FCS) as usize - (bytes.len() - header).min(ppdu.psdu as usize - 4);
        if (5..=257).contains(&rest) {
            bytes.extend([221, rest as u8 - 2, 0x02, 0, 0]);
            bytes.resize(bytes.len() + rest - 5, 0);
        }
    }
}

/// Duration field: microseconds, rounded up.
fn duration(reserves: Duration) -> [u8; 2] {
    (nanos(reserves).div_ceil(1_000).min(32_767) as u16).to_le_bytes()
}

/// BA or BAR Control of the compressed variant, and the starting sequence number.
fn window(bytes: &mut Vec<u8>, category: AccessCategory, start: u16) {
    let control = 0x0004 | u16::from(category.tid()) << 12;
    bytes.extend(control.to_le_bytes());
    bytes.extend((start << 4).to_le_bytes());
}

/// Sequence control and body of an ADDBA frame (§9.6.4.2, §9.6.4.3).
fn addba(bytes: &mut Vec<u8>, addba: &Addba) {
    const BLOCK_ACK: u8 = 3;
    const NO_TIMEOUT: [u8; 2] = [0; 2];
    // Immediate Block ACK, no A-MSDU, a buffer of 64 frames (§9.4.1.13).
    let parameters = 0x0002 | u16::from(addba.category.tid()) << 2 | WINDOW << 6;
    bytes.extend((addba.seq << 4).to_le_bytes());
    match addba.kind {
        AddbaKind::Request { start } => {
            bytes.extend([BLOCK_ACK, 0, addba.token]);
            bytes.extend(parameters.to_le_bytes());
            bytes.extend(NO_TIMEOUT);
            bytes.extend((start << 4).to_le_bytes());
        }
        AddbaKind::Response => {
            const SUCCESS: [u8; 2] = [0; 2];
            bytes.extend([BLOCK_ACK, 1, addba.token]);
            bytes.extend(SUCCESS);
            bytes.extend(parameters.to_le_bytes());
            bytes.extend(NO_TIMEOUT);
        }
    }
}

#[cfg(test)]
mod tests;
