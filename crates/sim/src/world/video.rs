//! Video: the source of frames, and what a player makes of those that arrive.

use std::collections::VecDeque;
use std::time::Duration;

use tack_base::Instant;
use tack_base::random::RandomStream;

use crate::report::VideoReport;
use crate::scenario::Video;

const SECOND: u64 = 1_000_000_000;

/// When frame `number` is due if frame zero is due at `first`; exact to the nanosecond however many
/// there are.
fn due(first: Instant, number: u64, fps: u32) -> Instant {
    let offset = u128::from(number) * u128::from(SECOND) / u128::from(fps);
    first + Duration::from_nanos(u64::try_from(offset).unwrap_or(u64::MAX))
}

/// Makes frames of one size for a scene, then of another: sizes are uniformly distributed about the
/// mean up to the peak, scenes last from half a second to one and a half.
#[derive(Clone, Debug)]
pub(super) struct Source {
    video: Video,
    random: RandomStream,
    begun: Option<Instant>,
    made: u64,
    made_at_warmup: u64,
    scene_ends: Instant,
    frame: u64,
    stopped: bool,
}

impl Source {
    pub(super) fn new(video: Video, seed: u64, flow: usize) -> Self {
        Self {
            video,
            random: RandomStream::new(seed, "video", flow as u64),
            begun: None,
            made: 0,
            made_at_warmup: 0,
            scene_ends: Instant::ZERO,
            frame: 0,
            stopped: false,
        }
    }

    /// Nothing was made yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.begun.is_none()
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// The next frame when it is time for it: its bytes. And when to ask again; never, after the
    /// end.
    pub(super) fn make(&mut self, now: Instant) -> (Option<u64>, Option<Instant>) {
        if self.stopped {
            return (None, None);
        }
        let first = *self.begun.get_or_insert(now);
        let next = due(first, self.made, self.video.fps);
        if now < next {
            return (None, Some(next));
        }
        if now >= self.scene_ends {
            let (mean, peak) = (
                self.video.rate.bits_per_sec(),
                self.video.peak.bits_per_sec(),
            );
            let level = 2 * mean - peak + self.random.below(2 * (peak - mean) + 1);
            self.frame = (level / 8 / u64::from(self.video.fps)).max(1);
            self.scene_ends = now + Duration::from_nanos(SECOND / 2 + self.random.below(SECOND));
        }
        self.made += 1;
        (
            Some(self.frame),
            Some(due(first, self.made, self.video.fps)),
        )
    }

    pub(super) fn end_warmup(&mut self) {
        self.made_at_warmup = self.made;
    }

    fn measured(&self) -> u64 {
        self.made - self.made_at_warmup
    }
}

/// What the player does.
#[derive(Clone, Copy, Debug)]
enum Playback {
    /// Collects frames since then.
    Buffering(Instant),
    /// Shows frames, one after the other; this one was due then.
    Playing { first: u64, at: Instant },
}

/// A player of a reliable stream: what is late it waits for, and everything after that is late with
/// it.
#[derive(Clone, Debug)]
pub(super) struct Player {
    video: Video,
    /// Where in the stream frames end that are not complete.
    ends: VecDeque<u64>,
    made: u64,
    /// Frames that are here, and that were shown.
    complete: u64,
    shown: u64,
    shown_at_warmup: u64,
    /// When the source began, and when the first frame was shown.
    source_began: Option<Instant>,
    began: Option<Instant>,
    playback: Playback,
    rebuffering: Duration,
    rebufferings: u64,
    late: u64,
    ended: bool,
}

impl Player {
    pub(super) fn new(video: Video) -> Self {
        Self {
            video,
            ends: VecDeque::new(),
            made: 0,
            complete: 0,
            shown: 0,
            shown_at_warmup: 0,
            source_began: None,
            began: None,
            playback: Playback::Buffering(Instant::ZERO),
            rebuffering: Duration::ZERO,
            rebufferings: 0,
            late: 0,
            ended: false,
        }
    }

    /// A frame was made; it ends there in the stream.
    pub(super) fn expect(&mut self, now: Instant, end: u64) {
        self.source_began.get_or_insert(now);
        self.ends.push_back(end);
        self.made += 1;
    }

    /// So many bytes of the stream are here, and its end.
    pub(super) fn receive(&mut self, now: Instant, read: u64, ended: bool) {
        self.advance(now);
        while self.ends.front().is_some_and(|end| *end <= read) {
            self.ends.pop_front();
            let on_time = self
                .began
                .is_none_or(|began| now <= due(began, self.complete, self.video.fps));
            self.late += u64::from(!on_time);
            self.complete += 1;
        }
        self.ended = ended;
        let enough = self.video.buffer.as_secs_f64() * f64::from(self.video.fps);
        let enough = (enough.ceil() as u64).max(1);
        if let Playback::Buffering(since) = self.playback
            && (self.complete - self.shown >= enough || ended)
        {
            if self.began.is_some() {
                self.rebuffering += now.saturating_since(since);
            }
            self.began.get_or_insert(now);
            self.playback = Playback::Playing {
                first: self.shown,
                at: now,
            };
            self.advance(now);
        }
    }

