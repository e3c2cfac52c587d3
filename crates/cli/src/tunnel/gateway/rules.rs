//! The rules that pass the connections of a gateway's clients to it: netfilter's TPROXY, and a
//! route that makes the machine take packets for other hosts.

use std::fmt::Write as _;
use std::process::Stdio;

use ipnet::IpNet;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::exit::Failure;

/// The table of netfilter; with the mark in its name, as two gateways may run.
const TABLE: &str = "tack_gateway";

/// What the rules depend on.
#[derive(Clone, Debug)]
pub(super) struct Ruleset {
    pub(super) interfaces: Vec<String>,
    pub(super) except: Vec<IpNet>,
    pub(super) port: u16,
    pub(super) mark: u32,
    /// Whether the clients' connections may not go out directly where no gateway takes them.
    pub(super) block: bool,
}

/// A name of an interface, which becomes a word of a rule.
///
/// # Errors
/// In words.
pub(super) fn interface(text: &str) -> Result<String, String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    match (1..=15).contains(&text.len()) && text.bytes().all(is_word) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} is not a valid interface name, such as wlan0 or br-lan"
        )),
    }
}

/// A mark of packets, which is the number of a routing table as well.
///
/// # Errors
/// In words.
pub(super) fn mark(text: &str) -> Result<u32, String> {
    match text.parse() {
        // local, main and default: what leads packets here would lead the machine's own there, too.
        Ok(253..=255) => Err(
            "253 to 255 are routing tables of the system; expected another number, such as 7281"
                .into(),
        ),
        Ok(mark) if mark > 0 => Ok(mark),
        _ => Err(format!(
            "expected a number from 1 to {}, such as 7281, got {text:?}",
            u32::MAX
        )),
    }
}

impl Ruleset {
    fn table(&self) -> String {
        format!("inet {TABLE}_{}", self.mark)
    }

    /// The table that blocks. It is one of its own, because it stays when the other one goes.
    fn blocking_table(&self) -> String {
        format!("{}_block", self.table())
    }

    /// Statements that accept what no gateway takes.
    fn exceptions(&self) -> Vec<String> {
        let quoted: Vec<String> = self
            .interfaces
            .iter()
            .map(|it| format!("\"{it}\""))
            .collect();
        let mut inner = vec![
            format!("iifname != {{ {} }} accept", quoted.join(", ")),
            // What answers a connection from outside to a server behind the interface.
            "ct direction reply accept".to_owned(),
        ];
        for (family, is_v4) in [("ip", true), ("ip6", false)] {
            let networks = self.except.iter();
            let networks: Vec<String> = networks
                .filter(|network| network.addr().is_ipv4() == is_v4)
                .map(|network| network.trunc().to_string())
                .collect();
            if !networks.is_empty() {
                inner.push(format!(
                    "{family} daddr {{ {} }} accept",
                    networks.join(", ")
                ));
            }
        }
        inner
    }

    /// The statements of the table, `flags` first.
    fn statements(&self, flags: &str) -> Vec<String> {
        let mut inner =
            vec!["type filter hook prerouting priority mangle; policy accept;".to_owned()];
        inner.extend(self.exceptions());
        // What is for this machine, for groups and for everybody.
        inner.push("fib daddr type { local, broadcast, anycast, multicast } accept".to_owned());
        for (family, tproxy) in [("ipv4", "ip"), ("ipv6", "ip6")] {
            inner.push(format!(
                "meta nfproto {family} meta l4proto {{ tcp, udp }} tproxy {tproxy} to :{} \
                 meta mark set {} accept",
                self.port, self.mark
            ));
        }
        let flags = (!flags.is_empty()).then(|| format!("flags {flags};"));
        table_of(&self.table(), flags, "prerouting", inner)
    }

    /// The statements of the table that blocks. What a gateway takes is not forwarded, so nothing
    /// of it comes here while there is one.
    fn blocking_statements(&self) -> Vec<String> {
        let mut inner = vec!["type filter hook forward priority filter; policy accept;".to_owned()];
        inner.extend(self.exceptions());
        inner.push("meta l4proto { tcp, udp } drop".to_owned());
        table_of(&self.blocking_table(), None, "forward", inner)
    }

    /// The input of nft that makes a table with these statements, in place of an older one.
    fn replaced(table: &str, statements: &[String]) -> String {
        // A table that does not exist cannot be deleted, and one that does can be made again. All
        // of it happens at once.
        let mut input = format!("table {table}\ndelete table {table}\n");
        for line in statements {
            let _ = writeln!(input, "{line}");
        }
        input
    }

