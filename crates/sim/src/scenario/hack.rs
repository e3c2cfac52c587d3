//! The keys of TCP/HACK in the `[wlan]` table.

use std::time::Duration;

use tack_wlan::WorldConfig;
use tack_wlan::mac::hack::{HackConfig, Variant};

use super::error::ScenarioError;
use super::reader::Reader;

/// How acknowledgements are compressed: the modes of `tack-rohc`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HackCodec {
    /// RFC 6846 bit for bit.
    Rfc,
    /// Timestamps that did not move take no byte, those that did mostly one.
    #[default]
    Lean,
    /// The same without the TCP checksum.
    LeanNoChecksum,
}

/// The values of `hack`.
pub const HACK_VARIANTS: [(&str, Variant); 5] = [
    ("off", Variant::Off),
    ("opportunistic", Variant::Opportunistic),
    ("timer", Variant::Timer),
    ("more-data", Variant::MoreData),
    ("timestamp-echo", Variant::TimestampEcho),
];

const CODECS: [(&str, HackCodec); 3] = [
    ("rfc", HackCodec::Rfc),
    ("lean", HackCodec::Lean),
    ("lean-no-checksum", HackCodec::LeanNoChecksum),
];

/// What waits longer has drawn a retransmission timeout.
const LONGEST_HOLD: Duration = Duration::from_secs(1);

pub(super) fn read(
    table: &mut Reader<'_>,
    world: &mut WorldConfig,
) -> Result<HackCodec, ScenarioError> {
    let variant = table.choice("hack", &HACK_VARIANTS)?.unwrap_or_default();
    world.hack = HackConfig::new(variant);
    let hold = table.duration("hack_timer")?;
    let codec = table.choice("hack_codec", &CODECS)?;
    for (key, is_given) in [
        ("hack_timer", hold.is_some()),
        ("hack_codec", codec.is_some()),
    ] {
        if is_given && !world.hack.is_on() {
            return Err(table.fail(key, "has no effect with hack = \"off\""));
        }
    }
    match hold {
        Some(hold) if hold.is_zero() || hold > LONGEST_HOLD => {
            return Err(table.fail("hack_timer", "must be above zero and at most 1s"));
        }
        Some(hold) => world.hack.hold = hold,
        None => {}
    }
    Ok(codec.unwrap_or_default())
}
