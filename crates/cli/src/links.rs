//! Which links: the options that `tack emulate` and `tack demo` have in common, as a scenario.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use tack_base::Rate;
use tack_base::units::{show_duration, show_rate};
use tack_sim::Scenario;
use tack_sim::scenario::{ACK_FILTERS, HACK_VARIANTS};

use crate::exit::Failure;

/// Generations of 802.11 and the devices of the TACK paper.
const KINDS: [&str; 10] = [
    "802.11b", "802.11a", "802.11g", "802.11n", "802.11ac", "802.11ax", "tack-b", "tack-g",
    "tack-n", "tack-ac",
];

/// Links without a file.
const PLAIN: &str = "[wlan]\n";

/// Their wired path, which is never the bottleneck, unless another is chosen.
const PLAIN_RATE: &str = "wired.rate=10Gbps";

/// Scenarios need a flow, which is not used here: one is added if there is none, and the first of
/// others is not changed in anything that matters.
const ANY_FLOW: &str = "flow.0.start=0s";

/// Stands for TCP/HACK being on.
const HACK: &str = "more-data";

/// The Wi-Fi link, and the wired path behind it.
#[derive(Clone, Debug, Args)]
pub(crate) struct LinkArgs {
    /// Kind of Wi-Fi: a generation of 802.11 at its fastest rate for one stream, or one of the
    /// TACK paper's devices (tack-…) [default: tack-n in a demo; an emulation needs one]
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(KINDS))]
    pub(crate) wifi: Option<String>,
    /// Scenario file whose [wlan] and [wired] tables describe the links; its flows and its
    /// duration do not count
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Change a key of the scenario: wlan.rate=300Mbps, wired.loss=0.01
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Seed of the random draws of the model [default: as the scenario has it, else 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Delay of the wired path behind the access point, one way [default: as the scenario has it,
    /// else 10ms in a demo and 1ms in an emulation]
    #[arg(long, value_name = "DURATION", value_parser = delay)]
    pub(crate) delay: Option<Duration>,
    /// Rate of that path: 100Mbps; short for --set wired.rate=… [default: as the scenario has it,
    /// else 10Gbps]
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "trace")]
    pub(crate) rate: Option<Rate>,
    /// Recorded rate of that path, a Mahimahi trace; short for --set wired.trace.file=…
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Share of the packets that that path loses, each way: 0.01 or 1%; short for --set
    /// wired.loss=… and wired.loss_reverse=… [default: as the scenario has it, else 0]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) loss: Option<f64>,
    /// Packets that the queue of each radio holds [default: as the scenario has it, else 1000]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) queue: Option<u32>,
    /// Saturated stations of a neighbouring network on the same channel [default: as the scenario
    /// has it, else 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=500))]
    pub(crate) contenders: Option<u16>,
    /// What drops TCP ACKs that wait in a queue of a radio when a newer one says as much; short
    /// for --set wlan.ack_filter=… [default: as the scenario has it, else off]
    #[arg(long, value_name = "MODE", value_parser = names(&ACK_FILTERS))]
    pub(crate) ack_filter: Option<String>,
    /// When TCP ACKs wait to travel inside ACKs of the link, compressed (TCP/HACK); short for
    /// --set wlan.hack=… [default: as the scenario has it, else off]
    #[arg(long, value_name = "VARIANT", value_parser = names(&HACK_VARIANTS))]
    pub(crate) hack: Option<String>,
}

