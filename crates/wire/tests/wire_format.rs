//! The examples of `docs/wire-format.md` are what the code writes and reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tack_wire::tack::{
    DataStamp, Lists, ListsWriter, LossReport, Report, ReportKind, Sync, TackSyn, TimingEcho,
};
use tack_wire::{Flags, Header, Segment, SeqNum, TackOption, TcpOptions, Timestamps};

const CLIENT: (u16, SeqNum) = (50_000, SeqNum(0x1000_0000));
const SERVER: (u16, SeqNum) = (8225, SeqNum(0x2000_0000));

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire-format.md");
    std::fs::read_to_string(path).expect("docs/wire-format.md")
}

/// Lines of the blocks that the page fences with "```hex NAME", comments cut off.
fn blocks() -> BTreeMap<String, Vec<Vec<u8>>> {
    let page = page();
    let mut blocks = BTreeMap::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("```hex ") else {
            continue;
        };
        let rows = lines
            .by_ref()
            .take_while(|line| *line != "```")
            .map(|line| bytes(line.split('#').next().unwrap_or_default()))
            .collect();
        assert_eq!(blocks.insert(name.to_owned(), rows), None, "{name} twice");
    }
    blocks
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap_or_else(|| panic!("no hex: {text}")))
        .collect();
    assert!(digits.len().is_multiple_of(2), "half a byte: {text}");
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn header(from: (u16, SeqNum), to: (u16, SeqNum), seq: u32, ack: u32) -> Header {
    Header {
        src_port: from.0,
        dst_port: to.0,
        seq: from.1 + seq,
        ack: to.1 + ack,
        flags: Flags::ACK,
        window: 512,
        ..Header::default()
    }
}

fn with(mut header: Header, tack: TackOption) -> Header {
    header.options.tack = Some(tack);
    header
}

/// Name, header and payload of each example.
fn examples() -> Vec<(&'static str, Header, Vec<u8>)> {
    let syn = TackOption::Syn(TackSyn {
        segments: 2,
        beta: 4,
    });
    let handshake = TcpOptions {
        mss: Some(1452),
        window_scale: Some(7),
        sack_permitted: true,
        ..TcpOptions::default()
    };
    let offer = Header {
        ack: SeqNum(0),
        flags: Flags::SYN,
        window: 0xffff,
        options: TcpOptions {
            timestamps: Some(Timestamps {
                value: 5000,
                echo: 0,
            }),
            ..handshake.clone()
        },
        ..header(CLIENT, SERVER, 0, 0)
    };
    let acceptance = Header {
        flags: Flags::SYN.with(Flags::ACK),
        window: 0xffff,
        options: handshake,
        ..header(SERVER, CLIENT, 0, 1)
    };
    let data = Header {
        flags: Flags::ACK.with(Flags::PSH),
        ..header(CLIENT, SERVER, 10_081, 1)
    };
    let stamp = TackOption::Data(DataStamp {
        number: 7,
        departure: 1_000_000,
    });
    let loss = TackOption::Loss(LossReport {
        lists: false,
        loss_rate: 655,
        number: 2,
        largest: 8,
        largest_delay: 40,
        above: 1440,
        before_gap: 6,
        after_gap: 8,
    });
    let report = TackOption::Report(Report {
        kind: ReportKind::Tack,
        lists: true,
        repeated: false,
        sync_echo: 1,
        loss_rate: 655,
        number: 3,
        largest: 9,
        largest_delay: 250,
        timing: Some(TimingEcho {
            departure: 1_001_500,
            delay: 8900,
        }),
        rate: Some(12_500_000),
        above: 2880,
        period: 10_000,
    });
    let sync = TackOption::Sync(Sync {
        startup: true,
        ack_loss_rate: 328,
        number: 1,
        rtt_min: 40_000,
        rtt: 50_000,
    });
    let mut lists = vec![0; 64];
    let mut writer = ListsWriter::new(&mut lists);
    assert!(writer.block(1440..4320) && writer.gap(2, 1));
    let len = writer.finish();
    lists.truncate(len);
    let with_lists = header(SERVER, CLIENT, 1_u32.wrapping_sub(len as u32), 10_081);
    vec![
        ("syn", with(offer, syn), vec![]),
        ("syn-ack", with(acceptance, syn), vec![]),
        ("data", with(data, stamp), b"hello".to_vec()),
        (
            "loss",
            with(header(SERVER, CLIENT, 1, 10_081), loss),
            vec![],
        ),
        ("tack", with(with_lists, report), lists),
        (
            "sync",
            with(header(CLIENT, SERVER, 17_286, 1), sync),
            vec![],
        ),
    ]
}

#[test]
fn examples_are_what_the_code_writes_and_reads() {
    let mut blocks = blocks();
    for (name, header, payload) in examples() {
        let documented = blocks
            .remove(name)
            .unwrap_or_else(|| panic!("no example {name} in docs/wire-format.md"))
            .concat();
        let mut written = vec![0; header.encoded_len()];
        header.emit(&mut written);
        written.extend_from_slice(&payload);
        assert_eq!(hex(&documented), hex(&written), "{name}");
        let read = Segment::parse(&documented).expect(name);
        assert_eq!(read.header, header, "{name}");
        assert_eq!(read.payload, payload, "{name}");
    }
    let refused = blocks
        .remove("refused-lists")
        .expect("no example refused-lists in docs/wire-format.md");
    for field in refused {
        assert!(Lists::parse(&field).is_err(), "{} is read", hex(&field));
    }
    assert!(
        blocks.is_empty(),
        "examples that nothing checks: {:?}",
        blocks.keys()
    );
}

/// The page names the constants, and the lengths of the shapes.
#[test]
fn the_tables_name_what_the_code_has() {
    let page = page().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut texts = vec![
        format!("**0x{:04X}**", tack_wire::tack::EXPERIMENT_ID),
        format!("kind = {}", tack_wire::tack::OPTION_KIND),
        format!("version = {}", tack_wire::tack::VERSION),
    ];
    for (_, header, _) in examples() {
        let option = header.options.tack.expect("each has one");
        texts.push(format!("length = {}", option.len()));
    }
    for text in texts {
        assert!(page.contains(&text), "{text}");
    }
}
