//! What the search prints.

use crate::figures::Figures;
use crate::judge::FLAGS;
use crate::measure::PLAIN;
use crate::paths::CONTROLLERS;
use crate::runs::Verdict;

/// Prints a flagged path: a scenario file whose first lines, comments, say what was found.
pub(crate) fn print(verdict: &Verdict) {
    let Verdict {
        path,
        seed,
        flags,
        explained,
        tack,
        plain,
    } = verdict;
    let mut names: Vec<_> = flags.iter().map(ToString::to_string).collect();
    names.extend(
        explained
            .iter()
            .map(|(flag, _)| format!("explained {flag}")),
    );
    let reasons: Vec<_> = explained
        .iter()
        .map(|(flag, reason)| format!("# {flag}: {reason}\n"))
        .collect();
    println!(
        "# ---- path {}, seed {seed}: {} ({:?}, {}; {})\n{}{}{}{}",
        path.number,
        names.join(", "),
        path.work,
        path.congestion,
        path.faults.join(" "),
        reasons.concat(),
        line("tack", tack),
        line(PLAIN, plain),
        path.toml.replacen(
            &format!("seed = {}\n", path.number),
            &format!("seed = {seed}\n"),
            1
        ),
    );
}

fn line(name: &str, figures: &Figures) -> String {
    let broken = figures.broken.as_ref();
    let broken = broken.map_or_else(String::new, |what| format!("# {name:>9}: {what}\n"));
    format!(
        "{broken}# {name:>9}: {:.3} Mbit/s, {:.0} bytes in {:.3} s{}, {:.0} segments ({:.1} % again), {:.0} ACKs, {:.0} RTOs, \
         {:.0} answers, {:.2} still, {:.1} s without progress, {:.2} s of processor\n",
        figures.goodput / 1e6,
        figures.bytes,
        figures.completion,
        if figures.unfinished {
            " without end"
        } else {
            ""
        },
        figures.data,
        100.0 * figures.repeated_share(),
        figures.acks,
        figures.timeouts,
        figures.answers,
        figures.still,
        figures.no_progress,
        figures.processor,
    )
}

/// Prints how often each flag was raised, by congestion control, and on which paths; then those
/// that have a reason.
pub(crate) fn print_table(verdicts: &[Verdict]) {
    println!("# {} paths; flags by congestion control:", verdicts.len());
    print!("# {:<19}", "");
    CONTROLLERS.iter().for_each(|name| print!("{name:>10}"));
    println!("       all  paths");
    for flag in FLAGS {
        let raised = |verdict: &Verdict| verdict.flags.contains(&flag);
        print_row(&flag.to_string(), verdicts, raised);
    }
    for flag in FLAGS {
        let has_reason = |verdict: &Verdict| verdict.explained.iter().any(|(of, _)| *of == flag);
        if verdicts.iter().any(has_reason) {
            print_row(&format!("{flag}, explained"), verdicts, has_reason);
        }
    }
}

fn print_row(name: &str, verdicts: &[Verdict], of: impl Fn(&Verdict) -> bool) {
    let raised: Vec<_> = verdicts.iter().filter(|verdict| of(verdict)).collect();
    print!("# {name:<19}");
    for controller in CONTROLLERS {
        let of_it = raised
            .iter()
            .filter(|verdict| verdict.path.congestion == controller);
        print!("{:>10}", of_it.count());
    }
    let numbers: Vec<_> = raised.iter().map(|verdict| verdict.path.number).collect();
    println!("{:>10}  {}", raised.len(), list(&numbers));
}

/// Numbers as `TACK_SEARCH` takes them.
pub(crate) fn list(numbers: &[u64]) -> String {
    let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    texts.join(",")
}
