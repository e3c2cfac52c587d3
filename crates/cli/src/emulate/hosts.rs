//! `tack emulate --tun`: Wi-Fi between network namespaces.

use std::io;

use tack_emulator::{Host, HostSettings, Hosts, Summary};
use tack_sim::Scenario;
use tokio::sync::mpsc;

use super::args::EmulateArgs;
use super::control::Control;
use super::failure::cannot_start;
use crate::exit::Failure;
use crate::printer::with_stdout;

/// A running emulation, and its socket.
pub(super) struct Running {
    // The programs on the hosts end before their devices go.
    control: Control,
    hosts: Hosts,
}

impl Running {
    /// Makes the hosts, and says what they are.
    pub(super) fn start(args: &EmulateArgs, scenario: Scenario) -> Result<Self, Failure> {
        let mut settings = HostSettings::new(scenario);
        settings.mtu = args.mtu;
        settings.receive_offload = !args.no_gro;
        settings.own_processor = args.trust.realtime && args.no_gro;
        settings.max_flows = usize::from(args.max_flows);
        let hosts = Hosts::start(settings).map_err(cannot_start)?;
        let control =
            Control::open(&args.name, hosts.hosts()).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Failure::usage(format!(
                    "an emulation called {:?} is running; choose another --name",
                    args.name
                )),
                _ => Failure::failed("cannot open the socket for `tack emulate exec`", error),
            })?;
        announce(args, hosts.hosts())?;
        Ok(Self { control, hosts })
    }

    pub(super) fn take_samples(&mut self) -> Option<mpsc::Receiver<tack_emulator::Sample>> {
        self.hosts.take_samples()
    }

    pub(super) fn stop(self) -> io::Result<Summary> {
        drop(self.control);
        self.hosts.stop()
    }
}

fn announce(args: &EmulateArgs, hosts: &[Host]) -> Result<(), Failure> {
    if args.json {
        let hosts: Vec<_> = hosts
            .iter()
            .map(|host| {
                serde_json::json!({
                    "name": host.name,
                    "ipv4": host.ipv4,
                    "ipv6": host.ipv6,
                    "device": host.device,
                })
            })
            .collect();
        let event = serde_json::json!({
            "event": "ready",
            "name": args.name,
            "mtu": args.mtu,
            "hosts": hosts,
        });
        return with_stdout(|out| writeln!(out, "{event}"));
    }
    for host in hosts {
        eprintln!(
            "{:<8} {}, {}, {}",
            host.name, host.device, host.ipv4, host.ipv6
        );
    }
    eprintln!("tack emulate exec HOST -- PROGRAM runs a program on a host");
    Ok(())
}
