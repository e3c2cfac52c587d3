//! The sums of the log, added up anew.

use super::SentLog;
use super::records::{Fate, Transmission};
use crate::send::packet_number::PacketNumber;

impl SentLog {
    /// Records that [`SentLog::check`] looks at.
    pub(crate) fn records(&self) -> usize {
        self.segments.len() + self.transmissions.len()
    }

    /// The sums that must agree with the records.
    ///
    /// # Errors
    /// Names the first that does not.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let [mut in_flight, mut sacked, mut lost] = [0; 3];
        for segment in &self.segments {
            *match segment.fate {
                Fate::InFlight => &mut in_flight,
                Fate::Sacked => &mut sacked,
                Fate::Lost => &mut lost,
            } += segment.len();
        }
        if in_flight != self.in_flight {
            return Err("bytes in flight differ from the log's sum");
        }
        if sacked != self.sacked_bytes {
            return Err("selectively acknowledged bytes differ from the log's sum");
        }
        if lost != self.lost_bytes || self.lost.positions() != self.lost_bytes {
            return Err("lost bytes differ from the log's sum");
        }
        if self.sacked.positions() != self.sacked_bytes {
            return Err("ranges selectively acknowledged are not those of whole segments");
        }
        let mut outstanding = 0;
        let to = self.next_number();
        let mut next = self.outstanding.first_in(PacketNumber(0)..to);
        if next.is_some_and(|first| first != self.first_outstanding) {
            return Err("the oldest outstanding transmission is another one");
        }
        while let Some(number) = next {
            let transmission = self
                .index_of(number)
                .and_then(|index| self.transmissions.get(index as usize));
            outstanding += transmission.map_or(0, Transmission::len);
            next = self.outstanding.first_in(number.next()..to);
        }
        if outstanding != self.in_flight {
            return Err("outstanding transmissions differ from bytes in flight");
        }
        Ok(())
    }
}
