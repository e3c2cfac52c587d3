//! Evidence against an episode: was everything that was retransmitted in it already there?
//!
//! Four kinds of evidence: timestamps (Eifel, RFC 3522: the first acknowledgement after a
//! retransmission echoes a time before it), DSACK (RFC 3708: every retransmission is reported as a
//! duplicate), originals that arrive after a timeout declared them lost (F-RTO, RFC 5682), and an
//! acknowledgement that comes sooner after the retransmission than any round trip took.

use core::ops::Range;

use tack_base::{Instant, StreamOffset};

/// Evidence about the running episode, and about a timeout for a round trip after its end.
#[derive(Debug, Default)]
pub(crate) struct EpisodeEvidence {
    episode: Option<Episode>,
    /// A timeout whose flight is acknowledged, and SND.NXT at that moment: a report that its
    /// retransmissions were duplicates may follow on the heels of the acknowledgement.
    ended: Option<(Episode, StreamOffset)>,
    /// Something arrived twice that had left once. Then a duplicate of a retransmission does not
    /// show that the original had arrived (RFC 3708 §2).
    network_duplicates: bool,
}

#[derive(Clone, Copy, Debug)]
struct Episode {
    /// SND.UNA when it began: duplicates below it belong to older ones.
    marker: StreamOffset,
    /// SND.NXT when it began.
    until: StreamOffset,
    /// Retransmissions not yet reported as duplicates.
    unreported: u64,
    retransmitted: bool,
    /// When the first retransmission left.
    first_retransmission: Option<Instant>,
    /// When what starts at `marker` left again for the first time.
    oldest_retransmission: Option<Instant>,
    /// A retransmission of an earlier episode was still out when it began: what arrives may answer
    /// that one.
    confused: bool,
    /// Began by a timeout, and originals may still be evidence (F-RTO).
    originals_count: bool,
}

impl EpisodeEvidence {
    /// An episode begins, about what was sent and not acknowledged. `probe` tells when a tail loss
    /// probe repeated a segment of it, `lone` that it is a single segment, `confused` that other
    /// retransmissions of an earlier episode are still out, `originals_count` is set for timeouts
    /// outside any other episode.
    pub(crate) fn begin(
        &mut self,
        sent: Range<StreamOffset>,
        probe: Option<Instant>,
        lone: bool,
        confused: bool,
        originals_count: bool,
    ) {
        // A timeout within fast recovery continues its episode's evidence.
        if let Some(episode) = &mut self.episode {
            episode.until = sent.end;
            episode.originals_count = originals_count;
            return;
        }
        self.ended = None;
        self.episode = Some(Episode {
            marker: sent.start,
            until: sent.end,
            // The probe may be reported as a duplicate too, or be what an acknowledgement answers.
            unreported: u64::from(probe.is_some()),
            retransmitted: false,
            first_retransmission: probe,
            oldest_retransmission: probe.filter(|_| lone),
            confused,
            originals_count: originals_count && !confused,
        });
    }

    /// The segment at `start` was retransmitted.
    pub(crate) fn on_retransmit(&mut self, now: Instant, start: StreamOffset) {
        if let Some(episode) = &mut self.episode {
            episode.unreported += 1;
            episode.retransmitted = true;
            episode.first_retransmission.get_or_insert(now);
            if start == episode.marker {
                episode.oldest_retransmission.get_or_insert(now);
            }
        }
    }

    /// A DSACK reported that positions from `start` on arrived twice, after a retransmission.
    pub(crate) fn on_duplicate(&mut self, start: StreamOffset) {
        let ended = self.ended.as_mut().map(|(episode, _)| episode);
        if let Some(episode) = self.episode.as_mut().or(ended)
            && (episode.marker..episode.until).contains(&start)
        {
            episode.unreported = episode.unreported.saturating_sub(1);
        }
    }

    /// A DSACK reported something that had left once.
    pub(crate) fn on_network_duplicate(&mut self) {
        self.network_duplicates = true;
    }

    /// True when every retransmission of the episode turned out needless by DSACK.
    pub(crate) fn is_every_retransmission_duplicate(&self) -> bool {
        self.episode
            .is_some_and(Episode::is_every_retransmission_duplicate)
    }

    /// True when every retransmission of a timeout turned out needless by DSACK after its flight
    /// was acknowledged.
    pub(crate) fn is_ended_timeout_false(&self) -> bool {
        !self.network_duplicates
            && self
                .ended
                .is_some_and(|(episode, _)| episode.is_every_retransmission_duplicate())
    }

    /// True when nothing was retransmitted in the episode, and nothing of an earlier one is out.
    pub(crate) fn is_untouched(&self) -> bool {
        self.episode
            .is_some_and(|episode| !episode.confused && !episode.retransmitted)
    }

    /// When the first retransmission left, for comparison with an echoed timestamp.
    pub(crate) fn first_retransmission(&self) -> Option<Instant> {
        self.episode
            .filter(|episode| !episode.confused)
            .and_then(|episode| episode.first_retransmission)
    }

    /// When the segment that was oldest as the episode began left again for the first time.
    pub(crate) fn oldest_retransmission(&self) -> Option<Instant> {
        self.episode
            .filter(|episode| !episode.confused)
            .and_then(|episode| episode.oldest_retransmission)
    }

    /// True when the arrival of originals after the timeout would prove it false.
    pub(crate) fn originals_count(&self) -> bool {
        self.episode.is_some_and(|episode| episode.originals_count)
    }

    /// Originals are not evidence any more: the timeout was real, or further retransmissions
    /// confuse it.
    pub(crate) fn dismiss_originals(&mut self) {
        if let Some(episode) = &mut self.episode {
            episode.originals_count = false;
        }
    }

    /// A timeout whose flight is acknowledged may still turn out to be false.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.ended.is_some()
    }

    /// An episode with retransmissions is open to be undone.
    pub(crate) fn is_open(&self) -> bool {
        self.episode.is_some()
    }

    /// The flight of the episode is acknowledged, up to `snd_una`, while `snd_nxt` is the end of
    /// what was sent. After a timeout, evidence counts until that is acknowledged too.
    pub(crate) fn end_acknowledged(&mut self, timeout: bool, snd_nxt: StreamOffset) {
        let episode = self.episode.take().filter(|_| timeout);
        self.ended = episode.map(|episode| (episode, snd_nxt));
    }

    /// The cumulative acknowledgement advanced to `snd_una`.
    pub(crate) fn on_progress(&mut self, snd_una: StreamOffset) {
        if self.ended.is_some_and(|(_, until)| snd_una > until) {
            self.ended = None;
        }
    }

    /// The episode was undone.
    pub(crate) fn end(&mut self) {
        self.episode = None;
        self.ended = None;
    }
}

impl Episode {
    fn is_every_retransmission_duplicate(self) -> bool {
        !self.confused && self.retransmitted && self.unreported == 0
    }
}
