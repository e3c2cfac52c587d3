//! Explicit congestion notification: marks in, feedback out, and one answer a window.
//!
//! Feedback is that of RFC 3168 §6.1 (an echo until it is confirmed), or the accurate one of
//! RFC 9768 (a counter), as the handshake agreed.

mod accurate;
pub(crate) mod handshake;

use tack_base::StreamOffset;
use tack_wire::{Ecn, Flags};

use accurate::Accurate;
use handshake::Agreement;

/// ECN of one connection, both directions.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    feedback: Feedback,
    /// Data is marked as ECN-capable.
    capable: bool,
    /// Sender: SND.NXT at the last reduction; one reduction a window.
    reduced_until: StreamOffset,
}

#[derive(Debug, Default)]
enum Feedback {
    #[default]
    None,
    Classic(Echo),
    Accurate(Accurate),
}

/// Feedback of RFC 3168.
#[derive(Debug, Default)]
struct Echo {
    /// Receiver: echo ECE until the sender confirms with CWR.
    echo: bool,
    /// Sender: confirm with CWR on the next new data segment.
    confirm: bool,
}

/// What an acknowledgement reports of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    /// The window has to be reduced: the first marks of this round trip.
    pub(crate) reduce: bool,
    /// Marks that it reports, if it counts them.
    pub(crate) counted: u64,
}

impl EcnState {
    /// Result of the handshake.
    pub(crate) fn agree(&mut self, agreement: Agreement) {
        self.capable = agreement != Agreement::None;
        self.feedback = match agreement {
            Agreement::None => Feedback::None,
            Agreement::Classic => Feedback::Classic(Echo::default()),
            Agreement::Accurate => Feedback::Accurate(Accurate::new()),
        };
    }

    /// The peer's SYN-ACK, whose packet had codepoint `ecn`, agrees to accurate feedback. Its
    /// `flags` report the codepoint with which our SYN arrived. `is_sure` is whether all our SYNs
    /// asked for accurate feedback.
    pub(crate) fn on_syn_ack(&mut self, flags: Flags, ecn: Ecn, is_sure: bool) {
        let Feedback::Accurate(accurate) = &mut self.feedback else {
            return;
        };
        accurate.on_syn_ack(ecn);
        // SYNs leave as not capable. If they arrive as something else, the path overwrites the
        // field (§3.2.2.3). If a SYN without the request left, the path may have dropped those with
        // it (§3.1.5).
        self.capable = is_sure && handshake::reflected(flags) == Some(Ecn::NotEct);
    }

    /// The acknowledgement of our SYN-ACK arrived.
    pub(crate) fn on_handshake_ack(&mut self, flags: Flags, has_payload: bool) {
        let Feedback::Accurate(accurate) = &mut self.feedback else {
            return;
        };
        if has_payload {
            return;
        }
        // Table 4 of §3.2.2.1. Flags that it does not name are reserved, and are no sign of a
        // fault.
        match handshake::reflected(flags) {
            Some(Ecn::NotEct) => {}
            Some(_) => self.capable = false,
            None if Flags(flags.0 & handshake::ACE.0) != Flags::default() => {}
            None => {
                self.capable = false;
                accurate.distrust();
            }
        }
        accurate.skip_one();
    }

    /// Codepoint for a segment: new data only, never retransmissions or pure ACKs (RFC 3168
    /// §6.1.4, §6.1.5; RFC 9768 allows more).
    #[inline]
    pub(crate) fn codepoint(&self, new_data: bool) -> Ecn {
        if self.capable && new_data {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }

    /// A segment arrived. True when the peer should be informed at once of what it says.
    #[inline]
    pub(crate) fn on_segment(&mut self, ecn: Ecn, flags: Flags, has_payload: bool) -> bool {
        match &mut self.feedback {
            Feedback::None => false,
            Feedback::Classic(state) => {
                if flags.contains(Flags::CWR) {
                    state.echo = false;
                }
                let begins = ecn == Ecn::Ce && !state.echo;
                if ecn == Ecn::Ce {
                    state.echo = true;
                }
                begins
            }
            Feedback::Accurate(accurate) => accurate.on_segment(ecn == Ecn::Ce, has_payload),
        }
    }

    /// An acknowledgement arrived that delivered `segments`. A reduction is due only once
    /// something sent after the last one is acknowledged: until then the peer cannot know of it.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        flags: Flags,
        segments: u64,
        snd_una: StreamOffset,
        snd_nxt: StreamOffset,
    ) -> Marks {
        let (marked, counted) = match &mut self.feedback {
            Feedback::None => return Marks::default(),
            Feedback::Classic(_) => (flags.contains(Flags::ECE), 0),
            Feedback::Accurate(accurate) => {
                match accurate.on_ack(flags, segments) {
                    Some(counted) => (counted > 0, counted),
                    None => {
                        // A middlebox clears the counter (§3.2.2.4).
                        self.capable = false;
                        (false, 0)
                    }
                }
            }
        };
        let mut reduce = marked && snd_una > self.reduced_until;
        if let Feedback::Accurate(accurate) = &mut self.feedback
            && reduce
            && !accurate.means_congestion()
        {
            self.capable = false;
            reduce = false;
        }
        if reduce {
            self.on_reduction(snd_nxt);
        }
        Marks { reduce, counted }
    }

    /// The window was reduced, for whatever reason: marks of the same window ask for nothing more.
    pub(crate) fn on_reduction(&mut self, snd_nxt: StreamOffset) {
        self.reduced_until = snd_nxt;
        if let Feedback::Classic(state) = &mut self.feedback {
            state.confirm = true;
        }
    }

    /// Flags for a segment that neither acknowledges new data nor is part of the stream: the
    /// counter, if there is one.
    pub(crate) fn counter(&mut self, has_payload: bool) -> Flags {
        match &mut self.feedback {
            Feedback::None | Feedback::Classic(_) => Flags::default(),
            Feedback::Accurate(accurate) => accurate.flags(has_payload),
        }
    }

    /// Flags for a segment that leaves.
    #[inline]
    pub(crate) fn flags(&mut self, new_data: bool, has_payload: bool) -> Flags {
        let mut flags = Flags::default();
        match &mut self.feedback {
            Feedback::None => {}
            Feedback::Classic(state) => {
                if state.echo {
                    flags = flags.with(Flags::ECE);
                }
                if new_data && state.confirm {
                    state.confirm = false;
                    flags = flags.with(Flags::CWR);
                }
            }
            Feedback::Accurate(accurate) => flags = accurate.flags(has_payload),
        }
        flags
    }
}
