//! What is wrong when an emulation does not start.

use tack_emulator::StartError;

use crate::exit::Failure;

/// Why an emulator did not start, for people and scripts.
pub(crate) fn cannot_start(error: StartError) -> Failure {
    match error {
        StartError::NoWireless | StartError::Families { .. } | StartError::Settings(_) => {
            Failure::usage(error)
        }
        StartError::Listen { .. } | StartError::System(_) => Failure::network(error),
        StartError::Namespaces(_) | StartError::Device { .. } => Failure::plain(error),
    }
}
