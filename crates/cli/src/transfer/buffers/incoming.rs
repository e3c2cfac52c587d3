//! The thread's view of an incoming stream.

use std::io::{self, BufRead, Read};

use tokio::sync::mpsc;

use super::{Buffer, MEMORY};
use crate::transfer::arrived::Arrived;
use crate::transfer::pages::Pages;
use crate::transfer::protocol::HEAD;

/// The thread's view of an incoming stream: the buffers of [`feed`], in place.
pub(crate) struct Incoming {
    full: mpsc::Receiver<io::Result<Buffer>>,
    spent: mpsc::Sender<Buffer>,
    current: Option<Buffer>,
    position: usize,
}

impl Incoming {
    pub(crate) fn new(
        full: mpsc::Receiver<io::Result<Buffer>>,
        spent: mpsc::Sender<Buffer>,
    ) -> Self {
        Self {
            full,
            spent,
            current: None,
            position: 0,
        }
    }

    /// At most `most` of the next bytes, those that are in one piece; `None` at the end of the
    /// stream. They are to be consumed.
    pub(crate) fn piece(&mut self, most: usize) -> io::Result<Option<Piece<'_>>> {
        let len = self.fill_buf()?.len().min(most);
        let start = self.position;
        let buffer = self.current.as_mut().filter(|_| len > 0);
        Ok(buffer.map(|buffer| Piece { buffer, start, len }))
    }
}

/// A piece of an incoming stream.
pub(crate) struct Piece<'a> {
    buffer: &'a mut Buffer,
    start: usize,
    len: usize,
}

impl Arrived for Piece<'_> {
    fn bytes(&self) -> &[u8] {
        &self.buffer.filled()[self.start..][..self.len]
    }

    fn exchange(&mut self, other: Pages) -> Result<Pages, Pages> {
        let is_all = self.start == HEAD && self.start + self.len == self.buffer.filled;
        if !is_all || other.len() != MEMORY {
            return Err(other);
        }
        Ok(std::mem::replace(&mut self.buffer.pages, other))
    }
}

impl BufRead for Incoming {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self
            .current
            .as_ref()
            .is_none_or(|buffer| self.position == buffer.filled)
        {
            if let Some(buffer) = self.current.take() {
                // Cannot be full; a feeder that is gone needs no buffers.
                let _ = self.spent.try_send(buffer);
            }
            self.position = 0;
            self.current = self.full.blocking_recv().transpose()?;
        }
        Ok(self
            .current
            .as_ref()
            .map_or(&[], |buffer| &buffer.filled()[self.position..]))
    }

    fn consume(&mut self, amount: usize) {
        self.position += amount;
        debug_assert!(self.current.as_ref().map_or(0, |buffer| buffer.filled) >= self.position);
    }
}

impl Read for Incoming {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let amount = available.len().min(out.len());
        out[..amount].copy_from_slice(&available[..amount]);
        self.consume(amount);
        Ok(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BUFFER, CONTENT, INCOMING, Ring};
    use super::*;
    use crate::transfer::protocol::{MAX_DATA, data_head};

    /// Only a frame that fills its buffer gives its memory away, and the stream goes on after it.
    #[test]
    fn memory_of_a_whole_frame_can_be_exchanged() {
        let ring = Ring::new(INCOMING);
        let (mut incoming, mut spent) =
            (Incoming::new(ring.full_out, ring.spent_in), ring.spent_out);
        let mut fill = |frames: &[&[u8]]| {
            let mut buffer = spent.try_recv().unwrap();
            buffer.filled = 0;
            for frame in frames {
                buffer.append(frame);
            }
            ring.full_in.try_send(Ok(buffer)).unwrap();
        };
        let mut large = data_head(MAX_DATA).to_vec();
        large.resize(BUFFER, 7);
        let small = [&data_head(10)[..], &[1; 10]].concat();
        fill(&[&large]);
        fill(&[&small, &small]);
        incoming.consume_head();
        let mut piece = incoming.piece(MAX_DATA).unwrap().unwrap();
        let mut other = Pages::new(MEMORY);
        other.fill(9);
        let had = piece.exchange(other).unwrap();
        assert!(had[CONTENT..].iter().all(|byte| *byte == 7));
        assert!(piece.bytes().iter().all(|byte| *byte == 9));
        incoming.consume(MAX_DATA);
        for _ in 0..2 {
            incoming.consume_head();
            let mut piece = incoming.piece(10).unwrap().unwrap();
            assert_eq!(piece.bytes(), [1; 10]);
            assert!(piece.exchange(Pages::new(MEMORY)).is_err());
            assert_eq!(piece.bytes(), [1; 10]);
            incoming.consume(10);
        }
        drop(ring.full_in);
        assert!(incoming.piece(1).unwrap().is_none());
    }

    impl Incoming {
        fn consume_head(&mut self) {
            let mut head = [0; HEAD];
            self.read_exact(&mut head).unwrap();
        }
    }
}
