//! The seeds and a little noise, without a fuzzer.

use std::fs;
use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        run(&bytes);
        // Cut short at every length, and with each byte disturbed.
        for at in 0..bytes.len() {
            run(&bytes[..at]);
            let mut disturbed = bytes.clone();
            disturbed[at] = disturbed[at].wrapping_mul(31).wrapping_add(at as u8);
            run(&disturbed);
        }
        seeds += 1;
    }
    assert!(seeds > 0, "no seeds in {}", folder.display());
}

#[test]
fn segment_seeds() {
    replay("segment", super::segment);
}

#[test]
fn options_seeds() {
    replay("options", super::options);
}

#[test]
fn encapsulation_seeds() {
    replay("encapsulation", super::encapsulation);
}

#[test]
fn ip_seeds() {
    replay("ip", super::ip);
}

#[test]
fn records_seeds() {
    replay("records", super::records);
}

#[test]
fn transfer_frames_seeds() {
    replay("transfer_frames", super::transfer_frames);
}

#[test]
fn connection_ops_seeds() {
    replay("connection_ops", |bytes| {
        if let Ok(run) = super::Run::arbitrary_take_rest(Unstructured::new(bytes)) {
            super::connection_ops(&run);
        }
    });
}

#[test]
fn duel_seeds() {
    replay("duel", |bytes| {
        if let Ok(run) = super::Match::arbitrary_take_rest(Unstructured::new(bytes)) {
            super::duel(&run);
        }
    });
}

#[test]
fn tack_lists_seeds() {
    replay("tack_lists", super::tack_lists);
}

#[test]
fn rohc_packets_seeds() {
    replay("rohc_packets", super::rohc_packets);
}

#[test]
fn rohc_streams_seeds() {
    replay("rohc_streams", super::rohc_streams);
}

#[test]
fn ticket_seeds() {
    replay("ticket", super::ticket);
}

#[test]
fn code_seeds() {
    replay("code", super::code);
}

#[test]
fn meeting_seeds() {
    replay("meeting", super::meeting);
}

#[test]
fn socks_seeds() {
    replay("socks", super::socks);
}

#[test]
fn http_connect_seeds() {
    replay("http_connect", super::http_connect);
}

#[test]
fn tunnel_messages_seeds() {
    replay("tunnel_messages", super::tunnel_messages);
}
