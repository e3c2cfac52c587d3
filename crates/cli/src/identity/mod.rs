//! Who this installation is: `tack id`.

mod args;
mod command;
mod store;

pub(crate) use args::IdArgs;
pub(crate) use command::id;
pub(crate) use store::OwnIdentity;
