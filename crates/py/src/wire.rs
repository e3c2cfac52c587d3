//! TACK's option and lists.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tack_wire::tack::{Lists, ListsWriter, ReportKind, TackOption};

/// The fields of a TCP option of kind 253, given whole; `None` if it is not TACK's.
#[pyfunction]
pub(crate) fn parse_tack_option<'py>(
    py: Python<'py>,
    option: &[u8],
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let [253, len, body @ ..] = option else {
        return Ok(None);
    };
    if usize::from(*len) != option.len() {
        return Ok(None);
    }
    let Some(parsed) = TackOption::parse(body) else {
        return Ok(None);
    };
    let fields = PyDict::new(py);
    match parsed {
        TackOption::Syn(syn) => {
            fields.set_item("shape", "syn")?;
            fields.set_item("l", syn.segments)?;
            fields.set_item("beta", syn.beta)?;
        }
        TackOption::Data(stamp) => {
            fields.set_item("shape", "data")?;
            fields.set_item("number", stamp.number)?;
            fields.set_item("departure_us", stamp.departure)?;
        }
        TackOption::Report(report) => {
            fields.set_item("shape", "report")?;
            let kind = match report.kind {
                ReportKind::Tack => "tack",
                ReportKind::Window => "window",
                ReportKind::Event => "event",
                ReportKind::Frequency => "frequency",
            };
            fields.set_item("kind", kind)?;
            fields.set_item("lists", report.lists)?;
            fields.set_item("sync_echo", report.sync_echo)?;
            fields.set_item("loss_rate", f64::from(report.loss_rate) / 65_536.0)?;
            fields.set_item("number", report.number)?;
            fields.set_item("largest", report.largest)?;
            fields.set_item("largest_delay_us", report.largest_delay)?;
            fields.set_item(
                "echo_departure_us",
                report.timing.map(|timing| timing.departure),
            )?;
            fields.set_item("echo_delay_us", report.timing.map(|timing| timing.delay))?;
            fields.set_item(
                "delivery_rate_bps",
                report.rate.map(|rate| rate.saturating_mul(8)),
            )?;
            fields.set_item("above", report.above)?;
            fields.set_item("period_us", report.period)?;
        }
        TackOption::Loss(loss) => {
            fields.set_item("shape", "loss")?;
            fields.set_item("lists", loss.lists)?;
            fields.set_item("loss_rate", f64::from(loss.loss_rate) / 65_536.0)?;
            fields.set_item("number", loss.number)?;
            fields.set_item("largest", loss.largest)?;
            fields.set_item("largest_delay_us", loss.largest_delay)?;
            fields.set_item("above", loss.above)?;
            fields.set_item("before_gap", loss.before_gap)?;
            fields.set_item("after_gap", loss.after_gap)?;
        }
        TackOption::Sync(sync) => {
            fields.set_item("shape", "sync")?;
            fields.set_item("startup", sync.startup)?;
            fields.set_item("ack_loss_rate", f64::from(sync.ack_loss_rate) / 65_536.0)?;
            fields.set_item("number", sync.number)?;
            fields.set_item("rtt_min_us", sync.rtt_min)?;
            fields.set_item("rtt_us", sync.rtt)?;
        }
    }
    Ok(Some(fields))
}

/// Blocks `(start, end)` in bytes above the cumulative acknowledgement, and gaps `(distance,
/// count)` below the largest PKT.SEQ.
type Both = (Vec<(u64, u64)>, Vec<(u64, u64)>);

/// Both lists of a data field.
#[pyfunction]
pub(crate) fn parse_tack_lists(field: &[u8]) -> PyResult<Both> {
    let lists = Lists::parse(field)
        .map_err(|_| PyValueError::new_err("not a pair of lists (docs/wire-format.md)"))?;
    Ok((
        lists
            .blocks()
            .map(|block| (block.start, block.end))
            .collect(),
        lists.gaps().collect(),
    ))
}

/// The data field of both lists.
#[pyfunction]
pub(crate) fn emit_tack_lists(blocks: Vec<(u64, u64)>, gaps: Vec<(u64, u64)>) -> PyResult<Vec<u8>> {
    const MOST: u64 = u32::MAX as u64;
    let whole = |(start, end): &(u64, u64)| *start > 0 && start < end && *end <= MOST;
    let counted =
        |(distance, count): &(u64, u64)| *count > 0 && count <= distance && *distance <= MOST;
    if !blocks.iter().all(whole) || !gaps.iter().all(counted) {
        return Err(PyValueError::new_err(
            "expected blocks (start, end) with 0 < start < end and gaps (distance, count) with 0 < count <= distance, \
             all below 2**32",
        ));
    }
    // Two counts, and at most two varints of five bytes for each entry.
    let mut field = vec![0; 4 + 10 * (blocks.len() + gaps.len())];
    let mut writer = ListsWriter::new(&mut field);
    let mut fits = true;
    for (start, end) in blocks {
        fits &= writer.block(start..end);
    }
    for (distance, count) in gaps {
        fits &= writer.gap(distance, count);
    }
    let len = writer.finish();
    field.truncate(len);
    if !fits || Lists::parse(&field).is_err() {
        return Err(PyValueError::new_err(
            "expected at most 65,535 blocks from the highest down and gaps from the lowest number up, none overlapping",
        ));
    }
    Ok(field)
}
