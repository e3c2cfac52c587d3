//! What the peer's acknowledgements say and promise, and what the peer has to know about our
//! sending.

use alloc::boxed::Box;

use tack_wire::Segment;
use tack_wire::tack::Sync;

use crate::ack::feedback::{AckInfo, FeedbackReader, InvalidFeedback, ReadContext, SenderState};
use crate::ack::policy::AckContract;

/// The peer's acknowledgements.
#[derive(Debug)]
pub(super) struct PeerFeedback {
    pub(super) reader: Box<dyn FeedbackReader>,
    /// What the acknowledgement at hand says; kept so that reading allocates nothing.
    pub(super) info: AckInfo,
    pub(super) contract: AckContract,
    /// The version of the reader's contract that this is.
    contract_version: u32,
    /// What has to leave with the next output.
    pub(super) sync: Option<Sync>,
    /// What the reader says of itself, and changes when it reads: asked for several times with each
    /// segment.
    is_intelligible: bool,
    /// A segment with data and without a report would tell the reader nothing while nothing is
    /// outstanding, and its contract is the one that is followed.
    is_settled: bool,
}

impl PeerFeedback {
    /// Acknowledgements are read by `reader`.
    pub(super) fn new(reader: Box<dyn FeedbackReader>) -> Self {
        Self {
            info: AckInfo::default(),
            contract: reader.contract(),
            contract_version: reader.contract_version(),
            sync: None,
            is_intelligible: reader.is_intelligible(),
            is_settled: false,
            reader,
        }
    }

    /// What the peer promises, as far as known.
    #[inline]
    pub(super) fn contract(&self) -> &AckContract {
        &self.contract
    }

    /// The reader's contract, where it is another than the one that is followed.
    #[inline]
    pub(super) fn new_contract(&mut self) -> Option<AckContract> {
        let version = self.reader.contract_version();
        if core::mem::replace(&mut self.contract_version, version) == version {
            debug_assert_eq!(self.contract, self.reader.contract());
            return None;
        }
        Some(self.reader.contract()).filter(|contract| *contract != self.contract)
    }

    /// False once what the peer reports beyond its cumulative acknowledgement has turned out to
    /// make no sense.
    #[inline]
    pub(super) fn is_intelligible(&self) -> bool {
        debug_assert_eq!(self.is_intelligible, self.reader.is_intelligible());
        self.is_intelligible
    }

    /// True when a segment with data and without a report has nothing to say while nothing is
    /// outstanding: to read it would change nothing.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
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
        let result = self.reader.read(context, segment, lists, &mut self.info);
        self.is_intelligible = self.reader.is_intelligible();
        // The connection follows the contract right after it.
        self.is_settled = self.reader.is_settled();
        result
    }

    /// Asks whether the peer has to know something, which then leaves with the next output.
    pub(super) fn poll_sync(&mut self, state: &SenderState) {
        if let Some(sync) = self.reader.poll_sync(state) {
            self.sync = Some(sync);
            // What the peer promises depends on what it knows.
            self.is_settled = false;
        }
    }

    /// Takes what has to leave with the next output.
    pub(super) fn take_sync(&mut self) -> Option<Sync> {
        self.sync.take()
    }
}
