//! The arguments of `tack emulate`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::address::{Address, ReachArgs};
use crate::links::LinkArgs;
use crate::trust::TrustArgs;
use crate::values::{interval, listen};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct EmulateArgs {
    #[command(subcommand)]
    pub(crate) command: Option<EmulateCommand>,
    #[command(flatten)]
    pub(crate) links: LinkArgs,
    /// Address that clients send to, or a port of 127.0.0.1; each client is a Wi-Fi station. Port
    /// 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = listen)]
    pub(crate) listen: Address,
    /// Destination of the clients' datagrams: a host on the wire behind the access point
    #[arg(long, value_name = "ADDR", required_unless_present = "tun")]
    pub(crate) to: Option<Address>,
    /// Make the server and each station a network namespace, in which any program runs on the
    /// kernel's TCP: `tack emulate exec sta0 -- PROGRAM`. Takes root
    #[arg(long, conflicts_with_all = ["listen", "to"])]
    pub(crate) tun: bool,
    /// Name of the emulation, where several run at a time
    #[arg(long, value_name = "NAME", requires = "tun", default_value = DEFAULT_NAME, value_parser = name)]
    pub(crate) name: String,
    /// MTU of the hosts' devices, bytes
    #[arg(long, value_name = "BYTES", requires = "tun", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..=2296))]
    pub(crate) mtu: u16,
    /// Give the hosts' kernels each frame alone, when it ends, as without generic receive offload
    /// (GRO). With it, segments of a connection that come in one PPDU are acknowledged together
    #[arg(long, requires = "tun")]
    pub(crate) no_gro: bool,
    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub(crate) duration: Option<Duration>,
    /// Number of stations; client addresses take them in turn [default: the scenario's, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) stations: Option<u16>,
    /// Maximum number of client addresses at a time; with --tun, of connections that are counted
    /// apart
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_flows: u16,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Print JSON to standard output: the listening address or the hosts, and one object at the
    /// end
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EmulateCommand {
    /// Run a program on a host of a running `tack emulate --tun`
    Exec(ExecArgs),
    /// Open a shell on a host of a running `tack emulate --tun`
    Shell(ShellArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Name of the emulation
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME, value_parser = name)]
    pub(crate) name: String,
    /// The host: server, sta0, sta1, …
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// Name of the emulation
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME, value_parser = name)]
    pub(crate) name: String,
    /// The host: server, sta0, sta1, …
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
}

const DEFAULT_NAME: &str = "wifi";

/// Letters, digits and hyphens: a name is part of a socket's.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if (1..=32).contains(&text.len()) && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected a name of up to 32 letters, digits and hyphens, got {text:?}"
    ))
}
