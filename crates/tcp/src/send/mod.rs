//! The sending half: what is queued, what is in flight, and what the peer's window lets out.

pub(crate) mod audit;
pub(crate) mod loss_sign;
pub(crate) mod numbering;
pub(crate) mod packet_number;
pub(crate) mod queue;
pub(crate) mod sent;
pub(crate) mod window;
