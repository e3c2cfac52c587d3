//! Packet scripts: one line for each thing that goes in or must come out, at exact virtual times.
//!
//! ```text
//! +0     < S 0:0(0) win 65535 <mss 1000,sackOK>    a segment arrives
//! +0     > S. 0:0(0) ack 1 <mss 1460,...>          exactly this segment leaves, now
//! +10ms  < . 1:1(0) ack 1 win 65535
//! +0     write 3000                                the application acts
//! +0     > P. 1:1001(1000) ack 1
//! +200ms > nothing                                 nothing leaves until then
//! *      > . 1:1001(1000)                          the next segment that leaves, whenever that is
//! +0     event Connected                           the next event; `event nothing`: none is there
//! ```
//!
//! A time is `+D` (after the line before), `@D` (after the beginning) or, for what leaves, `*`; `D`
//! carries a unit (`ns us ms s`) unless it is 0. `+D..E` is for a segment that leaves: at least D
//! and at most E after the line before. Sequence numbers count from the initial ones of either
//! side, so the first byte of data is number 1. What an expectation leaves out may be anything;
//! `<…>` names all options there must be, unless it ends in `...`; `wscale *` is there with any
//! shift. `win` is the window field, and `rcv_wnd A..B` is what it stands for once it is scaled: at
//! least A and at most B bytes, either of which may be missing. What an arrival leaves out: `win`
//! is 65535, options are timestamps if they were negotiated, `ecn` is `not`. `#` begins a comment.
//!
//! `each N` after the fields stands for a train of segments of at most N bytes that make up the
//! range. The flag P is ignored where segments are compared.
//!
//! `Readable` and `Writable` are skipped unless they are asked for. Actions of the application:
//! `write N`, `read N` (exactly so many bytes can be read, and are right), `eof`, `finish`,
//! `abort`, `stop_reading`, `mtu N` (the path reports its MTU), `state NAME`.

mod parse;
mod segment;

use std::ops::RangeInclusive;
use std::time::Duration;

use tack_tcp::{Event, State};
use tack_wire::{Ecn, Flags};

pub use parse::parse;
pub use segment::scaled_window;

/// When a line happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// So long after the line before it.
    After(Duration),
    /// So long after the beginning.
    At(Duration),
    /// At least and at most so long after the line before it.
    Within(Duration, Duration),
    /// Whenever it comes.
    Whenever,
}

/// One line of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Number of the line in its text, from 1.
    pub number: usize,
    /// When.
    pub when: When,
    /// What.
    pub action: Action,
}

/// What a line does or demands.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A segment arrives.
    Arrive(SegmentSpec),
    /// This segment leaves next.
    Leave(SegmentSpec),
    /// No segment leaves until then.
    Silence,
    /// The application writes so many bytes, all of which must be taken.
    Write(usize),
    /// The application reads: exactly so many bytes are there.
    Read(usize),
    /// The stream of the peer has ended and everything was read.
    Eof,
    /// The application ends its stream.
    Finish,
    /// The application resets the connection.
    Abort,
    /// The application will read no more.
    StopReading,
    /// The path reports its MTU.
    PathMtu(u16),
    /// The next event, or none; `Readable` and `Writable` are skipped unless they are meant.
    Event(Option<Event>),
    /// The connection is in this state.
    State(State),
}

/// A segment, as far as a line spells it out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SegmentSpec {
    /// Control bits, all of them.
    pub flags: Flags,
    /// Sequence number, relative.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
    /// Acknowledgement number, relative; there is one when the flags say so.
    pub ack: Option<u32>,
    /// Window field, not scaled.
    pub window: Option<u16>,
    /// Window, scaled, bytes. Only an expectation has it.
    pub receive_window: Option<RangeInclusive<u32>>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// ECN codepoint of the packet.
    pub ecn: Option<Ecn>,
    /// Options.
    pub options: Option<OptionsSpec>,
    /// Not one segment but a train of segments of at most so many bytes.
    pub each: Option<u32>,
}

impl SegmentSpec {
    /// The segments that this stands for: itself, or its train.
    pub fn train(&self) -> Vec<Self> {
        let each = self.each.unwrap_or(u32::MAX).max(1);
        let mut train = Vec::new();
        let mut at = 0;
        loop {
            let len = (self.len - at).min(each);
            train.push(Self {
                seq: self.seq.wrapping_add(at),
                len,
                each: None,
                ..self.clone()
            });
            at += len;
            if at == self.len {
                return train;
            }
        }
    }
}

/// The options of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OptionsSpec {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale; `Some(None)` is any in an expectation.
    pub window_scale: Option<Option<u8>>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// SACK blocks, relative to the initial sequence number of the segment's receiver.
    pub sack: Vec<(u32, u32)>,
    /// Timestamps: value and echo, `None` for "any" in an expectation and "the right one" in an
    /// arrival.
    pub timestamps: Option<(Option<u32>, Option<u32>)>,
    /// Raw options the other side does not know, put in front.
    pub unknown: Vec<u8>,
    /// There may be others.
    pub open: bool,
}
