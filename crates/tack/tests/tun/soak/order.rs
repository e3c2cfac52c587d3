//! What a connection of the soak is to do.

use tack_base::random::RandomStream;

/// What a connection is to do, as its opener tells the other side in its first bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) seed: u64,
    pub(super) up: u64,
    pub(super) down: u64,
    pub(super) ending: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// Both streams end, and both sides have all bytes.
    Clean,
    /// The opener, or the other side, aborts once so many bytes have been sent.
    Abort { opener: bool, after: u64 },
    /// One side lets go of the connection without reading on.
    Drop { opener: bool, after: u64 },
}

pub(super) const ORDER_LEN: usize = 33;

impl Order {
    pub(super) fn random(random: &mut RandomStream) -> Self {
        let len = |random: &mut RandomStream| match random.below(10) {
            0 => 0,
            1..8 => random.below(20_000),
            _ => random.below(400_000),
        };
        let (up, down) = (len(random), len(random));
        let opener = random.chance(0.5);
        let after = random.below(1 + if opener { up } else { down });
        let ending = match random.below(10) {
            0 | 1 => Ending::Abort { opener, after },
            2 => Ending::Drop { opener, after },
            _ => Ending::Clean,
        };
        Self {
            seed: random.next_u64(),
            up,
            down,
            ending,
        }
    }

    /// The opener ends the connection without waiting for the other side.
    pub(super) fn opener_breaks_off(&self) -> bool {
        match self.ending {
            Ending::Clean => false,
            Ending::Abort { opener, .. } | Ending::Drop { opener, .. } => opener,
        }
    }

    pub(super) fn bytes(&self) -> [u8; ORDER_LEN] {
        let (kind, after) = match self.ending {
            Ending::Clean => (0, 0),
            Ending::Abort { opener, after } => (1 + u8::from(opener), after),
            Ending::Drop { opener, after } => (3 + u8::from(opener), after),
        };
        let mut bytes = [kind; ORDER_LEN];
        let words = [self.seed, self.up, self.down, after];
        for (place, word) in bytes[1..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    pub(super) fn parse(bytes: &[u8; ORDER_LEN]) -> Self {
        let word = |number: usize| {
            u64::from_be_bytes(*bytes[1 + 8 * number..].first_chunk().expect("eight bytes"))
        };
        let after = word(3);
        let ending = match bytes[0] {
            0 => Ending::Clean,
            kind @ (1 | 2) => Ending::Abort {
                opener: kind == 2,
                after,
            },
            kind => Ending::Drop {
                opener: kind == 4,
                after,
            },
        };
        Self {
            seed: word(0),
            up: word(1),
            down: word(2),
            ending,
        }
    }
}
