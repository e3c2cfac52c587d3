//! Counters of TCP/HACK at one radio.

/// Counters of one radio. An acknowledgement counts where it was made: at the compressing end,
/// unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HackStats {
    /// Acknowledgements that went to the transmit queue and were not taken out of it again.
    pub native: u64,
    /// Acknowledgements that were compressed.
    pub compressed: u64,
    /// Bytes of them, as the codec made them.
    pub compressed_bytes: u64,
    /// Bytes of them before.
    pub original_bytes: u64,
    /// Compressed ones that were sent as they are in the end, because no response came in time to
    /// carry them.
    pub flushed: u64,
    /// Compressed ones that were in a response and whose confirmation was not waited for (HACK,
    /// Fig. 7).
    pub cleared: u64,
    /// Descriptors in responses, each repetition counted.
    pub carried: u64,
    /// Responses that carried something.
    pub responses: u64,
    /// Those that lasted no longer than AIFS of best effort (DIFS) beyond a response without.
    pub fitting: u64,
    /// Most descriptors retained at once.
    pub retained_max: u64,
    /// Master sequence numbers given, those that were given again because nothing with them was
    /// sent included.
    pub msn: u64,
    /// At the rebuilding end: acknowledgements rebuilt.
    pub rebuilt: u64,
    /// At the rebuilding end: those discarded because they had come before.
    pub duplicates: u64,
    /// At the rebuilding end: those whose CRC was wrong.
    pub crc_failures: u64,
    /// At the rebuilding end: those without context, or malformed.
    pub decode_failures: u64,
    /// At the rebuilding end: those that were rebuilt and differ from what was compressed, as only
    /// a simulator can tell.
    pub differing: u64,
}
