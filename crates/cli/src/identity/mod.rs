//! Who this installation is: `tack id`.

mod args;
mod command;
mod keep;

pub(crate) use args::IdArgs;
pub(crate) use command::id;
pub(crate) use keep::Own;
