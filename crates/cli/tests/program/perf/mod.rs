//! `tack perf` as two processes on loopback.

mod figures;
mod intervals;
mod other_tools;
mod serving;

use std::net::SocketAddr;

use serde_json::Value;

use crate::support::{Ended, Running, finish, tack};

/// The TCP ports of encrypted tests and of those in clear text.
const PORT: u16 = tack::DEFAULT_PORT + 3;
const CLEAR_PORT: u16 = tack::DEFAULT_PORT + 1;

struct Server {
    running: Running,
    address: SocketAddr,
    /// The options of server and clients about encryption.
    mode: &'static [&'static str],
}

impl Server {
    fn start(options: &[&str]) -> Self {
        Self::start_in(&[], options)
    }

    /// In clear text.
    fn clear(options: &[&str]) -> Self {
        Self::start_in(&["--insecure"], options)
    }

    fn start_in(mode: &'static [&'static str], options: &[&str]) -> Self {
        let mut command = tack();
        command
            .args(["perf", "--server", "--listen", "127.0.0.1:0", "--json"])
            .args(mode)
            .args(options);
        let mut running = Running::start(&mut command);
        let first = running.line();
        assert_eq!(first["encrypted"], mode.is_empty());
        let address = first["address"].as_str().unwrap().parse().unwrap();
        Self {
            running,
            address,
            mode,
        }
    }

    fn test(&self, options: &[&str]) -> Ended {
        finish(
            tack()
                .arg("perf")
                .arg(self.address.to_string())
                .args(self.mode)
                .args(options),
        )
    }

    fn json(&self, options: &[&str]) -> Value {
        let ended = self.test(&[options, &["--json"]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json()
    }
}
