//! A radio whose channel access is counted with that of others for a time.

use tack_base::Instant;

use super::Station;
use crate::mac::access::SharedAccess;

impl<M: Clone> Station<M> {
    /// True when this radio has nothing to do by itself but to wait for the medium, if it waits for
    /// anything.
    fn is_bystander(&self) -> bool {
        self.exchange.is_none()
            && self.response.is_none()
            && !self.is_sending
            && self.beacons.is_none()
            && self.next_hold == Instant::FAR_FUTURE
            && self.next_interrupt() == Instant::FAR_FUTURE
            && self.next_agreement() == Instant::FAR_FUTURE
    }

    /// Lets its channel access be counted with that of others, if that comes to the same. Until
    /// [`Station::leave`] it is told neither what the medium does nor to send, and nothing may
    /// be queued.
    /// The medium is busy until `until` at least.
    pub fn join(&self, shared: &mut SharedAccess, until: Instant) -> bool {
        self.is_bystander() && shared.join(self.id.0, &self.access, until)
    }

    /// Counts for itself again. `reception` says when the header of what is being received will
    /// have been read.
    pub fn leave(&mut self, shared: &mut SharedAccess, reception: Option<Instant>) {
        shared.leave(self.id.0, &mut self.access);
        self.reception = reception;
    }
}
