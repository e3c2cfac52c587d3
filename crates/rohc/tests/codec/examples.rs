//! The programs of `examples/`: what they print, and their exit status.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{env, fs};

use crate::acks::{Ack, Version};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;

/// A folder for one test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("tack-rohc-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Where the examples are: beside the tests. `cargo test` builds them too, but not when it is asked
/// for these tests only; then they are built here. What is up to date is not built again, because a
/// build of this package alone chooses other features of the crates below and begins with those.
fn examples() -> &'static Path {
    static EXAMPLES: OnceLock<PathBuf> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let test = env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        let examples = profile.join("examples");
        if ["pcap", "vectors"]
            .iter()
            .all(|name| is_up_to_date(&examples.join(name)))
        {
            return examples;
        }
        if let Some(cargo) = env::var_os("CARGO") {
            let mut build = Command::new(cargo);
            build.args(["build", "--quiet", "--package", "tack-rohc", "--examples"]);
            // Debug builds of tests are in the folder of another profile's name.
            let name = profile.file_name().and_then(OsStr::to_str).unwrap();
            build.args(["--profile", if name == "debug" { "test" } else { name }]);
            build.arg("--target-dir").arg(profile.parent().unwrap());
            assert!(build.status().unwrap().success(), "the examples compile");
        }
        examples
    })
}

/// Whether a program is no older than any of its sources, which cargo lists in a file beside it.
fn is_up_to_date(program: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let list = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = list.split_once(": ").map_or("", |(_, sources)| sources);
    let mut sources = sources.split_whitespace().map(Path::new).peekable();
    // A path with a blank in it is not found, and so the program is built.
    sources.peek().is_some()
        && modified(&program.with_extension(env::consts::EXE_EXTENSION)).is_some_and(|built| {
            sources.all(|source| modified(source).is_some_and(|changed| changed <= built))
        })
}

/// What a program printed, and how it ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    output: String,
    error: String,
}

fn run(example: &str, arguments: &[&Path]) -> Ended {
    let path = examples()
        .join(example)
        .with_extension(env::consts::EXE_EXTENSION);
    let output = Command::new(path).args(arguments).output().unwrap();
    Ended {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

/// It ended with failure, and said why.
#[track_caller]
fn assert_fails(ended: &Ended, why: &str) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.error.starts_with("error: "), "{ended:?}");
    assert!(ended.error.contains(why), "{why}: {ended:?}");
}

fn vector(side: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    folder.join(format!("{side}.{name}"))
}

#[test]
fn vectors_that_agree_are_a_success() {
    for name in ["plain_seq", "plain_v6", "ts_zero", "dup", "ece"] {
        let ended = run("vectors", &[&vector("in", name), &vector("out", name)]);
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        assert!(
            ended.output.ends_with("60 of 60 packets decoded\n"),
            "{name}"
        );
        assert!(!ended.output.contains("DIFFERS"), "{name}");
        // A heading, a line for each packet, the means.
        assert_eq!(ended.output.lines().count(), 62, "{name}");
    }
}

/// Flips a bit of each byte of the last compressed packet, and of each byte of the last packet.
#[test]
fn a_changed_byte_is_a_failure() {
    let folder = Folder::new("changed");
    let read = |side| fs::read_to_string(vector(side, "ts_seq")).unwrap();
    for side in ["in", "out"] {
        let text = read(side);
        let text = text.trim_end();
        let start = text.rfind([' ', '\n']).unwrap() + 1;
        for at in (start..text.len()).step_by(2) {
            let byte = u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            let changed = format!("{}{:02x}{}", &text[..at], byte ^ 1, &text[at + 2..]);
            let path = folder.write(side, changed);
            let ended = match side {
                "in" => run("vectors", &[&path, &vector("out", "ts_seq")]),
                _ => run("vectors", &[&vector("in", "ts_seq"), &path]),
            };
            assert_eq!(
                ended.code,
                Some(1),
                "{side}, byte {}: {ended:?}",
                (at - start) / 2
            );
            let is_told = ended.output.contains("DIFFERS") || ended.error.starts_with("error: ");
            assert!(is_told, "{side}: {ended:?}");
        }
    }
}

