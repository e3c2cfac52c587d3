//! What is found on a path: flags that stand, and flags that have a reason.

use crate::figures::Figures;
use crate::judge::{Flag, judge};
use crate::measure::{self, Comparison};
use crate::neighbourhood::coincidence;
use crate::paths::Path;
use crate::reasons::reason;
use crate::runs::{FIRST, fresh, happens_to, seed};

/// A path that was run.
pub(crate) struct Verdict {
    pub(crate) path: Path,
    /// What was compared: `tack` below is what was tested.
    pub(crate) comparison: Comparison,
    /// The seed that shows it; the first of several where they do together.
    pub(crate) seed: u64,
    pub(crate) flags: Vec<Flag>,
    /// Flags that have a reason, and the reason.
    pub(crate) explained: Vec<(Flag, String)>,
    pub(crate) tack: Figures,
    pub(crate) plain: Figures,
}

/// Compares two variants on a path: with one seed, with several where the first one raises a flag,
/// and with others where those do. What then stands is explained, if it can be.
pub(crate) fn search(path: Path, comparison: Comparison) -> Verdict {
    let both = comparison.variants();
    let mut runs: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    for nth in 0..FIRST {
        let seed = seed(&path, nth);
        let [mut tack, mut plain] = both
            .each_ref()
            .map(|variant| Figures::measure(&path, variant, seed));
        let mut flags = judge(&path, &tack, &plain);
        if flags.contains(&Flag::Cpu) {
            [tack.processor, plain.processor] = both
                .each_ref()
                .map(|variant| measure::processor_without_checks(&path, variant, seed));
            flags = judge(&path, &tack, &plain);
        }
        let certain: Vec<_> = flags
            .iter()
            .filter(|flag| flag.is_certain(&path, &tack, &plain))
            .collect();
        let is_chance = certain == [&Flag::Hang]
            && (happens_to(&path, &both, &tack)
                || comparison != Comparison::AccurateEcn
                    && coincidence(&path, comparison, Flag::Hang, &tack).is_some());
        let is_certain = !certain.is_empty() && !is_chance;
        if nth == 0 && flags.is_empty() || is_certain {
            return Verdict {
                path,
                comparison,
                seed,
                flags,
                explained: Vec::new(),
                tack,
                plain,
            };
        }
        runs[0].push(tack);
        runs[1].push(plain);
    }
    let mut nth = 0;
    let [mut tack, mut plain] = runs.map(|runs| Figures::median(&runs));
    let mut flags = judge(&path, &tack, &plain);
    // The processor's time is that of the runs without checks, whatever else is flagged.
    let is_expensive = flags.contains(&Flag::Cpu);
    if !flags.is_empty() && flags != [Flag::Cpu] {
        nth = FIRST;
        [tack, plain] = both.each_ref().map(|variant| fresh(&path, variant));
        flags = judge(&path, &tack, &plain);
        flags.retain(|flag| *flag != Flag::Cpu);
        if is_expensive {
            flags.push(Flag::Cpu);
        }
    }
    let mut explained = Vec::new();
    flags.retain(
        |flag| match reason(&path, comparison, *flag, &tack, &plain) {
            Some(reason) => {
                explained.push((*flag, reason));
                false
            }
            None => true,
        },
    );
    Verdict {
        seed: seed(&path, nth),
        path,
        comparison,
        flags,
        explained,
        tack,
        plain,
    }
}
