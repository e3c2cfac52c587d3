//! TACK's option and lists.

use std::ops::RangeInclusive;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tack_wire::tack::{
    DataStamp, Lists, ListsWriter, LossReport, Report, ReportKind, Sync, TackOption, TackSyn,
    TimingEcho,
};

/// Names of the kinds of a report.
const KINDS: [(&str, ReportKind); 4] = [
    ("tack", ReportKind::Tack),
    ("window", ReportKind::Window),
    ("event", ReportKind::Event),
    ("frequency", ReportKind::Frequency),
];

/// Loss rates are in parts of it.
const LOSS_UNIT: f64 = 65_536.0;

/// The fields of a TCP option, given with kind and length; None if it is not TACK's
/// (docs/wire-format.md).
///
/// The key ``shape`` is ``"syn"``, ``"data"``, ``"report"``, ``"loss"`` or ``"sync"``. Units:
/// ``_us`` microseconds, ``_bps`` bits per second, loss rates 0 to 1.
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
            let kind = KINDS.iter().find(|(_, kind)| *kind == report.kind);
            fields.set_item("kind", kind.map(|(name, _)| *name))?;
            fields.set_item("lists", report.lists)?;
            fields.set_item("repeated", report.repeated)?;
            fields.set_item("sync_echo", report.sync_echo)?;
            fields.set_item("loss_rate", f64::from(report.loss_rate) / LOSS_UNIT)?;
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
            fields.set_item("loss_rate", f64::from(loss.loss_rate) / LOSS_UNIT)?;
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
            fields.set_item("ack_loss_rate", f64::from(sync.ack_loss_rate) / LOSS_UNIT)?;
            fields.set_item("number", sync.number)?;
            fields.set_item("rtt_min_us", sync.rtt_min)?;
            fields.set_item("rtt_us", sync.rtt)?;
        }
    }
    Ok(Some(fields))
}

/// The bytes of a TACK option, kind and length included (docs/wire-format.md).
///
/// :param fields: as ``parse_tack_option`` gives them. What is left out is 0, False or None.
/// :raises ValueError: where a field is unknown for the shape, missing, or out of its range.
#[pyfunction]
pub(crate) fn emit_tack_option(fields: &Bound<'_, PyDict>) -> PyResult<Vec<u8>> {
    let mut given = Fields {
        dict: fields,
        known: Vec::new(),
    };
    const SHAPES: &str = "\"syn\", \"data\", \"report\", \"loss\" or \"sync\"";
    let option = match given.text("shape")?.as_deref() {
        Some("syn") => TackOption::Syn(TackSyn {
            segments: given.byte("l", 1..=255)?,
            beta: given.byte("beta", 2..=255)?,
        }),
        Some("data") => TackOption::Data(DataStamp {
            number: given.word("number")?,
            departure: given.word("departure_us")?,
        }),
        Some("report") => TackOption::Report(given.report()?),
        Some("loss") => TackOption::Loss(LossReport {
            lists: given.flag("lists")?,
            loss_rate: given.rate("loss_rate")?,
            number: given.word("number")?,
            largest: given.word("largest")?,
            largest_delay: given.word("largest_delay_us")?,
            above: given.word("above")?,
            before_gap: given.word("before_gap")?,
            after_gap: given.word("after_gap")?,
        }),
        Some("sync") => TackOption::Sync(Sync {
            startup: given.flag("startup")?,
            ack_loss_rate: given.rate("ack_loss_rate")?,
            number: given.word("number")?,
            rtt_min: given.word("rtt_min_us")?,
            rtt: given.word("rtt_us")?,
        }),
        _ => return Err(given.wrong("shape", SHAPES)),
    };
    given.finish()?;
    let mut bytes = vec![0; option.len()];
    option.emit(&mut bytes);
    Ok(bytes)
}

/// Fields of an option as Python has them.
struct Fields<'a, 'py> {
    dict: &'a Bound<'py, PyDict>,
    /// Those that the shape has.
    known: Vec<&'static str>,
}

