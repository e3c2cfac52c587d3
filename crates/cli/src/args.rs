//! The command line: its commands. The arguments of each are in its folder.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::demo::DemoArgs;
use crate::doctor::DoctorArgs;
use crate::emulate::EmulateArgs;
use crate::exit::EXIT_CODES;
use crate::identity::IdArgs;
use crate::lab::LabCommand;
use crate::observe::{LogArgs, StatusArgs};
use crate::peers::PeersArgs;
use crate::perf::PerfArgs;
use crate::sim::SimArgs;
use crate::sweep::SweepArgs;
use crate::transfer::{RecvArgs, SendArgs};
use crate::tunnel::{
    ConnectArgs, EXEC_EXIT_CODES, ExecArgs, ForwardArgs, GatewayArgs, ProxyArgs, ServeArgs,
};

/// Reliable transport with few acknowledgements, for Wi-Fi: move files, measure a path, run
/// simulations.
#[derive(Debug, Parser)]
#[command(name = "tack", version, after_long_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send files and folders to a machine that runs `tack recv`
    #[command(after_long_help = EXIT_CODES)]
    Send(SendArgs),
    /// Receive files and folders from `tack send`
    #[command(after_long_help = EXIT_CODES)]
    Recv(RecvArgs),
    /// Measure a path: throughput, round-trip time, losses, acknowledgements
    #[command(after_long_help = EXIT_CODES)]
    Perf(PerfArgs),
    /// Measure what limits the path to a machine that runs `tack perf --server`, and what TACK
    /// saves there
    #[command(after_long_help = EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Let peers connect to targets that this machine reaches: the other end of tunnels
    #[command(after_long_help = EXIT_CODES)]
    Serve(ServeArgs),
    /// Show what a running `tack serve` is doing
    #[command(after_long_help = EXIT_CODES)]
    Status(StatusArgs),
    /// Connect to a target behind a `tack serve`, on standard input and output (ssh's ProxyCommand)
    #[command(after_long_help = EXIT_CODES)]
    Connect(ConnectArgs),
    /// Carry the TCP connections of a local port to a target behind a `tack serve`, or the other
    /// way round
    #[command(after_long_help = EXIT_CODES)]
    Forward(ForwardArgs),
    /// Give programs here a proxy, SOCKS5 and HTTP CONNECT, that reaches what a `tack serve`
    /// reaches
    #[command(after_long_help = EXIT_CODES)]
    Proxy(ProxyArgs),
    /// Run a command whose only network is a peer's: what it connects to, a `tack serve` reaches
    #[command(after_long_help = EXEC_EXIT_CODES)]
    Exec(ExecArgs),
    /// Carry the connections of other machines, which this one forwards, over a `tack serve`
    #[command(after_long_help = EXIT_CODES)]
    Gateway(GatewayArgs),
    /// Show this installation's public key, or make a new one
    #[command(after_long_help = EXIT_CODES)]
    Id(IdArgs),
    /// List and change the peers that this installation knows
    #[command(after_long_help = EXIT_CODES)]
    Peers(PeersArgs),
    /// Run scenario files in the simulator
    #[command(after_long_help = EXIT_CODES)]
    Sim(SimArgs),
    /// Run a plan: a scenario, keys that vary, and seeds; the rows become a Parquet data set
    #[command(after_long_help = EXIT_CODES)]
    Sweep(SweepArgs),
    /// Send a file over emulated Wi-Fi with delayed ACKs and with TACK, and compare them
    #[command(after_long_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Put an emulated Wi-Fi link between UDP programs, in real time
    #[command(after_long_help = EXIT_CODES)]
    Emulate(EmulateArgs),
    /// Reproduce the figures of three papers on TACK, TCP/HACK and ACK filtering
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Lab(LabCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, tack.1 and one for each command, to a folder
    Man {
        /// The folder; it is made if it does not exist
        #[arg(long, value_name = "DIR", default_value = "man")]
        out: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The list at the beginning of the page names each command, and no other.
    #[test]
    fn the_page_lists_every_command() {
        let page = include_str!("../../../docs/cli.md");
        let list = page.split("\n\n").nth(1).unwrap();
        let named = list.split("`tack ").skip(1).map(|rest| {
            let end = rest.find(['`', ' ']).unwrap();
            rest[..end].to_owned()
        });
        // `tack COMMAND --help`.
        let mut named: Vec<_> = named.filter(|name| name != "COMMAND").collect();
        let cli = Cli::command();
        let commands = cli
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let mut commands: Vec<_> = commands.map(|it| it.get_name().to_owned()).collect();
        named.sort();
        commands.sort();
        assert_eq!(named, commands);
    }
}