    /// Shows what was due until `now`, or stops because it is not there.
    fn advance(&mut self, now: Instant) {
        let Playback::Playing { first, at } = self.playback else {
            return;
        };
        loop {
            let due = due(at, self.shown - first, self.video.fps);
            if due > now {
                return;
            }
            if self.shown == self.complete {
                if !self.ended {
                    self.playback = Playback::Buffering(due);
                    self.rebufferings += 1;
                }
                return;
            }
            self.shown += 1;
        }
    }

    pub(super) fn end_warmup(&mut self, now: Instant) {
        self.advance(now);
        if let Playback::Buffering(since) = &mut self.playback {
            *since = now;
        }
        self.shown_at_warmup = self.shown;
        self.rebuffering = Duration::ZERO;
        self.rebufferings = 0;
        self.late = 0;
    }

    pub(super) fn report(&self, source: &Source, now: Instant) -> VideoReport {
        let mut player = self.clone();
        player.advance(now);
        if player.ended {
            // The rest is here, and will be shown.
            player.shown = player.complete;
        } else if let (Playback::Buffering(since), Some(_)) = (player.playback, player.began) {
            player.rebuffering += now.saturating_since(since);
        }
        let shown = player.shown - player.shown_at_warmup;
        let (played, stopped) = (
            shown as f64 / f64::from(player.video.fps),
            player.rebuffering.as_secs_f64(),
        );
        let missing = player.began.map_or(0, |began| {
            let overdue = |number: &u64| due(began, *number, player.video.fps) < now;
            (player.complete..player.made).take_while(overdue).count() as u64
        });
        VideoReport {
            frames: source.measured(),
            frames_late: player.late + missing,
            startup_s: player
                .began
                .zip(player.source_began)
                .map(|(shown, made)| shown.saturating_since(made).as_secs_f64()),
            rebufferings: Some(player.rebufferings),
            rebuffering_share: Some(match player.began {
                None => 1.0,
                Some(_) if played + stopped > 0.0 => stopped / (played + stopped),
                Some(_) => 0.0,
            }),
            macroblocking_share: None,
        }
    }
}

/// A frame on its way as datagrams.
#[derive(Clone, Debug)]
struct Parts {
    number: u64,
    /// The first of its datagrams.
    first: u64,
    here: Vec<bool>,
}

/// Frames in datagrams, and a player that shows each at its time with whatever is there of it.
#[derive(Clone, Debug)]
pub(super) struct Datagrams {
    pub(super) source: Source,
    /// Frames whose time has not come, in order.
    open: VecDeque<Parts>,
    /// The first datagram that came was of this frame, due then.
    clock: Option<(u64, Instant)>,
    source_began: Option<Instant>,
    made: u64,
    /// Datagrams made, and how many of them have not left.
    datagrams: u64,
    left: u64,
    judged: u64,
    damaged: u64,
}

