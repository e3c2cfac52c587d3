//! Packet captures that Wireshark and tcpdump open: pcapng with nanosecond times and an interface
//! for each host.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};

use tack_base::Instant;
use tack_wlan::Captured;
use tack_wlan::capture::Encoder;

use super::{Observer, PacketEvent, Passing};
use crate::packet::Packet;
use crate::scenario::{Party, Scenario};

/// An interface of the capture.
#[derive(Clone, Copy)]
struct Interface<'a> {
    /// A host, or [`AIR`].
    index: usize,
    name: &'a str,
    link: DataLink,
}

/// Writes the packets of a run as pcapng, with an interface for each host that sees any.
///
/// Every packet is seen twice, where it leaves and where it arrives: filter by interface
/// (`frame.interface_name == "server"`) for what one host would have captured. In a wireless
/// network what stations send and receive is seen on the air instead, as radiotap and 802.11 on the
/// interface `air`.
pub struct Capture<W: Write> {
    /// `None` after the first error.
    writer: Option<PcapNgWriter<W>>,
    error: Option<io::Error>,
    /// Numbers of the interfaces in the file: hosts by index, the air by [`AIR`].
    interfaces: BTreeMap<usize, u32>,
    encoder: Option<Encoder>,
    bytes: Vec<u8>,
}

/// Stands for the air among the hosts.
const AIR: usize = usize::MAX;

impl<W: Write> std::fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Capture<W> {
    /// Captures to `out`, which should be buffered.
    ///
    /// # Errors
    /// Whatever `out` says to the file's header.
    pub fn new(out: W) -> io::Result<Self> {
        let writer = PcapNgWriter::new(out).map_err(into_io)?;
        Ok(Self {
            writer: Some(writer),
            error: None,
            interfaces: BTreeMap::new(),
            encoder: None,
            bytes: Vec::new(),
        })
    }

    /// Writes `data` as seen at `at`; a new interface is introduced first.
    fn write(
        &mut self,
        interface: Interface<'_>,
        at: Instant,
        data: &[u8],
        options: Vec<EnhancedPacketOption<'_>>,
    ) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        let Interface { index, name, link } = interface;
        let count = self.interfaces.len() as u32;
        let written = match self.interfaces.get(&index) {
            Some(_) => Ok(0),
            None => {
                self.interfaces.insert(index, count);
                let mut interface = InterfaceDescriptionBlock::new(link, 0);
                // The writer counts nanoseconds whatever the interface says: say so, or readers see
                // times a thousandfold.
                interface.options = vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfTsResol(9),
                ];
                writer.write_pcapng_block(interface)
            }
        };
        let block = EnhancedPacketBlock {
            interface_id: self.interfaces[&index],
            timestamp: Duration::from_nanos(at.as_nanos()),
            original_len: data.len() as u32,
            data: Cow::Borrowed(data),
            options,
        };
        let written = written.and_then(|_| writer.write_pcapng_block(block));
        if let Err(error) = written {
            self.error = Some(into_io(error));
            self.writer = None;
        }
    }
}

impl<W: Write> Observer for Capture<W> {
    fn on_start(&mut self, scenario: &Scenario) {
        self.encoder = scenario.wlan.as_ref().map(|wlan| {
            let interval = wlan
                .world
                .beacons
                .map_or(Duration::ZERO, |beacons| beacons.interval);
            Encoder::new(wlan.standard, wlan.band, wlan.world.stations + 1, interval)
        });
    }

    fn wants_radio(&self) -> bool {
        true
    }

    fn on_radio(&mut self, captured: &Captured<Packet>) {
        let Some(encoder) = self.encoder else {
            return;
        };
        let mut bytes = std::mem::take(&mut self.bytes);
        let content = |packet: &Packet, bytes: &mut Vec<u8>| {
            let mut packet = packet.clone();
            packet.write_checksums();
            bytes.extend_from_slice(&packet.head);
            bytes.extend_from_slice(&packet.payload);
        };
        let air = Interface {
            index: AIR,
            name: "air",
            link: DataLink::IEEE802_11_RADIOTAP,
        };
        encoder.encode(captured, &mut bytes, content, |data| {
            self.write(air, captured.at, data, Vec::new());
        });
        self.bytes = bytes;
    }

    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if self.writer.is_none() || matches!(event.host, Party::Station(_)) {
            return;
        }
        // What a capture shows has checksums, though the simulation leaves them blank.
        let mut packet = event.packet.clone();
        packet.write_checksums();
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend_from_slice(&packet.head);
        bytes.extend_from_slice(&packet.payload);
        let name = event.host.name();
        let interface = Interface {
            index: event.host.index(),
            name: name.as_ref(),
            link: DataLink::RAW,
        };
        self.write(interface, event.at, &bytes, vec![direction(event.passing)]);
        self.bytes = bytes;
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match &mut self.writer {
            Some(writer) => writer.get_mut().flush(),
            None => Ok(()),
        }
    }
}

/// The direction as pcapng's packet flags have it (draft-ietf-opsawg-pcapng §4.3.1): 1 inbound, 2
/// outbound.
fn direction(passing: Passing) -> EnhancedPacketOption<'static> {
    let flags = match passing {
        Passing::In => 1,
        Passing::Out => 2,
    };
    EnhancedPacketOption::Flags(flags)
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use pcap_file::pcapng::{Block, PcapNgReader};
    use std::net::{IpAddr, Ipv4Addr};
    use tack_wire::Ecn;
    use tack_wire::checksum::{PROTOCOL_UDP, verify_tcp};

    #[test]
    fn packets_and_their_times_read_back() {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file).unwrap();
        let addresses = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut transport = [0; 20];
        transport[12] = 5 << 4;
        let tcp = Packet::new(
            addresses,
            6,
            Ecn::Ect0,
            &transport,
            Bytes::from_static(b"abc"),
            Instant::ZERO,
        );
        let udp = Packet::new(
            addresses,
            PROTOCOL_UDP,
            Ecn::NotEct,
            &[0; 16],
            Bytes::new(),
            Instant::ZERO,
        );
        for (at, host, passing, packet) in [
            (1_234_567_891, Party::Server, Passing::Out, &tcp),
            (2_000_000_000, Party::Client, Passing::In, &udp),
        ] {
            capture.on_packet(&PacketEvent {
                at: Instant::from_nanos(at),
                host,
                passing,
                packet,
            });
        }
        capture.finish().unwrap();
        drop(capture);
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut seen = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                seen.push((
                    packet.interface_id,
                    packet.timestamp.as_nanos(),
                    packet.data.into_owned(),
                ));
            }
        }
        assert_eq!(
            (seen[0].0, seen[0].1, seen[0].2.len()),
            (0, 1_234_567_891, 43)
        );
        assert_eq!(
            (seen[1].0, seen[1].1, seen[1].2.len()),
            (1, 2_000_000_000, 36)
        );
        let (src, dst) = (IpAddr::V4(addresses.0), IpAddr::V4(addresses.1));
        assert!(verify_tcp(src, dst, &seen[0].2[20..]));
    }
}
