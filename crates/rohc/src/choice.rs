//! What the compressor finds out about a flow: the step of its acknowledgement numbers, the
//! movement of its IP-ID, and whether its ECN bits are in use. RFC 6846 leaves all three to the
//! implementation.

use arrayvec::ArrayVec;

use crate::context::{Context, IpIdBehavior};
use crate::header::Header;

/// How many steps are remembered: enough for a change from one segment per acknowledgement to two
/// to be noticed within a window's worth of acknowledgements, too many for one odd step to matter.
const STEPS: usize = 16;
/// Fewer steps than this say nothing.
const ENOUGH_STEPS: usize = 8;
/// The scaled number is `lsb(4, 3)`: 12 strides is the farthest that it reaches forward.
const FARTHEST: u16 = 12;

/// Finds the stride: the largest step that divides most steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct StrideFinder {
    steps: ArrayVec<u16, STEPS>,
}

impl StrideFinder {
    /// Takes note of how far the acknowledgement number moved. Duplicates, and steps that are not
    /// those of a stream, say nothing.
    pub(crate) fn observe(&mut self, step: u32) {
        let Ok(step) = u16::try_from(step) else {
            return;
        };
        if step == 0 {
            return;
        }
        if self.steps.is_full() {
            self.steps.remove(0);
        }
        self.steps.push(step);
    }

    /// The stride to use where `current` was used so far. `references` is how many packets back the
    /// decompressor's reference may be, so a scaled number may have to reach over as many steps.
    pub(crate) fn choose(&self, current: u16, references: usize) -> u16 {
        if self.steps.len() < ENOUGH_STEPS || self.is_good(current, references) {
            return current;
        }
        let best = self
            .steps
            .iter()
            .max_by_key(|&&stride| (self.served(stride, references), stride));
        match best {
            Some(&stride) if self.is_good(stride, references) => stride,
            _ => current,
        }
    }

    /// Three steps in four: a change of stride costs several bytes in several packets.
    fn is_good(&self, stride: u16, references: usize) -> bool {
        self.served(stride, references) * 4 >= self.steps.len() * 3
    }

    /// How many of the steps the stride serves.
    fn served(&self, stride: u16, references: usize) -> usize {
        if stride == 0 {
            return 0;
        }
        let farthest = (FARTHEST / references.clamp(1, usize::from(FARTHEST)) as u16).max(1);
        self.steps
            .iter()
            .filter(|&&step| step % stride == 0 && step / stride <= farthest)
            .count()
    }
}

/// A host that sends to others in between moves its IP-ID by more than one; beyond this it is taken
/// for random.
const SMALL_STEP: u16 = 64;
/// How many jumps in a row make a sequential IP-ID a random one.
const JUMPS: u8 = 2;
/// How many small steps in a row make a random IP-ID a sequential one. A random one makes four such
/// steps once in 10^12 packets.
const SMALL_STEPS: u8 = 4;

/// Follows the IPv4 identification.
#[derive(Clone, Debug, Default)]
pub(crate) struct IpIdObserver {
    sequential: u8,
    swapped: u8,
    jumps: u8,
}

impl IpIdObserver {
    /// The behaviour to signal for a packet after `newest`.
    pub(crate) fn choose(&mut self, header: &Header, newest: &Context) -> IpIdBehavior {
        let (Some(id), Some(old)) = (header.ip_id(), newest.header.ip_id()) else {
            return IpIdBehavior::Random;
        };
        if id == 0 && (old == 0 || newest.ip_id_behavior == IpIdBehavior::Zero) {
            return IpIdBehavior::Zero;
        }
        let is_small = |id: u16, old: u16| id.wrapping_sub(old) <= SMALL_STEP;
        let sequential = is_small(id, old);
        let swapped = !sequential && is_small(id.swap_bytes(), old.swap_bytes());
        let count = |is: bool, so_far: u8| if is { so_far.saturating_add(1) } else { 0 };
        self.sequential = count(sequential, self.sequential);
        self.swapped = count(swapped, self.swapped);
        self.jumps = count(!sequential && !swapped, self.jumps);
        match newest.ip_id_behavior {
            IpIdBehavior::Random if self.sequential >= SMALL_STEPS => IpIdBehavior::Sequential,
            IpIdBehavior::Random if self.swapped >= SMALL_STEPS => IpIdBehavior::Swapped,
            IpIdBehavior::Random => IpIdBehavior::Random,
            _ if self.jumps >= JUMPS => IpIdBehavior::Random,
            IpIdBehavior::Swapped if swapped || self.jumps > 0 => IpIdBehavior::Swapped,
            _ if swapped => IpIdBehavior::Swapped,
            _ => IpIdBehavior::Sequential,
        }
    }
}

/// After how many packets without ECN bits the byte for them goes: signalling the change costs
/// about as much.
const QUIET_PACKETS: u8 = 5;

/// Decides whether the irregular chain carries the ECN bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct EcnObserver {
    quiet: u8,
}

impl EcnObserver {
    /// Whether they travel with this packet. Without them the decompressor keeps the bits of its
    /// newest packet, so they are left out only where they are zero in every possible one.
    pub(crate) fn choose(&mut self, header: &Header, references: &[Context]) -> bool {
        if header.has_ecn_bits() {
            self.quiet = 0;
            return true;
        }
        self.quiet = self.quiet.saturating_add(1);
        let was_used = references.last().is_some_and(|newest| newest.ecn_used);
        (was_used && self.quiet < QUIET_PACKETS)
            || references
                .iter()
                .any(|reference| reference.header.has_ecn_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stride_of(steps: &[u32], current: u16, references: usize) -> u16 {
        let mut finder = StrideFinder::default();
        for &step in steps {
            finder.observe(step);
        }
        finder.choose(current, references)
    }

    #[test]
    fn the_stride_is_the_step_that_divides_the_others() {
        assert_eq!(stride_of(&[2920; 8], 0, 4), 2920);
        let mixed = [1460, 2920, 1460, 4380, 2920, 2920, 1460, 2920];
        assert_eq!(stride_of(&mixed, 0, 4), 1460);
        assert_eq!(stride_of(&[2920; 7], 0, 4), 0, "too few steps");
        assert_eq!(stride_of(&[0; 16], 2920, 4), 2920, "duplicates");
    }

    #[test]
    fn a_stride_that_serves_most_steps_stays() {
        let mut steps = [2920; 16];
        steps[3] = 1460;
        steps[9] = 100_000;
        assert_eq!(stride_of(&steps, 2920, 4), 2920);
        let irregular: std::vec::Vec<u32> = (0..16).map(|i| 1000 + 37 * i).collect();
        assert_eq!(stride_of(&irregular, 0, 1), 0);
    }
}
