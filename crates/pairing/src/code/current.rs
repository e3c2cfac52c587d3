//! The waiting side's code: one exchange at a time, one attempt.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Code;

/// The pause before a code that replaces a burnt one, when nobody presses a key: the first, and the
/// longest that it doubles to.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// So many codes are burnt before no further one comes by itself. A neighbour has so many attempts
/// in all, and one of them succeeds with a chance of one in 3,277.
const MOST_BURNT: u32 = 20;

/// Holds the code of a waiting program, and gives it out for one attempt.
///
/// The code is burnt from the moment its [`Attempt`] is taken, unless the attempt ends with
/// `Attempt::confirmed`: a peer that goes away after our message may have made its guess.
#[derive(Debug)]
pub struct CurrentCode {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Counts codes, so that an attempt knows whether its code still stands here.
    generation: u64,
    slot: Slot,
}

#[derive(Debug)]
enum Slot {
    Open(Code),
    /// An attempt is in progress.
    Taken(u16),
    /// The code was confirmed, and is used.
    Used(u16),
    /// An attempt failed.
    Burnt(u16),
    /// No code is offered.
    Closed,
}

/// Why a code cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// The current code has another number.
    #[error("no code with this number is waited for here")]
    Number,
    /// Another peer tries this code at the moment.
    #[error("another peer is trying this code at the moment")]
    Busy,
    /// It was tried with wrong words.
    #[error(
        "this code was tried before with wrong words, and each code permits one attempt; ask for a new one"
    )]
    Burnt,
    /// The code was used.
    #[error("this code has been used already; ask for a new one")]
    Used,
}

impl CurrentCode {
    /// Waits for this code, or for none.
    pub fn new(code: Option<Code>) -> Arc<Self> {
        let slot = code.map_or(Slot::Closed, Slot::Open);
        Arc::new(Self {
            state: Mutex::new(State {
                generation: 0,
                slot,
            }),
        })
    }

    /// Takes the code for one attempt.
    ///
    /// # Errors
    ///
    /// There is none with this number, or it must not be tried (again).
    pub fn take(self: &Arc<Self>, number: u16) -> Result<Attempt, Unavailable> {
        let mut state = self.state();
        let why = match &state.slot {
            Slot::Open(code) if code.number() == number => {
                let code = code.clone();
                state.slot = Slot::Taken(number);
                return Ok(Attempt {
                    current_code: Arc::clone(self),
                    generation: state.generation,
                    code,
                    confirmed: false,
                });
            }
            Slot::Taken(held) if *held == number => Unavailable::Busy,
            Slot::Used(held) if *held == number => Unavailable::Used,
            Slot::Burnt(held) if *held == number => Unavailable::Burnt,
            _ => Unavailable::Number,
        };
        Err(why)
    }

    /// Puts a new code in place, whatever became of the one before.
    pub fn renew(&self, code: Code) {
        let mut state = self.state();
        state.generation += 1;
        state.slot = Slot::Open(code);
    }

    /// True when the code was tried with wrong words, and a new one is due.
    pub fn is_burnt(&self) -> bool {
        matches!(self.state().slot, Slot::Burnt(_))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long to wait before a new code when `burnt` were burnt; `None` where only a person may ask
/// for one: guesses are bounded in all.
pub fn pause(burnt: u32) -> Option<Duration> {
    let pause = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(burnt.saturating_sub(1)));
    (burnt < MOST_BURNT).then_some(pause.min(LONGEST_PAUSE))
}

/// One attempt with a code; burns it when dropped without confirmation.
#[derive(Debug)]
pub struct Attempt {
    current_code: Arc<CurrentCode>,
    generation: u64,
    code: Code,
    confirmed: bool,
}

impl Attempt {
    /// The code that is tried.
    pub(crate) fn code(&self) -> &Code {
        &self.code
    }

    /// The peer proved the code.
    pub(crate) fn confirmed(mut self) {
        self.confirmed = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = self.current_code.state();
        // A new code may stand there by now.
        if state.generation == self.generation {
            let number = self.code.number();
            state.slot = if self.confirmed {
                Slot::Used(number)
            } else {
                Slot::Burnt(number)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current_code() -> Arc<CurrentCode> {
        CurrentCode::new(Some("7-guitarist-orca".parse().unwrap()))
    }

    #[test]
    fn a_code_permits_one_attempt_at_a_time_and_one_at_all() {
        let current_code = current_code();
        assert_eq!(current_code.take(8).unwrap_err(), Unavailable::Number);
        let attempt = current_code.take(7).unwrap();
        assert_eq!(current_code.take(7).unwrap_err(), Unavailable::Busy);
        assert!(!current_code.is_burnt());
        drop(attempt);
        assert!(current_code.is_burnt());
        assert_eq!(current_code.take(7).unwrap_err(), Unavailable::Burnt);
        current_code.renew("7-hurricane-tiger".parse().unwrap());
        current_code.take(7).unwrap().confirmed();
        assert!(!current_code.is_burnt());
        assert_eq!(current_code.take(7).unwrap_err(), Unavailable::Used);
    }

    #[test]
    fn an_old_attempt_does_not_burn_the_new_code() {
        let current_code = current_code();
        let old = current_code.take(7).unwrap();
        current_code.renew("7-hurricane-tiger".parse().unwrap());
        let new = current_code.take(7).unwrap();
        drop(old);
        assert_eq!(current_code.take(7).unwrap_err(), Unavailable::Busy);
        drop(new);
        assert!(current_code.is_burnt());
    }

    #[test]
    fn without_a_code_nothing_is_given_out() {
        assert_eq!(
            CurrentCode::new(None).take(7).unwrap_err(),
            Unavailable::Number
        );
    }

    #[test]
    fn pauses_grow_to_a_bound_and_codes_end() {
        let seconds = |burnt| pause(burnt).map(|pause| pause.as_secs());
        assert_eq!(seconds(1), Some(10));
        assert_eq!(seconds(2), Some(20));
        assert_eq!(seconds(7), Some(600));
        assert_eq!(seconds(19), Some(600));
        assert_eq!(seconds(20), None);
        assert_eq!(seconds(u32::MAX), None);
        // Codes that nobody asked for, the first one included.
        let guesses = 1 + (1..).take_while(|burnt| pause(*burnt).is_some()).count();
        assert_eq!(guesses, 20);
    }
}
