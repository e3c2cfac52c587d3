//! First in, first out, drop-tail.

use super::{Admission, Discipline, Waiting};
use crate::frame::Msdu;

/// Packets leave in the order in which they came, and one that finds the queue full is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fifo;

impl<M> Discipline<M> for Fifo {
    fn admit(&mut self, _msdu: &Msdu<M>, _waiting: Waiting<'_, M>) -> Admission {
        Admission::Append
    }
}