#[test]
fn vectors_that_are_cut_off_are_a_failure() {
    let folder = Folder::new("cut");
    let text = fs::read_to_string(vector("out", "plain_zero")).unwrap();
    let text = text.trim_end();
    let cut = |len: usize| {
        let path = folder.write("out", &text[..len]);
        run("vectors", &[&vector("in", "plain_zero"), &path])
    };
    // The last packet is gone, with its line and without.
    let last = text.rfind('\n').unwrap();
    assert_fails(
        &cut(last),
        "expected as many compressed packets as packets, got 59 for 60",
    );
    assert_fails(&cut(last + 3), "expected type=FORMAT in line 60");
    // One digit of it is gone; one byte is.
    assert_fails(&cut(text.len() - 1), "expected pairs of hexadecimal digits");
    let ended = cut(text.len() - 2);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.output.matches("DIFFERS").count(), 1, "{ended:?}");
    assert!(
        ended.output.ends_with("59 of 60 packets decoded\n"),
        "{ended:?}"
    );
    let empty = folder.write("empty", "");
    assert_fails(
        &run("vectors", &[&empty, &empty]),
        "expected packets, got an empty file",
    );
}

#[test]
fn vectors_that_are_missing_are_a_failure_that_names_them() {
    let missing = Path::new("no/such/file");
    let there = vector("in", "dup");
    assert_fails(&run("vectors", &[missing, &there]), "no/such/file");
    assert_fails(&run("vectors", &[&there, missing]), "no/such/file");
    let there = there.as_path();
    for arguments in [&[][..], &[there], &[there, there, there]] {
        let ended = run("vectors", arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(ended.error, "usage: vectors IN OUT\n");
    }
}

/// 30 acknowledgements of two segments each.
fn stream(version: Version) -> Vec<Vec<u8>> {
    let ack = |number: u32| Ack {
        version,
        ack: 100_000 + 2_896 * number,
        timestamps: Some((5_000 + number, 9_000 + number)),
        ..Ack::default()
    };
    (0..30).map(|number| ack(number).bytes()).collect()
}

/// An Ethernet frame, padded to at least 80 bytes.
fn ethernet(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(if packet[0] >> 4 == 6 {
        [0x86, 0xdd]
    } else {
        [8, 0]
    });
    frame.extend(packet);
    frame.resize(frame.len().max(80), 0);
    frame
}

fn pcap(datalink: DataLink, packets: &[Vec<u8>]) -> Vec<u8> {
    let header = PcapHeader {
        datalink,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for packet in packets {
        let packet = PcapPacket::new(Duration::ZERO, packet.len() as u32, packet);
        writer.write_packet(&packet).unwrap();
    }
    writer.into_writer()
}

fn pcapng(datalink: DataLink, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
    let interface = InterfaceDescriptionBlock {
        linktype: datalink,
        snaplen: 0,
        options: Vec::new(),
    };
    writer.write_pcapng_block(interface).unwrap();
    for packet in packets {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::ZERO,
            original_len: packet.len() as u32,
            data: packet.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).unwrap();
    }
    writer.into_inner()
}

/// Captures of all kinds with the same acknowledgements: each is compressed but the first one of
/// its flow, and a segment with data, a datagram of UDP and a broken packet do not count.
#[test]
fn a_capture_is_compressed() {
    let folder = Folder::new("capture");
    let mut packets = stream(Version::V4);
    let mut data = packets[0].clone();
    data.push(0);
    data[2..4].copy_from_slice(&53_u16.to_be_bytes());
    let mut udp = packets[0].clone();
    udp[9] = 17;
    packets.extend([data, udp, vec![0x45, 0, 0]]);
    packets.extend(stream(Version::V6));
    let frames: Vec<_> = packets.iter().map(|packet| ethernet(packet)).collect();
    for (name, capture) in [
        ("raw.pcap", pcap(DataLink::RAW, &packets)),
        ("ethernet.pcap", pcap(DataLink::ETHERNET, &frames)),
        ("raw.pcapng", pcapng(DataLink::RAW, &packets)),
        ("ethernet.pcapng", pcapng(DataLink::ETHERNET, &frames)),
    ] {
        let ended = run("pcap", &[&folder.write(name, capture)]);
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        assert!(ended.error.is_empty(), "{name}: {ended:?}");
        // 52 bytes each with IPv4, 72 with IPv6.
        assert!(
            ended.output.ends_with("60 acknowledgements of 62.0 B\n"),
            "{name}"
        );
        let natives = ended.output.matches("native: ").count();
        assert_eq!(
            natives,
            2 * 3,
            "{name}: the first of each flow, in each mode"
        );
        // Six bytes with the stride, five in the lean form; a byte more until it is known.
        let flows: Vec<_> = ended
            .output
            .lines()
            .filter(|line| line.contains("Rfc"))
            .collect();
        assert_eq!(flows.len(), 2, "{name}");
        for flow in flows {
            assert!(flow.contains("198.51.100.2.5001:") || flow.contains("2001:db8::2.5001:"));
            let sizes: Vec<f64> = flow
                .split(" x ")
                .skip(1)
                .map(|size| size.split(' ').next().unwrap().parse().unwrap())
                .collect();
            let [rfc, lean, bare] = sizes[..] else {
                panic!("{flow}");
            };
            assert!(
                (6.0..7.0).contains(&rfc) && (lean - rfc + 1.0).abs() < 0.02,
                "{flow}"
            );
            assert!((lean - bare - 2.0).abs() < 0.02, "{flow}");
            assert_eq!(flow.matches(" 29 x ").count(), 3, "{flow}");
        }
    }
}

#[test]
fn what_is_no_capture_is_a_failure() {
    let folder = Folder::new("no-capture");
    for (name, contents) in [
        (
            "text",
            &b"A text that is longer than the header of a capture, and not one."[..],
        ),
        ("short", b"short"),
        ("empty", b""),
    ] {
        let ended = run("pcap", &[&folder.write(name, contents)]);
        assert_fails(&ended, "expected pcap or pcapng");
    }
    assert_fails(&run("pcap", &[Path::new("no/such/file")]), "no/such/file");
    assert_fails(&run("pcap", &[]), "usage: pcap FILE [ROBUSTNESS]");
    let file = folder.write("capture", pcap(DataLink::RAW, &stream(Version::V4)));
    assert_eq!(run("pcap", &[&file, Path::new("11")]).code, Some(0));
    for robustness in ["0", "12", "300", "many"] {
        let ended = run("pcap", &[&file, Path::new(robustness)]);
        assert_fails(&ended, "expected a robustness of 1 to 11");
    }
}

/// Cut off within its last packet: what came before is printed, and the end is a failure.
#[test]
fn a_capture_that_is_cut_off_is_a_failure() {
    let folder = Folder::new("cut-capture");
    let packets = stream(Version::V4);
    for (name, capture) in [
        ("pcap", pcap(DataLink::RAW, &packets)),
        ("pcapng", pcapng(DataLink::RAW, &packets)),
    ] {
        for gone in [1, 20, 55] {
            let path = folder.write(name, &capture[..capture.len() - gone]);
            let ended = run("pcap", &[&path]);
            assert_eq!(ended.code, Some(1), "{name} without {gone}: {ended:?}");
            assert!(ended.error.starts_with("error: "), "{ended:?}");
            let printed = ended.output.lines().skip(1).count();
            assert_eq!(printed, 29, "{name} without {gone}");
            assert!(
                !ended.output.contains("acknowledgements of"),
                "no sum of a part"
            );
        }
        // Within the header of the file.
        let path = folder.write(name, &capture[..20]);
        assert_eq!(run("pcap", &[&path]).code, Some(1), "{name}");
    }
}
