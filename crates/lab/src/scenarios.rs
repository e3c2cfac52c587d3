//! The scenario files of the figures, which travel in the program. They are those of the folder
//! `scenarios`, so that `tack sim` runs the same.

use std::io;
use std::path::Path;

/// A scenario file, and the files that it names.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it lies below `scenarios`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Names and texts of files that lie beside it.
    pub files: &'static [(&'static str, &'static str)],
}

impl Source {
    /// Writes the scenario, where it names files, below `folder`, and these beside it.
    pub(crate) fn place<'a>(
        &self,
        folder: &Path,
        files: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> io::Result<()> {
        let files: Vec<(&str, &str)> = files.collect();
        if files.is_empty() {
            return Ok(());
        }
        let scenario = folder.join(self.name);
        let beside = scenario.parent().unwrap_or(folder);
        std::fs::create_dir_all(beside)?;
        let files = files
            .into_iter()
            .map(|(name, text)| (beside.join(name), text));
        let scenario = std::iter::once((scenario.clone(), self.text));
        files.chain(scenario).try_for_each(|(path, text)| {
            // What is there already may be being read by another run.
            if std::fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                return Ok(());
            }
            std::fs::write(path, text)
        })
    }
}

macro_rules! sources {
    ($($constant:ident = $name:literal $(with $folder:literal: $($file:literal),+)?;)*) => {
        $(pub(crate) static $constant: Source = Source {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name)),
            files: &[$($((
                $file,
                include_str!(concat!("../../../scenarios/", $folder, "/", $file)),
            )),+)?],
        };)*
    };
}

sources! {
    FREQUENCY = "tack/frequency.toml";
    LOSSY_BOTH_WAYS = "tack/lossy-both-ways.toml";
    LOSS_IACK = "tack/loss-iack.toml";
    ROUND_TRIP = "tack/round-trip.toml";
    FRIENDLINESS = "tack/friendliness.toml";
    RATE_STEP = "tack/rate-step.toml" with "tack": "rate-step.trace";
    WLAN_UDP = "lab/wlan-udp.toml";
    WLAN_TCP = "lab/wlan-tcp.toml";
    TWO_HOPS = "lab/two-hops.toml";
    PROJECTION = "lab/projection.toml";
    RTT_FAIRNESS = "lab/rtt-fairness.toml";
    TRAFFIC_CHANGE = "lab/traffic-change.toml";
    UPLOADS = "lab/uploads.toml";
    MECHANISMS = "lab/mechanisms.toml";
    HACK_CLIENTS = "lab/hack-clients.toml";
    HACK_PROTOTYPE = "lab/hack-prototype.toml";
    WAN = "lab/wan.toml" with "lab":
        "poisson-0.57.trace", "poisson-2.64.trace", "poisson-3.04.trace", "one-in-100ms.trace", "ten-in-200ms.trace";
}
