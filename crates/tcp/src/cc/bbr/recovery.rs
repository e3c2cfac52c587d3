//! Loss episodes: one round of packet conservation, then growth again; the window from before comes
//! back.

use super::super::Ack;
use super::round::Round;

/// The state of loss recovery, in the order of severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Episode {
    Open,
    FastRecovery,
    Timeout,
}

/// What an episode demands of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Window {
    /// Exactly this, for now.
    Conserve(u64),
    /// This, and from there the usual growth.
    Grow(u64),
}

/// What is remembered across an episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// What the sender says.
    episode: Episode,
    /// What the window already reflects.
    applied: Episode,
    /// In the first round of fast recovery what leaves is what was delivered.
    conserving: bool,
    /// The last good window, bytes.
    prior_cwnd: u64,
    /// The peer acknowledges a few times a round trip. What such an acknowledgement delivers
    /// leaves again only by and by, paced: a loss told just after it finds little in flight,
    /// and to conserve that would take the window down to the trough between two
    /// acknowledgements, episode after episode. Pacing at the measured rate conserves enough.
    sparse: bool,
}

impl Recovery {
    pub(super) const fn new() -> Self {
        Self {
            episode: Episode::Open,
            applied: Episode::Open,
            conserving: false,
            prior_cwnd: 0,
            sparse: false,
        }
    }

    /// Whether acknowledgements come by the clock instead of with the data.
    pub(super) fn set_sparse(&mut self, sparse: bool) {
        self.sparse = sparse;
    }

    /// The window from before the episode, or before ProbeRTT.
    pub(super) const fn prior_cwnd(&self) -> u64 {
        self.prior_cwnd
    }

    /// Notes the window before something temporary cuts it; `cut` says that something has cut it
    /// already.
    pub(super) fn save(&mut self, cwnd: u64, cut: bool) {
        self.prior_cwnd = if self.applied == Episode::Open && !cut {
            cwnd
        } else {
            self.prior_cwnd.max(cwnd)
        };
    }

    /// Fast recovery begins: the next acknowledgement changes the window.
    pub(super) fn enter_fast_recovery(&mut self) {
        self.episode = Episode::FastRecovery;
    }

    pub(super) fn enter_timeout(&mut self) {
        self.episode = Episode::Timeout;
        self.applied = Episode::Timeout;
    }

    pub(super) fn close(&mut self) {
        self.episode = Episode::Open;
    }

    /// Packet conservation lasts a round.
    pub(super) fn on_round(&mut self) {
        self.conserving = false;
    }

    /// The window after the episode closed, if that was not seen to yet.
    pub(super) fn restore(&mut self, cwnd: u64) -> u64 {
        if self.episode != Episode::Open || self.applied == Episode::Open {
            return cwnd;
        }
        self.applied = Episode::Open;
        self.conserving = false;
        cwnd.max(self.prior_cwnd)
    }

    /// Applies to `cwnd` what the episode demands on an acknowledgement that delivered data.
    pub(super) fn window(&mut self, ack: &Ack, cwnd: u64, mss: u64, round: &mut Round) -> Window {
        // What is delivered may release twice as much: take off the losses here, grow back later.
        let mut cwnd = cwnd.saturating_sub(ack.lost).max(mss);
        let conserved = ack.bytes_in_flight.saturating_add(ack.delivered);
        let begins = self.episode == Episode::FastRecovery && self.applied != Episode::FastRecovery;
        if begins && !self.sparse {
            self.conserving = true;
            round.restart(ack.total_delivered);
            // Window that was not in use does not come back in a burst.
            cwnd = conserved;
        } else {
            cwnd = self.restore(cwnd);
        }
        self.applied = self.episode;
        if self.conserving {
            Window::Conserve(cwnd.max(conserved))
        } else {
            Window::Grow(cwnd)
        }
    }
}
