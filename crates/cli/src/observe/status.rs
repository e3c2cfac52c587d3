//! `tack status`: what the running programs of this installation are doing.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{HumanBytes, HumanDuration};
use serde_json::Value;

use super::control::ask_all;
use crate::exit::{Exit, Failure};
use crate::printer::with_stdout;
use crate::signals::Signals;
use crate::state::StateArgs;
use crate::values::interval;

/// Lines of connections in a table.
const MAX_ROWS: usize = 40;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON: one object for each running program
    #[arg(long)]
    json: bool,
    /// Print once. Without it a terminal is refreshed until a signal
    #[arg(long)]
    once: bool,
    /// Time between refreshes
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    interval: Duration,
    #[command(flatten)]
    state: StateArgs,
}

/// Shows the status, once or again and again.
pub(crate) async fn status(args: StatusArgs) -> Result<Exit, Failure> {
    let state = args.state.open()?;
    let refreshes = !args.once && !args.json && std::io::stdout().is_terminal();
    let mut signals = Signals::new()?;
    loop {
        let programs = ask_all(state.path()).await?;
        if programs.is_empty() && !refreshes {
            return Err(Failure::plain(format!(
                "no `tack serve` of this installation ({}) is running",
                state.path().display()
            )));
        }
        if args.json {
            with_stdout(|out| {
                programs.iter().try_for_each(|program| {
                    serde_json::to_writer(&mut *out, program)?;
                    writeln!(out)
                })
            })?;
            return Ok(Exit::Done);
        }
        let text = match programs.is_empty() {
            true => "no `tack serve` of this installation is running\n".to_owned(),
            false => programs.iter().map(lines).collect(),
        };
        if !refreshes {
            with_stdout(|out| out.write_all(text.as_bytes()))?;
            return Ok(Exit::Done);
        }
        // To the first place of a screen that is empty from there on (ECMA-48: CUP, ED).
        with_stdout(|out| write!(out, "\x1b[H\x1b[J{text}"))?;
        tokio::select! {
            () = tokio::time::sleep(args.interval) => {}
            _ = signals.next() => return Ok(Exit::Done),
        }
    }
}

fn lines(status: &Value) -> String {
    let count = |name: &str| status[name].as_u64().unwrap_or(0);
    let seconds = |value: &Value| Duration::from_secs_f64(value.as_f64().unwrap_or(0.0).max(0.0));
    let bytes = |value: &Value| HumanBytes(value.as_u64().unwrap_or(0)).to_string();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "tack {} (process {}), up {}: {} connections, {} since the start",
        text_of(&status["program"]),
        count("pid"),
        HumanDuration(seconds(&status["uptime_seconds"])),
        count("connections_open"),
        count("connections_opened"),
    );
    let transport = &status["transport"];
    let _ = writeln!(
        text,
        "{} acknowledged by peers, {} read; {} ACKs sent for {} segments, {:.1} ms of airtime saved as estimated; {} retransmitted",
        bytes(&status["bytes_acknowledged"]),
        bytes(&status["bytes_read"]),
        transport["acks_sent"],
        transport["segments_received"],
        status["ack_airtime_saved_seconds"].as_f64().unwrap_or(0.0) * 1e3,
        transport["retransmitted_segments"],
    );
    if let Some(peers) = status["serving"]["peers"].as_object() {
        for (peer, connections) in peers {
            let _ = writeln!(text, "peer {}: {connections} carried", printable(peer));
        }
    }
    let connections = status["connections"].as_array();
    let connections = connections.map(Vec::as_slice).unwrap_or_default();
    if connections.is_empty() {
        return text;
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "peer",
        "ports",
        "state",
        "age",
        "acknowledged",
        "read",
        "rtt",
        "cwnd",
        "ACKs",
        "retr",
    ]);
    for connection in connections.iter().take(MAX_ROWS) {
        let transport = &connection["transport"];
        table.add_row([
            text_of(&connection["peer"]),
            format!("{}-{}", connection["local_port"], connection["remote_port"]),
            text_of(&connection["state"]),
            format!("{:.0} s", connection["seconds"].as_f64().unwrap_or(0.0)),
            bytes(&connection["bytes_acknowledged"]),
            bytes(&connection["bytes_read"]),
            match transport["srtt_us"].as_f64() {
                Some(micros) => format!("{:.1} ms", micros / 1e3),
                None => "-".into(),
            },
            bytes(&transport["cwnd"]),
            transport["acks_sent"].to_string(),
            transport["retransmitted_segments"].to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let _ = writeln!(text, "{table}");
    if connections.len() > MAX_ROWS {
        let _ = writeln!(
            text,
            "and {} more (--json lists them)",
            connections.len() - MAX_ROWS
        );
    }
    text
}

fn text_of(value: &Value) -> String {
    printable(value.as_str().unwrap_or("-"))
}

fn printable(text: &str) -> String {
    crate::transfer::printable(text)
}