    /// The arguments of `ip` for the rule and the route of each family.
    fn routing(&self, verb: &str) -> [String; 4] {
        let mark = self.mark;
        [
            format!("-4 rule {verb} fwmark {mark} lookup {mark}"),
            format!("-4 route {verb} local 0.0.0.0/0 dev lo table {mark}"),
            format!("-6 rule {verb} fwmark {mark} lookup {mark}"),
            format!("-6 route {verb} local ::/0 dev lo table {mark}"),
        ]
    }

    /// A shell script that installs the rules, with what removes them as a comment. It may run
    /// again.
    pub(super) fn script(&self) -> String {
        // The options of its first line are lost where a shell reads it from a pipe.
        let mut script = String::from(
            "#!/bin/sh\n# tack gateway: rules for this machine\nset -e\n\
             v6() { [ ! -e /proc/net/if_inet6 ] || ip -6 \"$@\"; }\n",
        );
        for (delete, add) in self.routing("del").iter().zip(self.routing("add")) {
            let line = |line: &str| match line.strip_prefix("-6 ") {
                // A machine may lack IPv6.
                Some(words) => format!("v6 {words}"),
                None => format!("ip {line}"),
            };
            let _ = writeln!(script, "{} 2>/dev/null || true", line(delete));
            let _ = writeln!(script, "{}", line(&add));
        }
        let _ = writeln!(script, "nft -f - <<'END'");
        let mut tables = vec![self.table()];
        script.push_str(&Self::replaced(&self.table(), &self.statements("")));
        if self.block {
            let table = self.blocking_table();
            script.push_str(&Self::replaced(&table, &self.blocking_statements()));
            tables.push(table);
        }
        let _ = writeln!(script, "END\n# To remove them:");
        for table in tables {
            let _ = writeln!(script, "#   nft delete table {table}");
        }
        for line in self.routing("del") {
            let _ = writeln!(script, "#   ip {line}");
        }
        script
    }

    /// The table as one command: what nft reads from its input is a command a line.
    fn command(&self) -> String {
        let mut command = String::new();
        for line in self.statements("owner") {
            let line = line.trim();
            let ends = line.ends_with('{') || line.ends_with(';');
            let _ = write!(command, "{line}{}", if ends { " " } else { "; " });
        }
        command.trim_end_matches("; ").to_owned()
    }
}

/// A table with one chain.
fn table_of(
    table: &str,
    flags: Option<String>,
    chain: &str,
    statements: Vec<String>,
) -> Vec<String> {
    let mut lines = vec![format!("table {table} {{")];
    lines.extend(flags.map(|flags| format!("\t{flags}")));
    lines.push(format!("\tchain {chain} {{"));
    lines.extend(statements.into_iter().map(|line| format!("\t\t{line}")));
    lines.push("\t}".to_owned());
    lines.push("}".to_owned());
    lines
}

