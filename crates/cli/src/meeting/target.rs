//! Whom the user means: a ticket, a code, a name, an address.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use tack_pairing::{Code, PublicKey, Ticket, code, ticket};
use zeroize::Zeroizing;

use crate::address::Address;
use crate::exit::Failure;
use crate::peers::PeerName;

/// Bytes that are read of a file or a pipe with a ticket.
const MAX_INPUT: u64 = 4096;

/// What proves this side to a peer, when it is not the target itself.
#[derive(Debug, Default, Args)]
pub(crate) struct TargetArgs {
    /// Code that the other side shows, beside its address; without an address, the code alone is
    /// the target
    #[arg(long, value_name = "CODE", conflicts_with_all = ["ticket_file", "ticket_fd"])]
    code: Option<String>,
    /// Read the ticket from this file. Tickets are also taken as the target (others on this
    /// machine can see it there), from TACK_TICKET, and with - as the target from standard
    /// input
    #[arg(long, value_name = "FILE", conflicts_with = "ticket_fd")]
    ticket_file: Option<PathBuf>,
    /// Read the ticket from this open file descriptor
    #[arg(long, value_name = "FD")]
    ticket_fd: Option<u32>,
}

/// The peer to meet, and the proof to show it.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A ticket, and an address that is tried before its own.
    Ticket(Ticket, Option<Address>),
    /// A code, and the address where it is shown; without one, the local network is searched.
    Code(Code, Option<Address>),
    /// A known peer.
    Name(PeerName),
    /// An address, for a peer whose key is known.
    Address(Address),
    /// A key that was authenticated before in this run, and its address.
    Authenticated(PublicKey, SocketAddr),
}

/// What a word on the command line can only be.
fn explicit(text: &str) -> Option<Result<Target, Failure>> {
    if ticket::looks_like(text) {
        return Some(read_ticket(text));
    }
    if code::looks_like(text) {
        return Some(read_code(text));
    }
    let name = text.ends_with(':').then(|| text.parse::<PeerName>());
    name.map(|name| name.map(Target::Name).map_err(Failure::usage))
}

fn read_ticket(text: &str) -> Result<Target, Failure> {
    let ticket = text.parse().map_err(Failure::usage)?;
    Ok(Target::Ticket(ticket, None))
}

fn read_code(text: &str) -> Result<Target, Failure> {
    let code = text.parse().map_err(Failure::usage)?;
    Ok(Target::Code(code, None))
}

impl TargetArgs {
    /// The target that `text` names, with what else was given; `None` when nothing was: then this
    /// side waits. `text` is `-` for a ticket on standard input.
    pub(crate) fn target(&self, text: Option<&str>) -> Result<Option<Target>, Failure> {
        let environment = std::env::var("TACK_TICKET").ok().map(Zeroizing::new);
        self.target_with(text, environment.as_deref().map(String::as_str))
    }

    /// The descriptor that the ticket comes over, if it does.
    #[cfg(target_os = "linux")]
    pub(crate) fn ticket_descriptor(&self) -> Option<u32> {
        self.ticket_fd
    }

    fn target_with(
        &self,
        text: Option<&str>,
        environment: Option<&str>,
    ) -> Result<Option<Target>, Failure> {
        if text == Some("-") {
            return read_ticket(&standard_input()?).map(Some);
        }
        let address = match text.map(|text| (text, explicit(text))) {
            None => None,
            Some((_, Some(target))) => return target.map(Some),
            Some((text, None)) => Some(text.parse::<Address>().map_err(|error| {
                Failure::usage(format!(
                    "{error}; a peer is also a ticket (tack1…), a code (7-guitarist-orca) or a name (laptop:)"
                ))
            })?),
        };
        let given = if let Some(code) = &self.code {
            Some(read_code(code)?)
        } else if let Some(path) = &self.ticket_file {
            Some(read_ticket(&file(path)?)?)
        } else if let Some(fd) = self.ticket_fd {
            Some(read_ticket(&file(Path::new(&format!("/dev/fd/{fd}")))?)?)
        } else {
            // An empty one is as good as none.
            let set = environment.filter(|text| !text.trim().is_empty());
            set.map(read_ticket).transpose()?
        };
        Ok(match (given, address) {
            (Some(Target::Ticket(ticket, _)), address) => Some(Target::Ticket(ticket, address)),
            (Some(Target::Code(code, _)), address) => Some(Target::Code(code, address)),
            (_, address) => address.map(Target::Address),
        })
    }
}

