//! What the peer's acknowledgements say and promise, and what the peer has to know about our
//! sending.

use alloc::boxed::Box;

use tack_wire::Segment;
use tack_wire::tack::Sync;

use crate::ack::feedback::{AckInfo, FeedbackReader, InvalidFeedback, ReadContext};
use crate::ack::policy::AckContract;

/// The peer's acknowledgements.
#[derive(Debug)]
pub(super) struct PeerFeedback {
    pub(super) reader: Box<dyn FeedbackReader>,
    /// What the acknowledgement at hand says; kept so that reading allocates nothing.
    pub(super) info: AckInfo,
    pub(super) contract: AckContract,
    /// What has to leave with the next output.
    pub(super) sync: Option<Sync>,
}

impl PeerFeedback {
    /// Acknowledgements are read by `reader`.
    pub(super) fn new(reader: Box<dyn FeedbackReader>) -> Self {
        Self {
            info: AckInfo::default(),
            contract: reader.contract(),
            sync: None,
            reader,
        }
    }

    /// What the peer promises, as far as known.
    #[inline]
    pub(super) fn contract(&self) -> &AckContract {
        &self.contract
    }

    /// False once what the peer reports beyond its cumulative acknowledgement has turned out to
    /// make no sense.
    #[inline]
    pub(super) fn is_intelligible(&self) -> bool {
        self.reader.is_intelligible()
    }

    /// True as long as it is of use to stamp segments.
    #[inline]
    pub(super) fn stamps(&self) -> bool {
        self.reader.stamps()
    }

    /// True when payload that comes with a feedback option is outside the sequence space.
    #[inline]
    pub(super) fn separates_lists(&self) -> bool {
        self.reader.separates_lists()
    }

    /// Heap held, bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.reader)
    }

    /// Gives back the heap that is kept for the next acknowledgement.
    pub(super) fn trim(&mut self) {
        self.info.trim();
    }

    /// Reads what an acknowledgement says beyond its number into [`Self::info`].
    ///
    /// # Errors
    /// [`InvalidFeedback`]: the whole segment is to be dropped.
    pub(super) fn read(
        &mut self,
        context: &ReadContext<'_>,
        segment: &Segment<'_>,
        lists: &[u8],
    ) -> Result<(), InvalidFeedback> {
        self.info.clear();
        self.reader.read(context, segment, lists, &mut self.info)
    }

    /// Takes what has to leave with the next output.
    pub(super) fn take_sync(&mut self) -> Option<Sync> {
        self.sync.take()
    }
}
