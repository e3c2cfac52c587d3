//! What the search prints.

use crate::Verdict;
use crate::figures::{Figures, PLAIN};
use crate::judge::{FLAGS, known};
use crate::paths::CONTROLLERS;

/// Prints a flagged path: a scenario file whose first lines, comments, say what was found.
pub(crate) fn print(verdict: &Verdict) {
    let Verdict {
        path,
        seed,
        flags,
        tack,
        plain,
    } = verdict;
    let names: Vec<_> = flags.iter().map(ToString::to_string).collect();
    for flag in flags {
        if let Some(why) = known(path.number, *flag) {
            println!("# known: path {}, {flag}: {why}", path.number);
        }
    }
    println!(
        "# ---- path {}, seed {seed}: {} ({:?}, {}; {})\n{}{}{}",
        path.number,
        names.join(" "),
        path.work,
        path.congestion,
        path.faults.join(" "),
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

/// Prints how often each flag was raised, by congestion control.
pub(crate) fn print_table(verdicts: &[Verdict]) {
    println!("# {} paths; flags by congestion control:", verdicts.len());
    print!("# {:<8}", "");
    CONTROLLERS.iter().for_each(|name| print!("{name:>10}"));
    println!("       all  paths");
    for flag in FLAGS {
        let raised: Vec<_> = verdicts
            .iter()
            .filter(|verdict| verdict.flags.contains(&flag))
            .collect();
        print!("# {flag:<8}");
        for name in CONTROLLERS {
            let of = raised
                .iter()
                .filter(|verdict| verdict.path.congestion == name);
            print!("{:>10}", of.count());
        }
        let numbers: Vec<_> = raised.iter().map(|verdict| verdict.path.number).collect();
        println!("{:>10}  {}", raised.len(), list(&numbers));
    }
}

/// Numbers as `TACK_SEARCH` takes them.
pub(crate) fn list(numbers: &[u64]) -> String {
    let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    texts.join(",")
}
