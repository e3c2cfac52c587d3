//! Runs in real time that a machine may spoil: how to make that rarer, and what follows from it.

use clap::Args;

use crate::exit::Exit;

/// What `tack emulate` and `tack demo` have in common about that.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TrustArgs {
    /// Run with real-time priority, so that other programs seldom make deliveries late. Takes
    /// root, CAP_SYS_NICE or `ulimit -r 10`
    #[arg(long)]
    pub(crate) realtime: bool,
    /// Exit with code 6 when a run is not to be trusted because the machine did not keep up
    #[arg(long)]
    pub(crate) require_trust: bool,
}

impl TrustArgs {
    /// Asks for what the arguments want, and says so where the system refuses. Threads that start
    /// later have it, too.
    pub(crate) fn prepare(self) {
        if self.realtime
            && let Err(error) = tack_io::realtime::request()
        {
            eprintln!(
                "tack: --realtime: the system gives no real-time priority ({error}); this needs root, CAP_SYS_NICE or \
                 `ulimit -r 10`. Going on without it"
            );
        }
    }

    /// How a run ends that went well apart from that.
    pub(crate) fn exit(self, trusted: bool) -> Exit {
        if self.require_trust && !trusted {
            Exit::Untrusted
        } else {
            Exit::Done
        }
    }

    /// What may help a run that is not to be trusted; nothing when it was tried.
    pub(crate) fn advice(self) -> Option<&'static str> {
        (!self.realtime).then_some(
            "--realtime asks for real-time priority, which makes late deliveries rare on a busy machine",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untrusted_run_has_its_own_code_on_request() {
        let asked = TrustArgs {
            require_trust: true,
            ..TrustArgs::default()
        };
        assert_eq!(
            (asked.exit(true), asked.exit(false)),
            (Exit::Done, Exit::Untrusted)
        );
        assert_eq!(TrustArgs::default().exit(false), Exit::Done);
    }

    #[test]
    fn the_advice_names_the_option_until_it_is_taken() {
        assert!(
            TrustArgs::default()
                .advice()
                .unwrap()
                .contains("--realtime")
        );
        let taken = TrustArgs {
            realtime: true,
            ..TrustArgs::default()
        };
        assert_eq!(taken.advice(), None);
    }
}
