//! `tack demo`: a real file over emulated Wi-Fi, with delayed ACKs and with TACK, or with what else
//! is done about ACKs, side by side.

mod args;
mod content;
mod figures;
mod mechanism;
mod page;
mod setting;
mod table;
mod transfer;
mod virtual_run;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use tack_base::units::show_duration;
use tack_sim::Scenario;

use crate::exit::{Exit, Failure};
use crate::printer::with_stdout;
use crate::progress;
use crate::signals::Signals;
pub(crate) use args::DemoArgs;
use content::Content;
use figures::Outcome;
use mechanism::{Mechanism, radios};
use page::Page;
use setting::Setting;

/// The link unless another is chosen: the paper's 802.11n device, and a server 10 ms away.
const WIFI: &str = "tack-n";
const DELAY: Duration = Duration::from_millis(10);

/// The progress of one run.
const BAR: &str = "{prefix:24} {bar:32} {bytes}/{total_bytes}, {bytes_per_sec} ETA {eta}";

/// Runs everything, prints the table and writes the page.
pub(crate) async fn run(args: DemoArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    tokio::select! {
        outcome = demonstrate(args) => outcome,
        signal = signals.next() => Ok(signal),
    }
}

async fn demonstrate(mut args: DemoArgs) -> Result<Exit, Failure> {
    if args.links.scenario.is_none() {
        args.links.wifi.get_or_insert_with(|| WIFI.into());
        args.links.delay.get_or_insert(DELAY);
    }
    let mechanisms = &args.compare.0;
    let links = if mechanisms.iter().any(Mechanism::turns_hack_on) {
        args.links.scenario_with_hosts_of_hack()?
    } else {
        args.links.scenario()?
    };
    args.trust.prepare();
    let mut content = Content::open(args.file.as_ref())?;
    // What fits into the time is known beforehand: virtual time is much faster.
    let (most, time) = (content.most(), args.time);
    let mut fits = most;
    for mechanism in mechanisms {
        let links = mechanism.links(&links);
        let scenario = virtual_run::scenario(&links, &args.congestion, &mechanism.ack, most, time)?;
        let seed = links.seed;
        fits = fits.min(
            blocking(move || virtual_run::run(&scenario, seed))
                .await?
                .delivered,
        );
    }
    content.fit(fits);
    let hashed = content.clone();
    let hash = blocking(move || {
        let hash = hashed.hash();
        hash.map_err(|error| Failure::failed("cannot read the file", error))
    })
    .await?;
    let setting = Setting {
        link: describe(&links),
        content: content.describe(),
        congestion: args.congestion.to_string(),
        bytes: content.bytes,
        hash: hash.to_string(),
        mechanisms: mechanisms.iter().map(ToString::to_string).collect(),
    };
    if !args.json {
        eprintln!("{}\n{}", setting.link, setting.content);
    }
    let mut outcomes = Vec::new();
    for seed in (links.seed..).take(usize::from(args.seeds)) {
        for mechanism in mechanisms {
            let links = mechanism.links(&links);
            let ack = &mechanism.ack;
            // In virtual time a slow run may end; the real one is as long as it is.
            let limit = time * 10;
            let scenario =
                virtual_run::scenario(&links, &args.congestion, ack, content.bytes, limit)?;
            let virtual_run = blocking(move || virtual_run::run(&scenario, seed)).await?;
            let bar = progress::bar(Some(content.bytes), BAR);
            bar.set_prefix(format!("{mechanism}, seed {seed}"));
            let measured = transfer::run(&links, seed, &args.congestion, ack, &content, &bar).await;
            bar.finish_and_clear();
            let measured = measured?;
            let [ack_filter, hack] = radios(&links);
            outcomes.push(Outcome {
                mechanism: mechanism.to_string(),
                ack_filter,
                hack,
                ack: ack.to_string(),
                seed,
                verified: measured.hash == hash,
                measured: measured.figures,
                virtual_time: virtual_run.figures,
                lateness: measured.lateness,
                trust: measured.trust,
            });
        }
    }
    let path = write_page(args.report, &setting, &outcomes)?;
    let trusted = outcomes.iter().all(|outcome| outcome.trust.ok);
    with_stdout(|out| {
        if args.json {
            let json = serde_json::json!({
                "link": setting.link,
                "content": setting.content,
                "congestion": setting.congestion,
                "bytes": setting.bytes,
                "blake3": setting.hash,
                "runs": outcomes,
                "report": path.to_string_lossy(),
            });
            writeln!(out, "{json}")
        } else {
            let table = table::render(&setting, &outcomes);
            let advice = args.trust.advice().filter(|_| !trusted);
            let advice = advice.map_or(String::new(), |advice| format!("{advice}\n"));
            writeln!(out, "{table}{advice}report: {}", path.display())
        }
    })?;
    if let Some(wrong) = outcomes.iter().find(|outcome| !outcome.verified) {
        return Err(Failure::plain(format!(
            "the bytes received with {} are not the bytes sent",
            wrong.mechanism
        )));
    }
    Ok(args.trust.exit(trusted))
}

/// Runs what computes for long where it keeps nobody waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::failed("a run died", error))?
}

/// `tack-n: 802.11n at 300 Mbit/s, no neighbours, queue 1000 packets; server 20ms away there and
/// back`.
fn describe(links: &Scenario) -> String {
    let mut text = links.name.clone();
    if let Some(wlan) = &links.wlan {
        let contenders = match wlan.world.contenders.stations {
            0 => "no neighbours".into(),
            count if wlan.world.contenders.are_saturated() => {
                format!("{count} saturated neighbours")
            }
            count => format!("{count} neighbours with their own traffic"),
        };
        text.push_str(&format!(
            ": {} at {}, {contenders}, queue {} packets",
            wlan.standard.name(),
            wlan.world.mac.data_mode.rate(),
            wlan.world.ap_queue,
        ));
    }
    let [filter, hack] = radios(links);
    for (what, choice) in [("ACK filter", filter), ("TCP/HACK", hack)] {
        if choice != "off" {
            text.push_str(&format!(", {what} {choice}"));
        }
    }
    let [there, back] =
        [&links.wired.forward, &links.wired.reverse].map(|path| path.bottleneck.delay);
    text.push_str(&format!(
        "; server {} away there and back",
        show_duration(there + back)
    ));
    text
}

/// Writes the page to `wanted`, or to a new file among the temporary ones.
fn write_page(
    wanted: Option<PathBuf>,
    setting: &Setting,
    outcomes: &[Outcome],
) -> Result<PathBuf, Failure> {
    let page = Page::new(setting, outcomes).to_html();
    let cannot = |error: std::io::Error| Failure::failed("cannot write the report", error);
    if let Some(path) = wanted {
        std::fs::write(&path, page).map_err(cannot)?;
        return Ok(path);
    }
    let mut file = tempfile::Builder::new()
        .prefix("tack-demo-")
        .suffix(".html")
        .tempfile()
        .map_err(cannot)?;
    file.write_all(page.as_bytes()).map_err(cannot)?;
    let (_, path) = file.keep().map_err(|error| cannot(error.error))?;
    Ok(path)
}
