//! Whether a transfer is taken at all: decided before its first byte.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Mutex;

use indicatif::HumanBytes;

use super::store::Store;
use crate::printer::files;
use crate::transfer::protocol::Hello;

/// Limits and permissions that the receiver's user set.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// Maximum bytes of one transfer.
    pub(crate) max_bytes: Option<u64>,
    /// Senders may remove what they do not have.
    pub(crate) delete: bool,
    /// Asks on the terminal before each transfer; one question at a time.
    pub(crate) ask: Option<Mutex<()>>,
}

impl Admission {
    /// Admits or declines a transfer by what its sender announces.
    ///
    /// # Errors
    /// Why it is not taken.
    pub(crate) fn admit(
        &self,
        peer: SocketAddr,
        hello: &Hello,
        store: &Store,
    ) -> Result<(), String> {
        if hello.delete && !(self.delete && store.existing.may_replace()) {
            return Err("this receiver does not permit removal (--delete)".to_owned());
        }
        self.compare(hello, store)?;
        match &self.ask {
            Some(turn) if !hello.dry_run => {
                let _turn = turn.lock();
                let asked = ask(&question(peer, hello), &mut io::stdin().lock());
                if asked.unwrap_or(false) {
                    Ok(())
                } else {
                    Err("the receiver's user declined it".to_owned())
                }
            }
            _ => Ok(()),
        }
    }

    fn compare(&self, hello: &Hello, store: &Store) -> Result<(), String> {
        // All ones: the sender does not know.
        if hello.bytes == u64::MAX || hello.dry_run {
            return Ok(());
        }
        if self.max_bytes.is_some_and(|most| hello.bytes > most) {
            return Err(self.too_much());
        }
        let Ok(disk) = rustix::fs::fstatvfs(store.root.as_fd()) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let all = disk.f_blocks.saturating_mul(disk.f_frsize);
        // What is here already need not come again, so only what no disk of this size holds is
        // refused as a whole; each file is compared with what is free before it is sent.
        if hello.bytes > all {
            return Err(format!(
                "the transfer has {} bytes, the receiver's disk {all} ({free} free)",
                hello.bytes
            ));
        }
        Ok(())
    }

    /// Declines a transfer whose received bytes exceed the limit.
    ///
    /// # Errors
    /// Why it ends here.
    pub(crate) fn check(&self, carried: u64) -> Result<(), String> {
        match self.max_bytes {
            Some(most) if carried > most => Err(self.too_much()),
            _ => Ok(()),
        }
    }

    fn too_much(&self) -> String {
        let most = self.max_bytes.unwrap_or(u64::MAX);
        format!("it exceeds the receiver's limit of {most} bytes (--max-bytes)")
    }
}

fn question(peer: SocketAddr, hello: &Hello) -> String {
    if hello.files == u64::MAX {
        return format!("{peer} sends something of unknown size; take it? [y/N] ");
    }
    let (files, bytes) = (files(hello.files), HumanBytes(hello.bytes));
    format!("{peer} sends {files}, {bytes}; take it? [y/N] ")
}

/// Asks, and accepts only an explicit yes.
fn ask(question: &str, answers: &mut impl io::BufRead) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    write!(out, "tack: {question}")?;
    out.flush()?;
    drop(out);
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    let answer = answer.trim();
    Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for (answer, wanted) in [
            ("y\n", true),
            ("YES\n", true),
            ("\n", false),
            ("", false),
            ("yo\n", false),
        ] {
            assert_eq!(
                ask("?", &mut answer.as_bytes()).unwrap(),
                wanted,
                "{answer:?}"
            );
        }
    }
}
