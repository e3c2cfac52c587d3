//! quinn, from a package of its own (`bench/quinn`), so that nobody who builds tack builds it.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::contest::{Contestant, Outcome};
use crate::process::run_pair;

pub(crate) struct Quinn;

fn package() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/quinn"))
}

impl Contestant for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn prepare(&self) -> Result<(), String> {
        println!("building bench/quinn (minutes the first time)");
        let status = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
            .args(["build", "--release", "--quiet", "--manifest-path"])
            .arg(package().join("Cargo.toml"))
            .arg("--target-dir")
            .arg(package().join("target"))
            .status()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        if status.success() {
            Ok(())
        } else {
            Err("bench/quinn does not build".to_owned())
        }
    }

    fn run(&self, time: Duration) -> Result<Outcome, String> {
        let program = package().join("target/release/bench-quinn");
        let mut receiver = Command::new(&program);
        receiver.arg("receiver");
        let mut sender = Command::new(&program);
        sender.args(["sender", &time.as_millis().to_string()]);
        run_pair(receiver, sender)
    }
}
