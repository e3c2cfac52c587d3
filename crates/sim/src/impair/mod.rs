//! Impairments: the faults of a path besides queueing and delay. A file has each family; each has a
//! stream of random numbers of its own, so that turning one on does not change what another does.

pub mod damage;
pub mod loss;
pub mod mark;
pub mod middlebox;
pub mod order;
pub mod outage;
