//! Which addresses are of this machine or of the networks that it is in.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tack_io::Distance;

/// How long an answer of the kernel is used again: datagrams ask for each of them.
const LIFETIME: Duration = Duration::from_secs(1);
/// Answers that are kept.
const MAX_KEPT: usize = 1024;

/// What the kernel said of addresses, lately.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    kept: Mutex<BTreeMap<IpAddr, (bool, Instant)>>,
    /// It was said that the kernel cannot be asked.
    has_complained: AtomicBool,
}

impl Neighbours {
    /// True for addresses of this machine and of hosts that no router is in front of; and for all
    /// while the kernel cannot be asked.
    pub(super) fn include(&self, address: IpAddr) -> bool {
        self.include_at(address, Instant::now(), |address| {
            let distance = tack_io::distance(address);
            if let Err(error) = &distance
                && !self.has_complained.swap(true, Ordering::Relaxed)
            {
                eprintln!(
                    "tack: cannot ask the kernel for routes: {error}; until that works, rules for any host permit \
                     nothing"
                );
            }
            !matches!(distance, Ok(Distance::Beyond))
        })
    }

    fn include_at(&self, address: IpAddr, now: Instant, ask: impl FnOnce(IpAddr) -> bool) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((is_near, since)) = kept.get(&address)
            && now.duration_since(*since) < LIFETIME
        {
            return *is_near;
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let is_near = ask(address);
        kept.insert(address, (is_near, now));
        is_near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_used_again_for_a_moment() {
        let neighbours = Neighbours::default();
        let began = Instant::now();
        let address = IpAddr::from([8, 8, 8, 8]);
        let ask = |now, answer| neighbours.include_at(address, now, |_| answer);
        assert!(ask(began, true));
        assert!(ask(began + LIFETIME / 2, false));
        assert!(!ask(began + LIFETIME, false), "the network has changed");
        for n in 0..=MAX_KEPT as u32 {
            neighbours.include_at(IpAddr::from(n.to_be_bytes()), began, |_| true);
        }
        let kept = neighbours.kept.lock().unwrap();
        assert!(kept.len() <= MAX_KEPT);
    }
}
