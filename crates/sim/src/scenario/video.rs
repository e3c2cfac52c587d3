//! `app = "video:…"`: a source of frames, and a player that shows each at its time.

use std::time::Duration;

use tack_base::Rate;

use super::units;

/// A live video: frames at fixed times, larger in some scenes than in others.
///
/// The default is the UHD projection of the TACK paper's Figure 11: 60 frames a second, 100 Mbit/s
/// on average, 200 at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Video {
    /// Frames per second, 1 to 1,000.
    pub fps: u32,
    /// Mean rate.
    pub rate: Rate,
    /// Highest rate of a scene: from the mean rate to twice that.
    pub peak: Rate,
    /// The video that the player buffers before it shows the first frame, or the next one after it
    /// had to stop.
    pub buffer: Duration,
}

impl Default for Video {
    fn default() -> Self {
        Self {
            fps: 60,
            rate: Rate::from_bits_per_sec(100_000_000),
            peak: Rate::from_bits_per_sec(200_000_000),
            buffer: Duration::from_millis(100),
        }
    }
}

impl Video {
    /// What an error says about how to write it.
    pub(super) const FORM: &str = "write video or video:fps=60,rate=100Mbps,peak=200Mbps,buffer=100ms, \
        with fps from 1 to 1000, rate from 100kbps to 100Gbps, peak from rate to twice that, buffer up to 1min";

    /// Reads what follows `video:`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (mut video, mut peak) = (Self::default(), None);
        for setting in text.split(',').filter(|_| !text.is_empty()) {
            let (key, value) = setting.split_once('=')?;
            match key {
                "fps" => video.fps = value.parse().ok()?,
                "rate" => video.rate = units::rate(value)?,
                "peak" => peak = Some(units::rate(value)?),
                "buffer" => video.buffer = units::duration(value)?,
                _ => return None,
            }
        }
        let rate = video.rate.bits_per_sec();
        video.peak = peak.unwrap_or(Rate::from_bits_per_sec(2 * rate.min(u64::MAX / 2)));
        let right = (1..=1_000).contains(&video.fps)
            && (100_000..=100_000_000_000).contains(&rate)
            && (rate..=2 * rate).contains(&video.peak.bits_per_sec())
            && video.buffer <= Duration::from_secs(60);
        right.then_some(video)
    }
}
