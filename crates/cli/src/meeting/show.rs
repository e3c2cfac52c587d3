//! What a waiting program shows: the ticket, the code, the addresses.

use std::fmt;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::time::Duration;

use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use tack_pairing::{Code, Ticket};

/// An address as a person types it on another machine, which calls its interfaces by other names.
struct Typed<'a>(&'a SocketAddr);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => {
                write!(f, "[{}%INTERFACE]:{}", v6.ip(), v6.port())
            }
            address => address.fmt(f),
        }
    }
}

/// What a peer may type, for people: a command, what lets the peer in, and what comes after that.
pub(super) fn invitation(
    (command, after): (&str, &str),
    ticket: Option<&Ticket>,
    code: Option<&Code>,
    addresses: &[SocketAddr],
    is_announced: bool,
) -> String {
    let mut lines = Vec::new();
    let after = match after {
        "" => String::new(),
        after => format!(" {after}"),
    };
    if let Some(code) = code {
        let code = code.text();
        if is_announced {
            lines.push(format!("  on this network   {command} {}{after}", &*code));
        }
        if let Some(address) = addresses.first() {
            let address = Typed(address);
            lines.push(format!(
                "  by address        {command} {address} --code {}{after}",
                &*code
            ));
        }
    }
    if let Some(ticket) = ticket {
        let text = ticket.text();
        let text = &*text;
        let is_loopback = |address: &SocketAddr| address.ip().is_loopback();
        lines.push(match addresses.first() {
            // An address that means nothing elsewhere is not in the ticket.
            Some(address) if ticket.addresses().is_empty() => {
                let address = Typed(address);
                format!("  by ticket         TACK_TICKET={text} {command} {address}{after}")
            }
            Some(_) if addresses.iter().all(is_loopback) => {
                format!("  on this machine   {command} {text}{after}")
            }
            _ => format!("  anywhere          {command} {text}{after}"),
        });
    }
    if matches!(addresses.first(), Some(SocketAddr::V6(v6)) if v6.scope_id() != 0) {
        lines.push("INTERFACE is the other machine's own to this network, such as eth0".into());
    }
    lines.join("\n")
}

/// True where standard error is the journal of systemd (`JOURNAL_STREAM`, systemd.exec(5)): what is
/// written there is kept, and others than the owner of this process read it.
pub(super) fn is_journal() -> bool {
    let Some(journal) = std::env::var_os("JOURNAL_STREAM") else {
        return false;
    };
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|stream| *journal == *format!("{}:{}", stream.st_dev, stream.st_ino))
}

/// The ticket as a QR code for a terminal, dark on light; `None` elsewhere.
pub(super) fn qr_code(ticket: &Ticket) -> Option<String> {
    if !io::stderr().is_terminal() {
        return None;
    }
    Some(render(ticket))
}

fn render(ticket: &Ticket) -> String {
    // Capitals and digits take less room in a QR code; tickets are read in either case.
    let text = ticket.text().to_uppercase();
    let code = QrCode::with_error_correction_level(text, EcLevel::L)
        .expect("a ticket of 160 characters fits");
    // Terminals are dark more often than light: what is light in the code is printed.
    code.render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .build()
}

/// When a code follows a burnt one, in words: after `pause`, or only when a person asks.
pub(super) fn when_a_code_follows(pause: Option<Duration>, has_keyboard: bool) -> String {
    let many = "Many were tried with wrong words: a new one follows only";
    match (pause, has_keyboard) {
        (Some(pause), false) => format!("A new code follows in {} s", pause.as_secs()),
        (Some(pause), true) => {
            let seconds = pause.as_secs();
            format!("A new code follows in {seconds} s, or when you press Enter")
        }
        (None, true) => format!("{many} when you press Enter, or after a complete transfer"),
        (None, false) => format!("{many} after a complete transfer"),
    }
}

#[cfg(test)]
mod tests {
    use tack_pairing::{PublicKey, Secret};

    use super::*;

    fn ticket() -> Ticket {
        let addresses = ["192.0.2.1:7777", "198.51.100.1:7777", "203.0.113.1:7777"];
        Ticket::new(
            PublicKey::from([5; 32]),
            Secret::from_bytes([6; 16]),
            0,
            addresses.map(|address| address.parse().unwrap()),
        )
    }

    #[test]
    fn the_qr_code_of_the_longest_ticket_fits_a_terminal() {
        let drawn = render(&ticket());
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(lines.len() <= 30, "{} lines", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn what_comes_after_the_peer_is_shown() {
        let code = "7-guitarist-orca".parse().unwrap();
        let addresses = ["192.0.2.1:7777".parse().unwrap()];
        let command = ("tack connect", "HOST:PORT");
        let shown = invitation(command, Some(&ticket()), Some(&code), &addresses, true);
        assert_eq!(shown.lines().count(), 3);
        assert!(
            shown.lines().all(|line| line.ends_with(" HOST:PORT")),
            "{shown}"
        );
    }

    #[test]
    fn what_an_address_is_good_for_is_said() {
        let code = "7-guitarist-orca".parse().unwrap();
        let issued = |address: &str| {
            let (issuer, secret) = (PublicKey::from([5; 32]), Secret::from_bytes([6; 16]));
            let address: SocketAddr = address.parse().unwrap();
            let ticket = Ticket::new(issuer, secret, 0, [address]);
            let command = ("tack send FILE", "");
            invitation(command, Some(&ticket), Some(&code), &[address], true)
        };
        let on_cable = issued("[fe80::1%3]:7777");
        for expected in [
            "tack send FILE [fe80::1%INTERFACE]:7777 --code 7-guitarist-orca\n",
            " TACK_TICKET=tack1",
            " tack send FILE [fe80::1%INTERFACE]:7777\n",
            "\nINTERFACE is",
        ] {
            assert!(on_cable.contains(expected), "{on_cable}");
        }
        let alone = issued("[::1]:7777");
        assert!(alone.contains("on this machine   tack send FILE tack1"));
        for shown in [on_cable, alone] {
            assert!(!shown.contains("anywhere"), "{shown}");
        }
        assert!(issued("169.254.1.1:7777").contains("anywhere"));
    }

    #[test]
    fn each_way_to_reach_us_is_a_command_that_can_be_typed() {
        let code = "7-guitarist-orca".parse().unwrap();
        let addresses = ["192.0.2.1:7777".parse().unwrap()];
        let shown = invitation(
            ("tack send FILE", ""),
            Some(&ticket()),
            Some(&code),
            &addresses,
            true,
        );
        for expected in [
            "tack send FILE 7-guitarist-orca\n",
            "tack send FILE 192.0.2.1:7777 --code 7-guitarist-orca\n",
            "tack send FILE tack1",
        ] {
            assert!(shown.contains(expected), "{shown}");
        }
        let quiet = invitation(
            ("tack send FILE", ""),
            Some(&ticket()),
            Some(&code),
            &addresses,
            false,
        );
        assert!(
            !quiet.contains("on this network") && quiet.contains("--code"),
            "{quiet}"
        );
    }
}
