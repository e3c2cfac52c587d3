//! Airtime of PPDUs.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tack_base::Rate;
use tack_wlan::phy::{GuardInterval, ModeQuery, Preamble, Standard, Timing, Width};

/// Airtime of a PPDU in seconds, with preamble and signal extension.
///
/// :param psdu: bytes of the PSDU: MAC headers and FCS included, delimiters of an A-MPDU too.
/// :param standard: ``"802.11b"``, ``"802.11a"``, ``"802.11g"``, ``"802.11n"``, ``"802.11ac"`` or
///     ``"802.11ax"``.
/// :param rate: PHY rate with its unit, such as ``"54Mbps"``. Where several modes fit: the fewest
///     streams, then the narrowest channel, then the longest guard interval.
/// :param mcs: index of the modulation and coding scheme, of 802.11n, ac and ax.
/// :param spatial_streams: spatial streams, 1 or more.
/// :param channel_width_mhz: 20, 40, 80 or 160 MHz.
/// :param guard_interval_ns: 400, 800, 1600 or 3200 ns.
/// :raises ValueError: where the standard has no such mode.
///
/// Sources: IEEE 802.11-2020, clauses 16 (b), 17 (a), 18 (g), 19 (n), 21 (ac); 802.11ax-2021.
#[pyfunction]
#[pyo3(signature = (psdu, standard, rate=None, mcs=None, spatial_streams=None, channel_width_mhz=None, guard_interval_ns=None))]
pub(crate) fn airtime(
    psdu: usize,
    standard: &str,
    rate: Option<&str>,
    mcs: Option<u8>,
    spatial_streams: Option<u8>,
    channel_width_mhz: Option<u16>,
    guard_interval_ns: Option<u16>,
) -> PyResult<f64> {
    /// The longest PSDU of any generation (802.11ax, aPSDUMaxLength), bytes.
    const LONGEST: usize = 6_500_631;
    if psdu > LONGEST {
        return Err(PyValueError::new_err(format!(
            "expected a PSDU of at most {LONGEST} bytes, got {psdu}"
        )));
    }
    let wrong = |what: &str, got: String, right: &str| {
        PyValueError::new_err(format!("expected {what} ({right}), got {got}"))
    };
    let standard = Standard::ALL
        .into_iter()
        .find(|one| one.name() == standard)
        .ok_or_else(|| {
            wrong(
                "a standard",
                format!("{standard:?}"),
                "802.11b, a, g, n, ac or ax, as \"802.11n\"",
            )
        })?;
    let rate = rate
        .map(|text| {
            text.parse::<Rate>()
                .map_err(|error| PyValueError::new_err(format!("rate {text:?}: {error}")))
        })
        .transpose()?;
    let width = channel_width_mhz
        .map(|mhz| match mhz {
            20 => Ok(Width::W20),
            40 => Ok(Width::W40),
            80 => Ok(Width::W80),
            160 => Ok(Width::W160),
            _ => Err(wrong(
                "a channel width in MHz",
                mhz.to_string(),
                "20, 40, 80 or 160",
            )),
        })
        .transpose()?;
    let guard = guard_interval_ns
        .map(|ns| match ns {
            400 => Ok(GuardInterval::Ns400),
            800 => Ok(GuardInterval::Ns800),
            1600 => Ok(GuardInterval::Ns1600),
            3200 => Ok(GuardInterval::Ns3200),
            _ => Err(wrong(
                "a guard interval in ns",
                ns.to_string(),
                "400, 800, 1600 or 3200",
            )),
        })
        .transpose()?;
    let query = ModeQuery {
        rate,
        mcs,
        streams: spatial_streams,
        width,
        guard,
        ..ModeQuery::default()
    };
    let mode = query.find(standard).into_iter().next().ok_or_else(|| {
        PyValueError::new_err(format!(
            "{} has no mode with this rate or MCS, these streams, width and guard interval",
            standard.name()
        ))
    })?;
    let timing = Timing::new(standard, standard.band(), Preamble::default());
    Ok(timing.airtime(mode, psdu).as_secs_f64())
}
