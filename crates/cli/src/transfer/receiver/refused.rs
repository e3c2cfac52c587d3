//! Why the receiver does not store an entry.

use std::io;

use crate::transfer::protocol::{MAX_HOLES, Refusal};

/// An entry that is not stored, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub(crate) reason: Refusal,
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn new(reason: Refusal, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// A refusal because of an error of the receiver's file system.
    pub(crate) fn storage(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::new(Refusal::NoSpace, "the receiver's disk is full")
            }
            io::ErrorKind::AlreadyExists => Self::exists(),
            _ => Self::new(
                Refusal::Storage,
                format!("the receiver cannot store it: {error}"),
            ),
        }
    }

    /// A refusal because the holes of a file exceed the limit.
    pub(crate) fn holes() -> Self {
        Self::new(
            Refusal::Storage,
            format!("its holes exceed the limit of {} TiB", MAX_HOLES >> 40),
        )
    }

    pub(super) fn exists() -> Self {
        Self::new(
            Refusal::Exists,
            "the name exists; choose another with --name, or start the receiver with --overwrite, which replaces files and adds to folders",
        )
    }

    pub(super) fn differs() -> Self {
        Self::new(
            Refusal::Exists,
            "the name exists, and its size or time differs; choose another with --name, keep both with --rename, or start the receiver with --overwrite or --update",
        )
    }

    /// A name such as `.ssh`: what programs read without being asked to.
    pub(super) fn hidden() -> Self {
        Self::new(
            Refusal::Name,
            "the receiver refuses top-level names that begin with '.' unless it is started with --overwrite; choose another name with --name",
        )
    }
}
