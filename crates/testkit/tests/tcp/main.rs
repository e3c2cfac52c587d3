//! What `tack-tcp` does on the wire, behaviour by behaviour, in virtual time. Each test names the
//! RFC section it checks.

mod accurate_ecn;
mod acknowledgements;
mod adversaries;
mod application;
mod close;
mod ecn;
mod endpoint_memory;
mod endpoint_reuse;
mod endpoints;
mod floods;
mod half_open;
mod handshake;
mod hostile_feedback;
mod hostile_peers;
mod invalid_reports;
mod keep_alive;
mod loss_recovery;
mod lying_reports;
mod middleboxes;
mod mtu;
mod optimistic_receivers;
mod options;
mod pacing;
mod partly_stripped;
mod path_errors;
mod plugged;
mod random_operations;
mod retransmission_timeout;
mod security;
mod sequence_space;
mod settings;
mod stripping_boxes;
mod tack_peer;
mod tack_reports;
mod time_wait;
mod transfers;
mod undo;
mod window;

use tack_skip::is_long;
use tack_tcp::Algorithm;

/// BBR and CUBIC, and all controllers in the long form.
fn algorithms() -> &'static [Algorithm] {
    const ALL: &[Algorithm] = &Algorithm::ALL;
    if is_long() { ALL } else { &ALL[1..3] }
}