/// True when the word can only be a target, so that no path is looked for.
pub(crate) fn is_explicit(text: &str) -> bool {
    explicit(text).is_some()
}

fn file(path: &Path) -> Result<Zeroizing<String>, Failure> {
    File::open(path).and_then(read).map_err(|error| {
        Failure::usage(format!(
            "cannot read the ticket from {}: {error}",
            path.display()
        ))
    })
}

fn standard_input() -> Result<Zeroizing<String>, Failure> {
    let cannot = |error: io::Error| {
        Failure::usage(format!(
            "cannot read the ticket from standard input: {error}"
        ))
    };
    if io::stdin().is_terminal() {
        eprint!("Ticket: ");
        let mut line = Zeroizing::new(String::with_capacity(MAX_INPUT as usize));
        io::stdin().read_line(&mut line).map_err(cannot)?;
        return Ok(line);
    }
    read(io::stdin().lock()).map_err(cannot)
}

fn read(input: impl Read) -> io::Result<Zeroizing<String>> {
    // Growing would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(MAX_INPUT as usize));
    input.take(MAX_INPUT).read_to_string(&mut text)?;
    Ok(text)
}

impl Target {
    /// The target as messages show it, without secrets.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Ticket(ticket, _) => {
                format!(
                    "the issuer of the ticket ({})",
                    tack_pairing::short(&ticket.issuer)
                )
            }
            Self::Code(code, None) => format!("the program that shows code {}-…", code.number()),
            Self::Code(_, Some(address)) | Self::Address(address) => address.to_string(),
            Self::Name(name) => name.to_string(),
            Self::Authenticated(_, address) => address.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> String {
        let secret = tack_pairing::Secret::from_bytes([3; 16]);
        let issuer = tack_pairing::PublicKey::from([5; 32]);
        let ticket = Ticket::new(issuer, secret, 0, ["192.0.2.1:7777".parse().unwrap()]);
        ticket.text().to_string()
    }

    fn target(args: &TargetArgs, text: Option<&str>, environment: Option<&str>) -> Option<Target> {
        args.target_with(text, environment).unwrap()
    }

    #[test]
    fn what_is_typed_says_what_it_is() {
        let args = TargetArgs::default();
        let of = |text: &str| target(&args, Some(text), None).unwrap();
        assert!(matches!(of(&ticket()), Target::Ticket(_, None)));
        assert!(matches!(of("7-guitarist-orca"), Target::Code(_, None)));
        assert!(matches!(of("laptop:"), Target::Name(_)));
        for address in ["laptop", "laptop:7777", "192.0.2.1", "::1", "[::1]:7777"] {
            assert!(matches!(of(address), Target::Address(_)), "{address}");
        }
        assert!(target(&args, None, None).is_none(), "this side waits");
        for wrong in ["7-guitarist-orka", "tack1abc", "a b", "-x:"] {
            assert!(args.target_with(Some(wrong), None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_ticket_comes_from_a_file_a_descriptor_or_the_environment_alike() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{}", ticket()).unwrap();
        let by_file = TargetArgs {
            ticket_file: Some(file.path().to_owned()),
            ..TargetArgs::default()
        };
        let by_fd = TargetArgs {
            ticket_fd: Some(file.as_raw_fd() as u32),
            ..TargetArgs::default()
        };
        let plain = TargetArgs::default();
        let text = ticket();
        for (args, environment) in [(&by_file, None), (&by_fd, None), (&plain, Some(&*text))] {
            assert!(matches!(
                target(args, None, environment),
                Some(Target::Ticket(_, None))
            ));
            assert!(matches!(
                target(args, Some("192.0.2.7"), environment),
                Some(Target::Ticket(_, Some(_)))
            ));
        }
        // What is typed counts more.
        let name = target(&plain, Some("laptop:"), Some(&text));
        assert!(matches!(name, Some(Target::Name(_))));
        assert!(target(&plain, None, Some(" ")).is_none());
    }

    #[test]
    fn a_code_goes_with_an_address() {
        let args = TargetArgs {
            code: Some("7-guitarist-orca".into()),
            ..TargetArgs::default()
        };
        let found = target(&args, Some("192.0.2.7:7777"), None);
        assert!(matches!(found, Some(Target::Code(_, Some(_)))));
        let found = target(&args, None, None).unwrap();
        assert!(matches!(found, Target::Code(_, None)));
        assert!(!found.shown().contains("orca"), "{}", found.shown());
    }
}
