//! Explicit congestion notification (RFC 3168 §6.1): marks in, echoes out, and one answer a window.

use tack_base::StreamOffset;
use tack_wire::{Ecn, Flags};

/// ECN of one connection, both directions.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    agreed: bool,
    /// Receiver: echo ECE until the sender confirms with CWR.
    echo: bool,
    /// Sender: confirm with CWR on the next new data segment.
    confirm: bool,
    /// Sender: SND.NXT at the last reduction; one reduction a window.
    reduced_until: StreamOffset,
}

impl EcnState {
    /// Both sides agreed in the handshake.
    pub(crate) fn agree(&mut self) {
        self.agreed = true;
    }

    /// Codepoint for a segment: new data only, never retransmissions or pure ACKs (§6.1.4, §6.1.5).
    #[inline]
    pub(crate) fn codepoint(&self, new_data: bool) -> Ecn {
        if self.agreed && new_data {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }

    /// A segment arrived. True when the echo begins: the peer should be informed at once.
    #[inline]
    pub(crate) fn on_segment(&mut self, ecn: Ecn, flags: Flags) -> bool {
        if !self.agreed {
            return false;
        }
        if flags.contains(Flags::CWR) {
            self.echo = false;
        }
        let begins = ecn == Ecn::Ce && !self.echo;
        if ecn == Ecn::Ce {
            self.echo = true;
        }
        begins
    }

    /// An acknowledgement arrived. True when it asks for a reduction that this window has not seen:
    /// until something sent after the reduction is acknowledged, the peer cannot know of it.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        flags: Flags,
        snd_una: StreamOffset,
        snd_nxt: StreamOffset,
    ) -> bool {
        if !self.agreed || !flags.contains(Flags::ECE) || snd_una <= self.reduced_until {
            return false;
        }
        self.on_reduction(snd_nxt);
        true
    }

    /// The window was reduced, for whatever reason: marks of the same window ask for nothing more.
    pub(crate) fn on_reduction(&mut self, snd_nxt: StreamOffset) {
        self.reduced_until = snd_nxt;
        self.confirm = self.agreed;
    }

    /// Flags for a segment that leaves.
    #[inline]
    pub(crate) fn flags(&mut self, new_data: bool) -> Flags {
        let mut flags = Flags::default();
        if self.echo {
            flags = flags.with(Flags::ECE);
        }
        if new_data && self.confirm {
            self.confirm = false;
            flags = flags.with(Flags::CWR);
        }
        flags
    }
}
