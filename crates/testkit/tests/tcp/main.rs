//! What `tack-tcp` does on the wire, behaviour by behaviour, in virtual time. Each test names the RFC section it checks.

mod acknowledgements;
mod close;
mod handshake;
mod loss_recovery;
mod options;
mod retransmission_timeout;
mod security;
mod settings;
mod undo;
mod window;
