//! Acknowledgement policies written in Python.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tack_base::Instant;
use tack_tcp::ack::{self, AckContract, AckDecision, AckPolicyFactory, AckReason, SegmentOrder};

use crate::running::Running;
use crate::scenario::Foreign;

/// A data segment arrived.
#[pyclass(frozen, get_all, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct DataArrival {
    /// Virtual time, seconds.
    now_s: f64,
    /// Bytes of payload.
    len: u64,
    /// It continues the stream; otherwise it is out of order, a duplicate, or fills a gap.
    in_order: bool,
    /// It has the PSH flag.
    push: bool,
    /// It completes the stream.
    fin: bool,
    /// A congestion mark begins with it.
    ce_changed: bool,
    /// Bytes received in order and not acknowledged, with this segment.
    unacknowledged: u64,
    /// Payload of the peer's full-sized segments, bytes.
    peer_mss: u64,
    /// Bytes that the peer may still send.
    window_left: u64,
    /// Receive buffer, bytes.
    window: u64,
}

/// A factory for one run.
pub(crate) fn factory(foreign: Foreign, running: Arc<Running>) -> AckPolicyFactory {
    let name = foreign.name.clone();
    AckPolicyFactory::new(name, move || Policy::new(&foreign, &running))
}

struct Policy {
    /// None once Python raised something: the run ends.
    object: Option<Py<PyAny>>,
    running: Arc<Running>,
    contract: AckContract,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("contract", &self.contract)
            .finish_non_exhaustive()
    }
}

impl Policy {
    fn new(foreign: &Foreign, running: &Arc<Running>) -> Self {
        let made = Python::attach(|py| -> PyResult<_> {
            let object = foreign.class.call0(py)?;
            let bound = object.bind(py);
            let delay: f64 = bound.getattr("max_delay_s")?.extract()?;
            let delay = Duration::try_from_secs_f64(delay).map_err(|_| {
                PyValueError::new_err(format!("expected max_delay_s from 0 to 0.5, got {delay}"))
            })?;
            let segments = bound.getattr("max_segments")?.extract()?;
            Ok((object, AckContract::new(delay, segments)))
        });
        match made {
            Ok((object, contract)) => Self {
                object: Some(object),
                running: Arc::clone(running),
                contract,
            },
            Err(error) => {
                running.fail(error);
                Self {
                    object: None,
                    running: Arc::clone(running),
                    contract: AckContract::new(Duration::from_millis(40), 2),
                }
            }
        }
    }

    /// Asks a method for a decision; `otherwise` once something was raised.
    fn ask<A>(
        &mut self,
        method: &str,
        arguments: A,
        now: Instant,
        otherwise: AckDecision,
    ) -> AckDecision
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        let Some(object) = &self.object else {
            return otherwise;
        };
        let decided = Python::attach(|py| {
            let answer = object.bind(py).call_method1(method, arguments)?;
            decision(&answer, now)
        });
        decided.unwrap_or_else(|error| {
            self.object = None;
            self.running.fail(error);
            otherwise
        })
    }
}

/// None: nothing; a number: ask again after so many seconds; a reason: at once.
fn decision(answer: &Bound<'_, PyAny>, now: Instant) -> PyResult<AckDecision> {
    if answer.is_none() {
        return Ok(AckDecision::Nothing);
    }
    if let Ok(seconds) = answer.extract::<f64>() {
        let delay = Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!("expected a delay of 0 s or more, got {seconds}"))
        })?;
        return Ok(AckDecision::Delayed(now + delay));
    }
    let reason = match answer.extract::<&str>() {
        Ok("threshold") => AckReason::Threshold,
        Ok("timer") => AckReason::Timer,
        Ok("loss") => AckReason::Loss,
        Ok("window") => AckReason::Window,
        Ok("event") => AckReason::Event,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "expected None, a delay in seconds, or one of \"threshold\", \"timer\", \"loss\", \"window\", \
                 \"event\"; got {answer}"
            )));
        }
    };
    Ok(AckDecision::Now(reason))
}

impl ack::AckPolicy for Policy {
    fn contract(&self) -> AckContract {
        self.contract
    }

    fn on_data(&mut self, arrival: &ack::DataArrival) -> AckDecision {
        let event = DataArrival {
            now_s: arrival.now.as_secs_f64(),
            len: arrival.len,
            in_order: arrival.order == SegmentOrder::InOrder,
            push: arrival.push,
            fin: arrival.fin,
            ce_changed: arrival.ce_changed,
            unacknowledged: arrival.unacknowledged,
            peer_mss: arrival.peer_mss,
            window_left: arrival.window_left,
            window: arrival.window,
        };
        self.ask("on_data", (event,), arrival.now, AckDecision::Nothing)
    }

    fn on_timer(&mut self, now: Instant) -> AckDecision {
        let otherwise = AckDecision::Now(AckReason::Timer);
        self.ask("on_timer", (now.as_secs_f64(),), now, otherwise)
    }
}