/// The names of a table of choices.
fn names<T>(choices: &[(&'static str, T)]) -> PossibleValuesParser {
    choices
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .into()
}

impl LinkArgs {
    /// The links as a scenario. What `--set` says goes before the other options, and these before
    /// the file.
    pub(crate) fn scenario(&self) -> Result<Scenario, Failure> {
        let (name, text) = match &self.scenario {
            None => (self.wifi.clone().unwrap_or_default(), PLAIN.to_owned()),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::usage(format!("cannot read {}: {error}", path.display()))
                })?;
                (path.to_string_lossy().into_owned(), text)
            }
        };
        let settings = self.settings()?;
        let radios = self.radio_settings();
        if !radios.is_empty() {
            // They would make a [wlan] table where there is none.
            let others = settings.iter().filter(|setting| !radios.contains(setting));
            let others: Vec<_> = others.cloned().collect();
            if Scenario::from_toml(&name, &text, &others).is_ok_and(|wired| wired.wlan.is_none()) {
                return Err(Failure::usage(
                    "--ack-filter and --hack apply to queues of radios, but the scenario has no [wlan] table; choose a \
                     kind of Wi-Fi with --wifi",
                ));
            }
        }
        let mut scenario = Scenario::from_toml(&name, &text, &settings)
            .map_err(|error| Failure::usage(error.to_string()))?;
        if self.scenario.is_none() {
            // The dot in the kind's name does not begin an extension.
            scenario.name = name;
        }
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        if scenario.wlan.is_none() {
            return Err(Failure::usage(
                "the scenario has no [wlan] table; add one, or use --wifi instead of --scenario",
            ));
        }
        Ok(scenario)
    }

    /// The links for a comparison in which some networks have TCP/HACK turned on later: hosts hear
    /// of frames as they do by default with TCP/HACK, in all networks alike, unless a setting
    /// says how.
    pub(crate) fn scenario_with_hosts_of_hack(&mut self) -> Result<Scenario, Failure> {
        let mut scenario = self.scenario()?;
        let chosen = self.hack.replace(HACK.into());
        let with_hack = self.scenario();
        self.hack = chosen;
        if let (Some(wlan), Some(with_hack)) = (&mut scenario.wlan, with_hack?.wlan) {
            wlan.world.interrupt = with_hack.world.interrupt;
        }
        Ok(scenario)
    }

    /// What the radios do with acknowledgements.
    fn radio_settings(&self) -> Vec<String> {
        let filter = self.ack_filter.iter();
        let filter = filter.map(|mode| format!("wlan.ack_filter={mode}"));
        let hack = self.hack.iter();
        filter
            .chain(hack.map(|variant| format!("wlan.hack={variant}")))
            .collect()
    }

    fn settings(&self) -> Result<Vec<String>, Failure> {
        let is_plain = self.scenario.is_none();
        let plain = (is_plain && self.rate.is_none() && self.trace.is_none())
            .then(|| PLAIN_RATE.to_owned());
        let rate = self
            .rate
            .map(|rate| format!("wired.rate={}", show_rate(rate)));
        let trace = self.trace.as_ref().map(|path| {
            // Traces are looked for beside the scenario; this one is meant from here.
            let path = path.canonicalize().map_err(|error| {
                Failure::usage(format!("cannot read {}: {error}", path.display()))
            })?;
            Ok(format!("wired.trace.file={}", path.display()))
        });
        let trace = trace.transpose()?;
        // Keys of the path have a direction each.
        let loss = self.loss.map(|loss| format!("wired.loss={loss}"));
        let loss_back = self.loss.map(|loss| format!("wired.loss_reverse={loss}"));
        let wifi = self.wifi.as_ref().map(|kind| {
            let key = if kind.starts_with("tack-") {
                "preset"
            } else {
                "standard"
            };
            format!("wlan.{key}={kind}")
        });
        let delay = self
            .delay
            .map(|delay| format!("wired.delay={}", show_duration(delay)));
        let queue = self.queue.map(|packets| format!("wlan.queue={packets}p"));
        let contenders = self
            .contenders
            .map(|count| format!("wlan.contenders={count}"));
        let radios = self.radio_settings();
        let flow = Some(ANY_FLOW.to_owned());
        Ok([
            flow, plain, wifi, delay, rate, trace, loss, loss_back, queue, contenders,
        ]
        .into_iter()
        .flatten()
        .chain(radios)
        .chain(self.overrides.iter().cloned())
        .collect())
    }
}