/// Has netfilter drop what clients send through this machine and no gateway takes, if the rules say
/// so. It stays so when this program has ended, however it ends; the command that ends it is
/// returned.
///
/// # Errors
/// What nft says.
pub(super) async fn block(ruleset: &Ruleset) -> Result<Option<String>, Failure> {
    if !ruleset.block {
        return Ok(None);
    }
    let table = ruleset.blocking_table();
    let input = Ruleset::replaced(&table, &ruleset.blocking_statements());
    let cannot = |words: &dyn std::fmt::Display| {
        Failure::plain(format!("cannot block the clients of the gateway: {words}"))
    };
    let mut nft = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| cannot(&format_args!("cannot run nft: {error}")))?;
    if let Some(mut stdin) = nft.stdin.take() {
        let written = stdin.write_all(input.as_bytes()).await;
        written.map_err(|error| cannot(&error))?;
    }
    let output = nft.wait_with_output().await;
    let output = output.map_err(|error| cannot(&error))?;
    match output.status.success() {
        true => Ok(Some(format!("nft delete table {table}"))),
        false => Err(cannot(&String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The rules, as long as this lives. The table belongs to a running `nft`, with which it goes: also
/// when this program is killed. The routes that stay behind then concern no packet without the
/// table's mark.
pub(super) struct Installed {
    ruleset: Ruleset,
    _nft: Child,
}

impl Installed {
    /// Installs the rules.
    pub(super) async fn new(ruleset: &Ruleset) -> Result<Self, Failure> {
        for line in ruleset.routing("del") {
            // What an earlier run may have left.
            let _ = ip(&line).await;
        }
        let mut failures = Vec::new();
        for line in ruleset.routing("add") {
            if let Err(words) = ip(&line).await {
                failures.push(format!("ip {line}: {words}"));
            }
        }
        // A machine may lack IPv6: its two lines are the last.
        let without_v6 = failures.len() == 2 && failures.iter().all(|it| it.starts_with("ip -6"));
        if !failures.is_empty() && !without_v6 {
            remove_routing(ruleset);
            return Err(Failure::plain(failures.join("; ")));
        }
        match table(ruleset).await {
            Ok(nft) => Ok(Self {
                ruleset: ruleset.clone(),
                _nft: nft,
            }),
            Err(failure) => {
                remove_routing(ruleset);
                Err(failure)
            }
        }
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        remove_routing(&self.ruleset);
        // nft ends with its input, which this program holds, and takes the table along.
    }
}

fn remove_routing(ruleset: &Ruleset) {
    for line in ruleset.routing("del") {
        let mut command = std::process::Command::new("ip");
        let command = command.args(line.split(' ')).stderr(Stdio::null());
        let _ = command.stdout(Stdio::null()).status();
    }
}

/// Runs `ip`; the error is what it says.
async fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output().await;
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Starts the `nft` that owns the table.
async fn table(ruleset: &Ruleset) -> Result<Child, Failure> {
    let cannot = |words: &dyn std::fmt::Display| {
        Failure::plain(format!("cannot install the rules of netfilter: {words}"))
    };
    // Ends whatever it is given, so that its answers have an end.
    const MARKER: &str = "describe meta mark";
    let mut nft = Command::new("nft")
        .arg("-i")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| cannot(&format_args!("cannot run nft: {error}")))?;
    let (Some(input), Some(output), Some(errors)) =
        (&mut nft.stdin, nft.stdout.take(), nft.stderr.take())
    else {
        return Err(cannot(&"nft has no streams"));
    };
    let commands = format!("{}\n{MARKER}\n", ruleset.command());
    input
        .write_all(commands.as_bytes())
        .await
        .map_err(|error| cannot(&error))?;
    let (mut output, mut errors) = (
        BufReader::new(output).lines(),
        BufReader::new(errors).lines(),
    );
    let answer = async {
        tokio::select! {
            biased;
            line = errors.next_line() => match line {
                Ok(Some(line)) => Err(cannot(&line)),
                _ => Err(cannot(&"nft has ended")),
            },
            line = output.next_line() => match line {
                Ok(Some(line)) if line.starts_with("Error") => Err(cannot(&line)),
                Ok(Some(_)) => Ok(()),
                _ => Err(cannot(&"nft has ended")),
            },
        }
    };
    let limit = std::time::Duration::from_secs(10);
    tokio::time::timeout(limit, answer)
        .await
        .map_err(|_| cannot(&"nft does not answer"))??;
    Ok(nft)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ruleset() -> Ruleset {
        Ruleset {
            interfaces: vec!["wlan0".into(), "br-lan".into()],
            except: ["10.0.0.7/8", "fd00::/8", "192.168.0.0/16"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            port: 1081,
            mark: 7281,
            block: true,
        }
    }

    #[test]
    fn rules_are_a_script_and_one_command() {
        insta::assert_snapshot!(ruleset().script());
        let command = ruleset().command();
        assert!(
            !command.contains('\n') && command.contains("flags owner;"),
            "{command}"
        );
        let braces = |brace| command.matches(brace).count();
        assert_eq!(braces('{'), braces('}'));
    }

    #[test]
    fn a_mark_is_no_table_of_the_system() {
        for (text, expected) in [("1", 1), ("252", 252), ("256", 256), ("7281", 7281)] {
            assert_eq!(mark(text), Ok(expected));
        }
        for wrong in ["253", "254", "255"] {
            let why = mark(wrong).unwrap_err();
            assert!(why.contains("routing tables"), "{why}");
        }
        for wrong in ["0", "-1", "4294967296", "a"] {
            let why = mark(wrong).unwrap_err();
            assert!(why.contains("from 1") && why.contains(wrong), "{why}");
        }
    }

    #[test]
    fn an_interface_is_a_word() {
        for name in ["wlan0", "br-lan", "eth0.7", "veth1@if2"] {
            interface(name).unwrap();
        }
        for wrong in ["", "a b", "x\"; }", "sixteen-letters-", "w\u{fc}"] {
            assert!(interface(wrong).is_err(), "{wrong:?}");
        }
    }
}
