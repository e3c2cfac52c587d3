//! What `tack exec` exits with besides the command's own codes.

/// The exit code where `tack exec` itself fails, as other programs that run a command have it.
pub(crate) const EXEC_FAILED: u8 = 125;

/// Exit codes in the long help.
pub(crate) const EXEC_EXIT_CODES: &str = "\
Exit codes:
  125  tack itself failed: wrong usage (or 2), no peer, no namespaces
  126  the command was found and cannot be run
  127  the command was not found
  128 + N  the command was ended by signal N
  other  the exit code of the command";