impl Datagrams {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            open: VecDeque::new(),
            clock: None,
            source_began: None,
            made: 0,
            datagrams: 0,
            left: 0,
            judged: 0,
            damaged: 0,
        }
    }

    /// Makes the frames whose time has come, of datagrams with so many bytes. True when a datagram
    /// may leave; otherwise the time to ask again.
    pub(super) fn make(&mut self, now: Instant, payload: u64) -> (bool, Option<Instant>) {
        loop {
            let (frame, next) = self.source.make(now);
            let Some(bytes) = frame else {
                return (self.left > 0, next);
            };
            self.source_began.get_or_insert(now);
            let count = bytes.div_ceil(payload);
            self.open.push_back(Parts {
                number: self.made,
                first: self.datagrams,
                here: vec![false; count as usize],
            });
            self.made += 1;
            self.datagrams += count;
            self.left += count;
        }
    }

    /// A datagram left. True when more of what was made waits.
    pub(super) fn leave(&mut self) -> bool {
        self.left -= 1;
        self.left > 0
    }

    /// This datagram came.
    pub(super) fn receive(&mut self, now: Instant, datagram: u64) {
        self.judge(now);
        let at = self.open.partition_point(|frame| frame.first <= datagram);
        let Some(frame) = at.checked_sub(1).and_then(|at| self.open.get_mut(at)) else {
            return;
        };
        self.clock
            .get_or_insert((frame.number, now + self.source.video.buffer));
        if let Some(here) = frame.here.get_mut((datagram - frame.first) as usize) {
            *here = true;
        }
    }

    /// Shows the frames whose time has come.
    fn judge(&mut self, now: Instant) {
        let Some((first, at)) = self.clock else {
            return;
        };
        while let Some(frame) = self.open.front() {
            // Frames before the first of which anything came were never there.
            let due = due(
                at,
                frame.number.saturating_sub(first),
                self.source.video.fps,
            );
            if due > now && frame.number >= first {
                return;
            }
            self.judged += 1;
            self.damaged += u64::from(frame.here.contains(&false));
            self.open.pop_front();
        }
    }

    pub(super) fn end_warmup(&mut self, now: Instant) {
        self.judge(now);
        self.source.end_warmup();
        (self.judged, self.damaged) = (0, 0);
    }

    pub(super) fn report(&self, now: Instant) -> VideoReport {
        let mut player = self.clone();
        player.judge(now);
        if player.clock.is_none() {
            // Nothing ever came.
            player.judged = player.open.len() as u64;
            player.damaged = player.judged;
        }
        VideoReport {
            frames: player.source.measured(),
            frames_late: player.damaged,
            startup_s: player
                .clock
                .zip(player.source_began)
                .map(|((_, at), made)| at.saturating_since(made).as_secs_f64()),
            rebufferings: None,
            rebuffering_share: None,
            macroblocking_share: Some(if player.judged == 0 {
                0.0
            } else {
                player.damaged as f64 / player.judged as f64
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn video(buffer: u64) -> Video {
        Video {
            fps: 100,
            buffer: Duration::from_millis(buffer),
            ..Video::default()
        }
    }

    #[test]
    fn sizes_have_the_mean_and_keep_below_the_peak() {
        let mut source = Source::new(Video::default(), 1, 0);
        let (mut now, mut bytes, mut largest) = (ms(5), 0, 0);
        for number in 0..60_000 {
            assert_eq!(now, due(ms(5), number, 60));
            let (frame, next) = source.make(now);
            (bytes, largest) = (bytes + frame.unwrap(), largest.max(frame.unwrap()));
            assert_eq!(source.make(now).0, None, "one at a time");
            now = next.unwrap();
        }
        let rate = bytes as f64 * 8.0 / 1_000.0;
        assert!((90e6..110e6).contains(&rate), "{rate}");
        assert!(
            (190e6..=200e6).contains(&(largest as f64 * 480.0)),
            "{largest}"
        );
        source.stop();
        assert_eq!(source.make(now), (None, None));
    }

    #[test]
    fn a_player_stops_for_what_is_late_and_goes_on_with_a_buffer() {
        let mut source = Source::new(video(20), 1, 0);
        let mut player = Player::new(video(20));
        for frame in 0..10 {
            let now = ms(10 * frame);
            source.make(now);
            player.expect(now, 100 * (frame + 1));
        }
        // Two frames are enough to begin with, at 30 ms; the third is due at 50 and comes at 90,
        // with its successor.
        player.receive(ms(30), 250, false);
        player.receive(ms(80), 299, false);
        player.receive(ms(90), 400, false);
        let report = player.report(&source, ms(95));
        assert_eq!((report.frames, report.rebufferings), (10, Some(1)));
        // Frames 2 and 3 came after 50 and 60 ms, frames 4 to 6 have not come at 70 to 90 ms.
        assert_eq!((report.frames_late, report.startup_s), (5, Some(0.03)));
        // 40 ms without a picture; shown were two frames and, at 90, one.
        assert_eq!(report.rebuffering_share, Some(0.04 / 0.07));
        player.receive(ms(100), 1_000, true);
        let report = player.report(&source, ms(100));
        assert_eq!(report.rebuffering_share, Some(0.04 / 0.14));
    }

    #[test]
    fn datagrams_that_are_missing_at_their_time_damage_a_frame() {
        let mut frames = Datagrams::new(Source::new(video(20), 1, 0));
        for frame in 0..4 {
            let (ready, next) = frames.make(ms(10 * frame), 1_000);
            assert_eq!((ready, next), (true, Some(ms(10 * frame + 10))));
            let count = frames.left;
            let first = frames.datagrams - count;
            for datagram in first..first + count {
                // The second frame lacks a datagram, the third has one too late, the fourth one
                // twice.
                let missing = (1..=2).contains(&frame) && datagram == first + 3;
                if !missing {
                    frames.receive(ms(10 * frame + 5), datagram);
                    frames.receive(ms(10 * frame + 5), datagram);
                }
                frames.leave();
            }
            if frame == 2 {
                assert_eq!(frames.report(ms(40)).macroblocking_share, Some(0.5));
                let late = first + 3;
                let mut after = frames.clone();
                after.receive(ms(46), late);
                assert_eq!(after.report(ms(46)).frames_late, 2);
                frames.receive(ms(44), late);
            }
        }
        let report = frames.report(ms(100));
        assert_eq!((report.frames, report.frames_late), (4, 1));
        assert_eq!(report.macroblocking_share, Some(0.25));
    }
}
