//! The names of entries that a receiver stored, on standard error (`--verbose`).

use std::path::Path;

use indicatif::{MultiProgress, ProgressDrawTarget};

use crate::transfer::names::printable;
use crate::volume::Volume;

/// Prints names above the progress bars.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    volume: Volume,
    pub(super) bars: MultiProgress,
}

impl Naming {
    pub(super) fn new(volume: Volume) -> Self {
        let target = match volume {
            Volume::Quiet => ProgressDrawTarget::hidden(),
            Volume::Normal | Volume::Verbose => ProgressDrawTarget::stderr(),
        };
        let bars = MultiProgress::with_draw_target(target);
        Self { volume, bars }
    }

    /// Names an entry, and what became of it, if that is not that it was stored.
    pub(super) fn name(&self, path: &Path, what: Option<&str>) {
        if self.volume == Volume::Verbose {
            let path = printable(&path.to_string_lossy());
            let what = what.map_or(String::new(), |what| format!(": {what}"));
            self.bars.suspend(|| eprintln!("tack: {path}{what}"));
        }
    }
}
