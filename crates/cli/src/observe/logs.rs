//! Logs: what the program decides and does, by level. Never what happens to single packets, and no
//! secrets: tickets, codes and keys are in no event.

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::exit::Failure;

/// What is logged, and how.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LogArgs {
    /// Log to standard error what has this level or a higher one: error, warn, info, debug, trace;
    /// or levels by part of the program (warn,tack::tunnel=debug) [default: TACK_LOG, else nothing]
    #[arg(long, value_name = "LEVEL", global = true, help_heading = "Logs")]
    log: Option<String>,
    /// Form of the log: text, or a JSON object for each line
    #[arg(
        long,
        value_name = "FORM",
        global = true,
        default_value = "text",
        help_heading = "Logs"
    )]
    log_format: LogFormat,
}

/// How events look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum LogFormat {
    #[default]
    Text,
    Json,
}

impl LogArgs {
    /// Begins to log, where that is wanted.
    ///
    /// # Errors
    /// For a level that does not exist.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        let from_environment = || std::env::var("TACK_LOG").ok();
        let Some(text) = self.log.clone().or_else(from_environment) else {
            return Ok(());
        };
        if text.trim().is_empty() {
            return Ok(());
        }
        let filter = parse(&text).map_err(Failure::usage)?;
        let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
        let layer = match self.log_format {
            LogFormat::Text => layer.boxed(),
            LogFormat::Json => layer.json().flatten_event(true).boxed(),
        };
        let registry = tracing_subscriber::registry().with(layer.with_filter(filter));
        registry
            .try_init()
            .map_err(|error| Failure::failed("cannot log", error))
    }
}

fn parse(text: &str) -> Result<Targets, String> {
    // A name alone would be a target with all levels there.
    let is_level = |word: &str| {
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        levels.contains(&word.trim().to_ascii_lowercase().as_str())
    };
    let wrong = || {
        format!(
            "{text:?} is not a log level: expected error, warn, info, debug or trace, or levels by part as in warn,tack::tunnel=debug"
        )
    };
    for part in text.split(',') {
        let level = part.split_once('=').map_or(part, |(_, level)| level);
        if !is_level(level) {
            return Err(wrong());
        }
    }
    text.parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_and_mistakes_are_named() {
        assert!(parse("info").is_ok());
        assert!(parse("warn,tack::tunnel=debug").is_ok());
        for wrong in ["loud", "tack", "tack=loud", "info,,debug", "="] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains(wrong) && error.contains("debug"), "{error}");
        }
    }
}
