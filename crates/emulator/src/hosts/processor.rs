//! A processor of the emulator's own. Who writes a packet to a TUN device does what the receiving
//! host's TCP does about it, up to sending what an acknowledgement permits. Receive packet steering
//! leaves that to other processors, so that the next packet is not late for it.

use std::fmt::Write;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The mask with which devices of a network namespace begin (Linux 6.3).
const STEERING: &str = "/proc/sys/net/core/rps_default_mask";

/// One processor of those that this thread may use, and the others.
#[derive(Clone, Debug)]
pub(super) struct OwnProcessor {
    number: usize,
    /// All but that one, as the kernel writes masks.
    others: String,
    /// Devices of some namespace do not leave what they receive to the others.
    is_refused: bool,
}

impl OwnProcessor {
    /// The processor on which this thread runs now. `None` if the thread may use no other.
    pub(super) fn choose() -> io::Result<Option<Self>> {
        let allowed = sched_getaffinity(None)?;
        let allowed: Vec<_> = (0..CpuSet::MAX_CPU)
            .filter(|number| allowed.is_set(*number))
            .collect();
        Ok(Self::of(sched_getcpu(), &allowed))
    }

    fn of(number: usize, allowed: &[usize]) -> Option<Self> {
        let others: Vec<_> = allowed.iter().filter(|other| **other != number).collect();
        let last = **others.last()?;
        let mut mask = String::new();
        // Words of 32 bits, the highest first.
        for word in (0..=last / 32).rev() {
            let bits: u32 = others
                .iter()
                .filter(|other| **other / 32 == word)
                .map(|other| 1 << (**other % 32))
                .sum();
            let comma = if mask.is_empty() { "" } else { "," };
            let _infallible = write!(mask, "{comma}{bits:08x}");
        }
        let others = mask;
        Some(Self {
            number,
            others,
            is_refused: false,
        })
    }

    /// Devices that are made in this thread's network namespace from now on leave what they receive
    /// to the other processors. An old kernel cannot do that, nor one whose `/proc/sys` is read
    /// only.
    pub(super) fn steer(&mut self) {
        if std::fs::write(STEERING, &self.others).is_err() {
            self.is_refused = true;
        }
    }

    /// Keeps this thread where it is: on another processor it would do the hosts' work again. Where
    /// devices do not leave that work to others, it stays free to move.
    pub(super) fn stay(&self) -> io::Result<()> {
        if self.is_refused {
            return Ok(());
        }
        let mut own = CpuSet::new();
        own.set(self.number);
        Ok(sched_setaffinity(None, &own)?)
    }
}

#[cfg(test)]
mod tests {
    use tack_io::namespace::Namespace;

    use super::*;

    #[test]
    fn the_others_are_a_mask_of_words() {
        let others = |number, allowed: &[usize]| {
            let own = OwnProcessor::of(number, allowed)?;
            assert_eq!(own.number, number);
            Some(own.others)
        };
        assert_eq!(others(1, &[0, 1]).as_deref(), Some("00000001"));
        assert_eq!(others(0, &[0, 1, 2, 3]).as_deref(), Some("0000000e"));
        assert_eq!(
            others(2, &[0, 2, 33, 64]).as_deref(),
            Some("00000001,00000002,00000001")
        );
        assert_eq!(others(3, &[3]), None);
    }

    #[test]
    fn a_namespace_keeps_the_mask_and_a_thread_without_one_may_move() {
        // In a new thread, because a thread that enters a namespace does not leave it again.
        let mask = std::thread::spawn(|| {
            let mut own = OwnProcessor::of(0, &[0, 1]).unwrap();
            let _namespace = Namespace::enter_new()?;
            let mask = std::fs::read_to_string(STEERING)?;
            own.steer();
            let given = std::fs::read_to_string(STEERING)?;
            own.is_refused = true;
            own.stay()?;
            io::Result::Ok((mask, given, sched_getaffinity(None)?.count()))
        });
        match mask.join().unwrap() {
            Ok((before, given, processors)) => {
                let mask = |text: &str| u32::from_str_radix(text.trim(), 16);
                assert_eq!((mask(&before), mask(&given)), (Ok(0), Ok(2)));
                assert_eq!(processors, sched_getaffinity(None).unwrap().count());
            }
            Err(error) => tack_skip::skipped(format!("no namespace that steers: {error}")),
        }
    }

    #[test]
    fn a_thread_that_stays_has_one_processor() {
        // In a new thread, because the restriction to one processor is not lifted again.
        let stays = std::thread::spawn(|| {
            let Some(own) = OwnProcessor::choose().unwrap() else {
                return false;
            };
            own.stay().unwrap();
            assert_eq!(sched_getcpu(), own.number);
            assert!(OwnProcessor::choose().unwrap().is_none());
            true
        });
        if !stays.join().unwrap() {
            tack_skip::skipped("there is one processor");
        }
    }
}
