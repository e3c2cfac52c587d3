//! What each acknowledgement of a capture would compress to.
//!
//! `cargo run -p tack-rohc --example pcap -- FILE [ROBUSTNESS]`: FILE is a pcap or pcapng of
//! Ethernet frames or IP packets. Each direction of each connection is a flow of its own, once for
//! each interface; segments with data do not count. The first acknowledgement of a flow travels as
//! it is. ROBUSTNESS is 1 to 11 (default 1, as on a carrier that delivers each packet in order).
//! Each compressed packet is also rebuilt and compared.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use etherparse::{IpSlice, TcpSlice};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode, Refusal};

/// The interface, and addresses and ports as the packet has them.
type FlowKey = (u32, Vec<u8>);

/// Both ends of one flow in one mode, and what came of it.
struct Codec {
    compressor: Compressor,
    decompressor: Decompressor,
    packets: usize,
    bytes: usize,
}

impl Codec {
    fn new(mode: Mode, robustness: u8) -> Self {
        Self {
            compressor: Compressor::new(Config { mode, robustness }),
            decompressor: Decompressor::new(mode),
            packets: 0,
            bytes: 0,
        }
    }

    /// Size and format, or why the packet travels as it is.
    fn pass(&mut self, packet: &[u8]) -> Result<Result<(usize, &'static str), Refusal>> {
        match self.compressor.compress(packet) {
            Ok(sent) => {
                let rebuilt = self.decompressor.decompress(&sent.bytes)?;
                ensure!(rebuilt.packet.as_slice() == packet, "it comes back changed");
                self.packets += 1;
                self.bytes += sent.bytes.len();
                Ok(Ok((sent.bytes.len(), sent.format.name())))
            }
            Err(refusal) => {
                // Both ends take note of it, or neither does.
                let native = self.compressor.handle_native(packet, Delivery::Certain);
                ensure!(
                    native == self.decompressor.handle_native(packet),
                    "ends differ"
                );
                Ok(Err(refusal))
            }
        }
    }
}

#[derive(Default)]
struct Report {
    robustness: u8,
    flows: BTreeMap<FlowKey, [Codec; 3]>,
    acks: usize,
    native_bytes: usize,
}

const MODES: [Mode; 3] = [Mode::Rfc, Mode::Lean, Mode::LeanNoChecksum];

impl Report {
    fn frame(&mut self, number: usize, interface: u32, link: DataLink, frame: &[u8]) -> Result<()> {
        let packet = match (link, frame) {
            (DataLink::ETHERNET, [_, _, _, _, _, _, _, _, _, _, _, _, 8, 0, packet @ ..])
            | (DataLink::ETHERNET, [_, _, _, _, _, _, _, _, _, _, _, _, 0x86, 0xdd, packet @ ..])
            | (DataLink::RAW | DataLink::IPV4 | DataLink::IPV6, packet) => packet,
            _ => return Ok(()),
        };
        let Ok(ip) = IpSlice::from_slice(packet) else {
            return Ok(());
        };
        let payload = ip.payload();
        let Ok(tcp) = TcpSlice::from_slice(payload.payload) else {
            return Ok(());
        };
        if payload.ip_number.0 != 6 || !tcp.ack() || !tcp.payload().is_empty() {
            return Ok(());
        }
        // Ethernet pads short frames.
        let ip_header = payload.payload.as_ptr().addr() - packet.as_ptr().addr();
        let packet = &packet[..ip_header + payload.payload.len()];
        let mut addresses = format!("{}", ip.source_addr()).into_bytes();
        addresses.extend(format!(".{} > ", tcp.source_port()).bytes());
        addresses.extend(format!("{}.{}", ip.destination_addr(), tcp.destination_port()).bytes());
        let robustness = self.robustness;
        let codecs = self
            .flows
            .entry((interface, addresses))
            .or_insert_with(|| MODES.map(|mode| Codec::new(mode, robustness)));
        self.acks += 1;
        self.native_bytes += packet.len();
        print!("{number:8} {:3}", packet.len());
        for codec in codecs {
            match codec
                .pass(packet)
                .with_context(|| format!("packet {number}"))?
            {
                Ok((bytes, format)) => print!("  {bytes:3} {format:9}"),
                Err(refusal) => print!("  native: {refusal}"),
            }
        }
        println!();
        Ok(())
    }

    fn print(&self) {
        for ((interface, name), codecs) in &self.flows {
            print!("interface {interface}, {}:", String::from_utf8_lossy(name));
            for (mode, codec) in MODES.iter().zip(codecs) {
                let mean = codec.bytes as f64 / codec.packets.max(1) as f64;
                print!(" {mode:?} {} x {mean:.2} B;", codec.packets);
            }
            println!();
        }
        let mean = self.native_bytes as f64 / self.acks.max(1) as f64;
        println!("{} acknowledgements of {mean:.1} B", self.acks);
    }
}

fn parse_robustness(text: &str) -> Result<u8> {
    let robustness = text.parse().ok().filter(|number| (1..=11).contains(number));
    robustness.with_context(|| format!("expected a robustness of 1 to 11, got {text:?}"))
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, robustness) = match arguments.as_slice() {
        [path] => (path, 1),
        [path, robustness] => (path, parse_robustness(robustness)?),
        _ => bail!("usage: pcap FILE [ROBUSTNESS]"),
    };
    let mut report = Report {
        robustness,
        ..Report::default()
    };
    println!("  number  native, rfc, lean, lean without checksum: bytes");
    let open = || {
        File::open(path)
            .map(BufReader::new)
            .with_context(|| path.clone())
    };
    if let Ok(mut reader) = PcapReader::new(open()?) {
        let link = reader.header().datalink;
        let mut number = 0;
        while let Some(packet) = reader.next_packet() {
            number += 1;
            report.frame(number, 0, link, &packet?.data)?;
        }
    } else {
        let mut reader = PcapNgReader::new(open()?).context("expected pcap or pcapng")?;
        let mut links = Vec::new();
        let mut number = 0;
        while let Some(block) = reader.next_block() {
            match block? {
                Block::InterfaceDescription(interface) => links.push(interface.linktype),
                Block::EnhancedPacket(packet) => {
                    number += 1;
                    let link = links.get(packet.interface_id as usize);
                    let link = *link.context("a packet of an interface that was not described")?;
                    report.frame(number, packet.interface_id, link, &packet.data)?;
                }
                _ => {}
            }
        }
    }
    report.print();
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
