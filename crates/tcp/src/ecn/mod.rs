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
    /// Sender: what is known of marks that do not end.
    endless: Endless,
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
    /// Sender: the echo means nothing, whatever else arrives.
    is_ignored: bool,
}

/// A window that marks cannot reduce much further, in segments.
const SMALLEST: u64 = 4;
/// Reductions in a row that left no more than that, or as much as before, after which data is not
/// marked as capable any more. RFC 3168 has no number; RFC 9768 §3.2.2.3 has three or four for its
/// counter, which shows more.
const ENDLESS: u8 = 8;
/// Reports of marks that ask for a reduction although all data left as not capable, of which the
/// last shows that they are false. The first may answer data that left before.
const STALE: u8 = 2;

/// Marks that all acknowledgements report, although the sender reduces. Either CWR, which ends the
/// echo of RFC 3168, does not get to the receiver, or the path marks all that it carries.
///
/// When the window is at its minimum, further marks cannot reduce it. Data is then sent as Not-ECT:
/// a path that is still congested drops packets instead. BBR's minimum is the bdp of its model, and
/// with such a window it cannot measure a larger one. If reports of marks go on although nothing
/// could be marked, they are false.
#[derive(Clone, Copy, Debug, Default)]
struct Endless {
    /// A reduction was made since the last acknowledgement of data that reports no mark.
    has_begun: bool,
    /// Window after the first reduction, bytes; `None` once a loss has reduced it, too.
    window: Option<u64>,
    /// Reductions at the smallest window.
    rounds: u8,
    /// Reductions since data is not marked as capable.
    unmarkable: u8,
}

/// What an acknowledgement reports of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    /// The window has to be reduced: the first marks of this round trip.
    pub(crate) reduce: bool,
    /// Marks that it reports, if it counts them.
    pub(crate) counted: u64,
    /// The marks reported since the window was so many bytes were one that was confirmed in vain.
    pub(crate) restore: Option<u64>,
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

    /// The peer's SYN arrived marked, although it left as not capable: the path overwrites the
    /// field.
    pub(crate) fn on_marked_syn(&mut self) {
        if let Feedback::Accurate(accurate) = &mut self.feedback {
            accurate.on_overwritten();
        }
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
            Feedback::Classic(echo) => (flags.contains(Flags::ECE) && !echo.is_ignored, 0),
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
        if !marked && segments > 0 {
            self.endless = Endless::default();
        }
        let mut reduce = marked && snd_una > self.reduced_until;
        let mut restore = None;
        if reduce && self.endless.rounds >= ENDLESS {
            self.endless.unmarkable += 1;
            if self.endless.unmarkable >= STALE {
                restore = self.endless.window;
                reduce = false;
                match &mut self.feedback {
                    Feedback::None => {}
                    Feedback::Classic(echo) => echo.is_ignored = true,
                    Feedback::Accurate(accurate) => accurate.distrust(),
                }
            }
        } else if let Feedback::Accurate(accurate) = &mut self.feedback
            && reduce
        {
            reduce = accurate.means_congestion();
            self.capable &= reduce;
        }
        if reduce {
            self.confirm(snd_nxt);
        }
        Marks {
            reduce,
            counted,
            restore,
        }
    }

    /// Marks asked for a reduction, and the window is now `window` bytes, with segments of `mss`
    /// bytes. `is_lowest` says that it was not reduced, or by less than a segment. True where
    /// data leaves as not capable from now on: no mark tells any more that a window is too large.
    pub(crate) fn on_reduced_for_marks(&mut self, window: u64, is_lowest: bool, mss: u64) -> bool {
        let endless = &mut self.endless;
        if !endless.has_begun {
            endless.has_begun = true;
            endless.window = Some(window);
        }
        if is_lowest || window <= SMALLEST * mss {
            endless.rounds = endless.rounds.saturating_add(1);
        }
        self.capable &= endless.rounds < ENDLESS;
        endless.rounds >= ENDLESS
    }

    /// The window was reduced for a loss: marks of the same window ask for nothing more.
    pub(crate) fn on_reduction(&mut self, snd_nxt: StreamOffset) {
        self.confirm(snd_nxt);
        self.endless.window = None;
    }

    fn confirm(&mut self, snd_nxt: StreamOffset) {
        self.reduced_until = snd_nxt;
        if let Feedback::Classic(echo) = &mut self.feedback {
            echo.confirm = true;
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
