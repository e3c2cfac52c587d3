//! The kernel's TCP, QUIC and this project's transport over the same emulated links, in real time.

mod bbr_window;
mod legacy;
mod measured;
mod pantheon;
mod quic;
mod tables;
#[cfg(test)]
mod tests;
mod ways;

use crate::figure::{Depth, Figure, Outcome, Paper};
use crate::point::Point;
use crate::results::Results;
use measured::Measured;
use ways::{cell, is_wanted, planned, seeds};

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Stacks,
    id: "kernel",
    title: "The kernel's TCP, QUIC and TACK over the same links in real time",
    about: "One download at a time, between network namespaces that the emulator joins: over the paper's 802.11g, n and ac devices at \
        a round-trip time of 80 ms with 1,000 packets of queue at the access point, and over paths that the Pantheon calibrated. The \
        kernel's TCP as it is, by iperf3 and by a program that reads every 20 ms, and without all that saves it acknowledgements: generic receive offload (GRO), compression of SACKs, and the \
        reads of a program, by one that reads every 20 ms and has a low-water mark which is not reached. This project's without TACK: in batches, with one acknowledgement for what one \
        system call delivers, beside the kernel as it is; segment by segment beside the kernel without GRO. QUIC by quinn with its own congestion controllers and windows of \
        16 MiB, with and without the ACK-frequency extension (an acknowledgement for every eleventh packet); this project's over UDP. Over \
        802.11n also quinn as it comes, and with an acknowledgement every 20 ms, as TACK has, beside TACK with CUBIC. QUIC encrypts, the others do \
        not. Goodput is what the receiving program counted in 10 s after the first 5 s (20 s in the full form; over eight paths also once senders have settled); acknowledgements, data \
        packets and airtime are the emulator's, over the same time. For QUIC, packets of at most 600 bytes count as acknowledgements.",
    plan,
    reduce,
};

/// The names of its paths.
pub(in crate::figures) fn paths() -> impl Iterator<Item = &'static str> {
    ways::all().map(|route| route.name)
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    // What is compared runs one after the other.
    for seed in seeds(depth) {
        for route in planned(depth) {
            let ways = route.ways().filter(|way| is_wanted(depth, route, *way));
            points.extend(ways.map(|way| cell(depth, route, way).at(seed)));
        }
    }
    points
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let measured = Measured { depth, results };
    let mut stated = legacy::claims(&measured);
    stated.extend(quic::claims(&measured));
    stated.extend(pantheon::claims(&measured));
    let (claims, missing): (Vec<_>, Vec<_>) = stated.into_iter().partition(|it| it.is_made);
    let mut notes = tables::notes(&measured);
    if !missing.is_empty() {
        let words: Vec<_> = missing.iter().map(|it| it.claim.words.as_str()).collect();
        notes.push(format!(
            "Not judged, because runs for them are missing here: {}.",
            words.join("; ")
        ));
    }
    Outcome {
        plots: tables::plots(&measured),
        claims: claims.into_iter().map(|it| it.claim).collect(),
        numbers: tables::numbers(&measured),
        further: vec![tables::reasons(&measured)],
        notes,
    }
}
