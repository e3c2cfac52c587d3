//! What the search prints.

use crate::judge::FLAGS;
use crate::paths::CONTROLLERS;
use crate::verdict::Verdict;

/// Prints a flagged path: a scenario file whose first lines, comments, say what was found.
pub(crate) fn print(verdict: &Verdict) {
    let Verdict {
        path,
        comparison,
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
    let [tested, compared] = comparison.names();
    println!(
        "# ---- path {}, seed {seed}: {} ({:?}, {}; {})\n{}{}{}{}",
        path.number,
        names.join(", "),
        path.work,
        path.congestion,
        path.faults.join(" "),
        reasons.concat(),
        tack.line(tested),
        plain.line(compared),
        path.toml.replacen(
            &format!("seed = {}\n", path.number),
            &format!("seed = {seed}\n"),
            1
        ),
    );
}

/// Prints how often each flag was raised, by congestion control, and on which paths; then those
/// that have a reason.
pub(crate) fn print_table(verdicts: &[&Verdict]) {
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
        if verdicts.iter().any(|verdict| has_reason(verdict)) {
            print_row(&format!("{flag}, explained"), verdicts, has_reason);
        }
    }
}

fn print_row(name: &str, verdicts: &[&Verdict], of: impl Fn(&Verdict) -> bool) {
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