impl<'py> Fields<'_, 'py> {
    fn value(&mut self, name: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.known.push(name);
        Ok(self.dict.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn wrong(&self, name: &str, expected: &str) -> PyErr {
        let got = match self.dict.get_item(name) {
            Ok(Some(value)) => format!("got {value:?}"),
            _ => "it is missing".into(),
        };
        PyValueError::new_err(format!("{name}: expected {expected}; {got}"))
    }

    fn text(&mut self, name: &'static str) -> PyResult<Option<String>> {
        let value = self.value(name)?;
        Ok(value.and_then(|value| value.extract().ok()))
    }

    fn flag(&mut self, name: &'static str) -> PyResult<bool> {
        let value = self.value(name)?.map_or(Ok(false), |value| value.extract());
        value.map_err(|_: PyErr| self.wrong(name, "True or False"))
    }

    fn whole(&mut self, name: &'static str, most: u64) -> PyResult<u64> {
        let value = self.value(name)?.map_or(Ok(0), |value| value.extract());
        let value = value.ok().filter(|value| *value <= most);
        value.ok_or_else(|| self.wrong(name, &format!("a whole number from 0 to {most}")))
    }

    fn word(&mut self, name: &'static str) -> PyResult<u32> {
        Ok(self.whole(name, u32::MAX.into())? as u32)
    }

    fn byte(&mut self, name: &'static str, range: RangeInclusive<u8>) -> PyResult<u8> {
        let value = self.value(name)?.and_then(|value| value.extract().ok());
        let (least, most) = (range.start(), range.end());
        value
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.wrong(name, &format!("a whole number from {least} to {most}")))
    }

    fn rate(&mut self, name: &'static str) -> PyResult<u16> {
        let value = self.value(name)?.map_or(Ok(0.0), |value| value.extract());
        let value = value.ok().filter(|value| (0.0..=1.0).contains(value));
        let value: f64 = value.ok_or_else(|| self.wrong(name, "a rate from 0 to 1"))?;
        // A cast stays at the largest value, which stands for 1.
        Ok((value * LOSS_UNIT).round() as u16)
    }

    fn report(&mut self) -> PyResult<Report> {
        let kind = self.text("kind")?;
        let kind = KINDS
            .iter()
            .find(|(name, _)| Some(*name) == kind.as_deref())
            .map(|(_, kind)| *kind)
            .ok_or_else(|| {
                self.wrong("kind", "\"tack\", \"window\", \"event\" or \"frequency\"")
            })?;
        let has_timing =
            self.value("echo_departure_us")?.is_some() || self.value("echo_delay_us")?.is_some();
        let timing = TimingEcho {
            departure: self.word("echo_departure_us")?,
            delay: self.word("echo_delay_us")?,
        };
        let rate = self.value("delivery_rate_bps")?.is_some();
        let rate = rate
            .then(|| self.whole("delivery_rate_bps", u64::MAX))
            .transpose()?;
        Ok(Report {
            kind,
            lists: self.flag("lists")?,
            repeated: self.flag("repeated")?,
            sync_echo: self.whole("sync_echo", 15)? as u8,
            loss_rate: self.rate("loss_rate")?,
            number: self.word("number")?,
            largest: self.word("largest")?,
            largest_delay: self.word("largest_delay_us")?,
            timing: has_timing.then_some(timing),
            rate: rate.map(|rate| rate / 8),
            above: self.word("above")?,
            period: self.word("period_us")?,
        })
    }

    fn finish(&self) -> PyResult<()> {
        for name in self.dict.keys() {
            let name = name.to_string();
            if !self.known.contains(&name.as_str()) {
                return Err(PyValueError::new_err(format!(
                    "{name}: unknown field; this shape has {}",
                    self.known.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// Both lists.
type Both = (Vec<(u64, u64)>, Vec<(u64, u64)>);

/// Blocks ``(start, end)`` in bytes above the cumulative acknowledgement, and gaps ``(distance,
/// count)`` below the largest packet number (docs/wire-format.md).
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

/// The data field of both lists: blocks from the highest down, gaps from the lowest number up.
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