/// With its unit: `--delay 20` may mean milliseconds, and bare numbers elsewhere are seconds.
fn delay(text: &str) -> Result<Duration, String> {
    tack_base::units::parse_duration(text).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<Rate, String> {
    match crate::values::rate(text)? {
        Rate::ZERO => Err("expected a rate above zero".into()),
        rate => Ok(rate),
    }
}

/// A probability, or a percentage.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text.trim(), 1.0),
    };
    match number.parse::<f64>().map(|number| number / unit) {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("expected a share such as 0.01 or 1%, got {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use tack_wlan::mac::discipline::AckFilter;
    use tack_wlan::mac::hack::Variant;
    use tack_wlan::world::HostInterrupt;

    use super::*;

    fn links() -> LinkArgs {
        LinkArgs {
            wifi: Some("802.11n".into()),
            scenario: None,
            overrides: Vec::new(),
            seed: None,
            delay: None,
            rate: None,
            trace: None,
            loss: None,
            queue: None,
            contenders: None,
            ack_filter: None,
            hack: None,
        }
    }

    #[test]
    fn every_kind_is_one_that_scenarios_know() {
        for kind in KINDS {
            let links = LinkArgs {
                wifi: Some(kind.into()),
                ..links()
            };
            let scenario = links.scenario().unwrap();
            assert_eq!(scenario.name, kind);
        }
    }

    #[test]
    fn options_become_keys_and_the_explicit_ones_win() {
        let links = LinkArgs {
            seed: Some(7),
            delay: Some(Duration::from_millis(12)),
            queue: Some(50),
            contenders: Some(3),
            overrides: vec!["wlan.queue=60p".into()],
            ..links()
        };
        let scenario = links.scenario().unwrap();
        let world = scenario.wlan.unwrap().world;
        assert_eq!(scenario.seed, 7);
        assert_eq!((world.ap_queue, world.contenders.stations), (60, 3));
        for path in [scenario.wired.forward, scenario.wired.reverse] {
            assert_eq!(path.bottleneck.delay, Duration::from_millis(12));
        }
    }

    #[test]
    fn a_comparison_has_one_kind_of_hosts() {
        let interrupt = |scenario: Scenario| scenario.wlan.unwrap().world.interrupt;
        let mut plain = links();
        assert_eq!(interrupt(plain.scenario().unwrap()), HostInterrupt::Frame);
        let compared = plain.scenario_with_hosts_of_hack().unwrap();
        assert!(!compared.wlan.as_ref().unwrap().world.hack.is_on());
        assert_eq!(interrupt(compared), HostInterrupt::Ppdu);
        assert_eq!(plain.hack, None);
        let mut explicit = LinkArgs {
            overrides: vec!["wlan.host_interrupt=frame".into()],
            ..links()
        };
        let compared = explicit.scenario_with_hosts_of_hack().unwrap();
        assert_eq!(interrupt(compared), HostInterrupt::Frame);
    }

    #[test]
    fn filters_and_hack_are_options_of_the_radios() {
        let links = LinkArgs {
            ack_filter: Some("safe".into()),
            hack: Some("timer".into()),
            overrides: vec!["wlan.hack_timer=3ms".into()],
            ..links()
        };
        let wlan = links.scenario().unwrap().wlan.unwrap();
        assert_eq!(wlan.ack_filter, AckFilter::Safe);
        assert_eq!(wlan.world.hack.variant, Variant::Timer);
        assert_eq!(wlan.world.hack.hold, Duration::from_millis(3));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wired.toml");
        std::fs::write(&path, "[wired]\nrate = '10Mbps'\n").unwrap();
        let wired = LinkArgs {
            wifi: None,
            scenario: Some(path),
            overrides: Vec::new(),
            ..links
        };
        let failure = wired.scenario().unwrap_err().to_string();
        assert!(failure.contains("no [wlan] table"), "{failure}");
        assert!(failure.contains("--ack-filter"), "{failure}");
    }

    #[test]
    fn the_wired_path_has_short_names() {
        let shaped = LinkArgs {
            rate: Some(rate("20M").unwrap()),
            loss: Some(share("1%").unwrap()),
            ..links()
        };
        let wired = shaped.scenario().unwrap().wired;
        let long = LinkArgs {
            overrides: [
                "wired.rate=20Mbps",
                "wired.loss=0.01",
                "wired.loss_reverse=0.01",
            ]
            .map(Into::into)
            .into(),
            ..links()
        };
        assert_eq!(
            format!("{wired:?}"),
            format!("{:?}", long.scenario().unwrap().wired)
        );
        assert!(share("2").is_err() && share("-1%").is_err() && rate("0").is_err());

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, "1\n2\n3\n").unwrap();
        let traced = LinkArgs {
            trace: Some(path.clone()),
            ..links()
        };
        assert!(traced.scenario().is_ok());
        std::fs::remove_file(&path).unwrap();
        let gone = traced.scenario().unwrap_err();
        assert!(gone.to_string().contains("trace"), "{gone}");
    }

    #[test]
    fn a_scenario_needs_no_flow_here() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links.toml");
        for text in ["[wlan]\n", "[wlan]\n[[flow]]\ntransport = 'udp'\n"] {
            std::fs::write(&path, text).unwrap();
            let links = LinkArgs {
                wifi: None,
                scenario: Some(path.clone()),
                ..links()
            };
            assert!(links.scenario().is_ok(), "{text}");
        }
    }

    #[test]
    fn wrong_settings_are_named() {
        let links = LinkArgs {
            overrides: vec!["wlan.rate=1Mbps".into()],
            ..links()
        };
        let failure = links.scenario().unwrap_err();
        assert!(failure.to_string().contains("wlan.rate"), "{failure}");
        let missing = LinkArgs {
            scenario: Some("/nowhere/at/all.toml".into()),
            ..self::links()
        };
        assert!(missing.scenario().is_err());
    }
}
