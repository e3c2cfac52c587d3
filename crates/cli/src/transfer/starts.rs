//! Where the frames of a stream begin, so that it is cut at the right places.

use super::protocol::{HEAD, Head, Kind};

/// A data frame of at least so many bytes begins a buffer.
pub(super) const LARGE: usize = 64 << 10;

/// Follows the frames of a stream through buffers. What breaks the protocol is passed on as it is:
/// the reader notices it.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// Bytes until the next frame begins, from the beginning of the buffer.
    next: usize,
}

impl Starts {
    /// How many bytes at the front of a buffer are to be handed over, of those that are `here` in
    /// it; the others belong to the beginning of the next buffer. 0 where what is here is to stay
    /// until more comes: a part of a head, or of a large data frame. Such a frame fits a buffer.
    pub(super) fn cut(&mut self, here: &[u8]) -> usize {
        while let Some((head, _)) = here.get(self.next..).and_then(<[u8]>::split_first_chunk) {
            let Ok(head) = Head::parse(*head) else {
                // Nothing can be known of what follows.
                self.next = usize::MAX;
                break;
            };
            let end = self.next + HEAD + head.len;
            if head.kind == Kind::Data && head.len >= LARGE && end > here.len() {
                break;
            }
            self.next = end;
        }
        let cut = self.next.min(here.len());
        self.advance(cut);
        cut
    }

    /// All of what is `here` is handed over, although it is a part of a frame.
    pub(super) fn pass(&mut self, here: &[u8]) {
        if let Some((head, _)) = here.split_first_chunk() {
            self.next = Head::parse(*head).map_or(usize::MAX, |head| HEAD + head.len);
        }
        self.advance(here.len());
    }

    fn advance(&mut self, by: usize) {
        if self.next != usize::MAX {
            self.next = self.next.saturating_sub(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::protocol::{MAX_DATA, Request, data_head};

    fn data(len: usize) -> Vec<u8> {
        let mut frame = data_head(len).to_vec();
        frame.resize(HEAD + len, 7);
        frame
    }

    fn control() -> Vec<u8> {
        let mut frame = Vec::new();
        Request::Seek(3).encode(&mut frame);
        frame
    }

    #[test]
    fn a_large_frame_begins_a_buffer_and_stays_together() {
        let mut starts = Starts::default();
        let (small, large) = (control(), data(MAX_DATA));
        let both = [&small[..], &large].concat();
        assert_eq!(starts.cut(&both[..small.len() + 100]), small.len());
        for here in [100, 1000, large.len() - 1] {
            assert_eq!(starts.cut(&large[..here]), 0, "{here}");
        }
        assert_eq!(starts.cut(&large), large.len());
        // One that is complete need not be first.
        let both = [&small[..], &data(LARGE)].concat();
        assert_eq!(starts.cut(&both), both.len());
    }

    #[test]
    fn heads_stay_together_and_other_frames_do_not() {
        let mut starts = Starts::default();
        let (first, second) = (data(1000), data(LARGE - 1));
        let both = [&first[..], &second].concat();
        assert_eq!(starts.cut(&both[..HEAD - 1]), 0);
        assert_eq!(starts.cut(&both[..HEAD]), HEAD);
        assert_eq!(starts.cut(&first[HEAD..]), first.len() - HEAD);
        assert_eq!(starts.cut(&both[..first.len() + 4]), first.len());
        assert_eq!(starts.cut(&second[..2000]), 2000);
        let end = [&second[2000..], &first[..2]].concat();
        assert_eq!(starts.cut(&end), end.len() - 2);
    }

    #[test]
    fn what_came_slowly_is_followed_and_what_is_no_frame_is_passed_on() {
        let mut starts = Starts::default();
        let large = data(MAX_DATA);
        assert_eq!(starts.cut(&large[..1000]), 0);
        starts.pass(&large[..1000]);
        let rest = [&large[1000..], &large[..10]].concat();
        assert_eq!(starts.cut(&rest), rest.len() - 10);
        assert_eq!(starts.cut(&large), large.len());
        for _ in 0..2 {
            assert_eq!(starts.cut(&[0x7f; 100]), 100);
        }
    }
}
