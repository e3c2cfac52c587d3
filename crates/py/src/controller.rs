//! Congestion controllers written in Python.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use tack_base::{Instant, Rate};
use tack_tcp::ControllerFactory;
use tack_tcp::cc;

use crate::running::Running;
use crate::scenario::Foreign;

/// What a controller starts with.
#[pyclass(frozen, get_all, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct Init {
    /// Virtual time, seconds.
    now_s: f64,
    /// Sender maximum segment size, bytes of payload.
    mss: u64,
    /// First congestion window, bytes.
    initial_window: u64,
    /// RTT of the handshake, seconds, or None.
    rtt_s: Option<f64>,
}

/// An acknowledgement delivered data or revealed losses.
#[pyclass(frozen, get_all, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct Ack {
    /// Virtual time, seconds.
    now_s: f64,
    /// Bytes by which SND.UNA advanced.
    acked: u64,
    /// Bytes newly delivered, cumulatively or selectively.
    delivered: u64,
    /// Bytes newly marked lost.
    lost: u64,
    /// Bytes in flight before it was processed.
    prior_in_flight: u64,
    /// Bytes in flight after it was processed.
    bytes_in_flight: u64,
    /// RTT sample, seconds, or None.
    rtt_s: Option<f64>,
    /// Smoothed RTT, seconds.
    srtt_s: f64,
    /// Minimum RTT, seconds.
    min_rtt_s: f64,
    /// Delivery rate sample, bits per second, or None.
    delivery_rate_bps: Option<f64>,
    /// The delivery rate is limited by the application.
    app_limited: bool,
    /// Bytes delivered on the connection.
    total_delivered: u64,
    /// Bytes marked lost on the connection.
    total_lost: u64,
    /// A loss episode is open.
    in_recovery: bool,
    /// The congestion window limited the sender; otherwise it must not grow.
    cwnd_limited: bool,
    /// What ``on_sent`` returned for the newest segment delivered; 0 without it.
    token: u64,
}

/// A segment left.
#[pyclass(frozen, get_all, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct Sent {
    /// Virtual time, seconds.
    now_s: f64,
    /// Bytes of payload.
    bytes: u64,
    /// Bytes in flight before it.
    prior_in_flight: u64,
    /// It carries bytes that were sent before.
    retransmission: bool,
    /// The application had nothing more to send.
    app_limited: bool,
}

/// A congestion episode begins.
#[pyclass(frozen, get_all, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct Congestion {
    /// Virtual time, seconds.
    now_s: f64,
    /// ``"loss"``, ``"ecn"`` or ``"timeout"``.
    cause: &'static str,
    /// FlightSize before losses were taken off, bytes.
    prior_in_flight: u64,
    /// The congestion window limited the sender.
    cwnd_limited: bool,
    /// Timeouts in a row, with this one; 0 for other causes.
    consecutive_timeouts: u32,
}

/// A factory for one run.
pub(crate) fn factory(foreign: Foreign, running: Arc<Running>) -> ControllerFactory {
    let name = foreign.name.clone();
    ControllerFactory::new(name, move |init| Controller::new(&foreign, &running, init))
}

/// The last answers of the object.
#[derive(Clone, Copy, Debug)]
struct Answers {
    cwnd: u64,
    ssthresh: u64,
    pacing: Option<Rate>,
    gain: Option<f64>,
}

/// The optional methods that the object has.
#[derive(Clone, Copy, Debug, Default)]
struct Has {
    sent: bool,
    recovered: bool,
    spurious: bool,
    false_marks: bool,
    idle: bool,
    mss: bool,
}

struct Controller {
    /// None once Python raised something: the run ends.
    object: Option<Py<PyAny>>,
    running: Arc<Running>,
    answers: Answers,
    has: Has,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("answers", &self.answers)
            .finish_non_exhaustive()
    }
}

impl Controller {
    fn new(foreign: &Foreign, running: &Arc<Running>, init: &cc::Init) -> Self {
        let mut this = Self {
            object: None,
            running: Arc::clone(running),
            answers: Answers {
                cwnd: init.initial_window,
                ssthresh: u64::MAX,
                pacing: None,
                gain: None,
            },
            has: Has::default(),
        };
        let init = Init {
            now_s: init.now.as_secs_f64(),
            mss: init.mss,
            initial_window: init.initial_window,
            rtt_s: init.rtt.map(|rtt| rtt.as_secs_f64()),
        };
        Python::attach(|py| match foreign.class.call1(py, (init,)) {
            Ok(object) => {
                let bound = object.bind(py);
                let has = |name| bound.hasattr(name).unwrap_or(false);
                this.has = Has {
                    sent: has("on_sent"),
                    recovered: has("on_recovered"),
                    spurious: has("on_spurious"),
                    false_marks: has("on_false_marks"),
                    idle: has("on_idle_restart"),
                    mss: has("on_mss"),
                };
                match read(bound) {
                    Ok(answers) => {
                        this.answers = answers;
                        this.object = Some(object);
                    }
                    Err(error) => this.running.fail(error),
                }
            }
            Err(error) => this.running.fail(error),
        });
        this
    }

    /// Calls a method and reads what the controller says afterwards; its result.
    fn call<'py, A>(
        &mut self,
        py: Python<'py>,
        method: &str,
        arguments: A,
    ) -> Option<Bound<'py, PyAny>>
    where
        A: pyo3::call::PyCallArgs<'py>,
    {
        let object = self.object.as_ref()?.bind(py).clone();
        let outcome = object
            .call_method1(method, arguments)
            .and_then(|result| Ok((result, read(&object)?)));
        match outcome {
            Ok((result, answers)) => {
                self.answers = answers;
                Some(result)
            }
            Err(error) => {
                self.object = None;
                self.running.fail(error);
                None
            }
        }
    }

    fn tell<A>(&mut self, method: &str, arguments: A)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        if self.object.is_some() {
            Python::attach(|py| {
                self.call(py, method, arguments);
            });
        }
    }
}

/// Reads the attributes by which a controller answers.
fn read(object: &Bound<'_, PyAny>) -> PyResult<Answers> {
    let optional = |name: &str| -> PyResult<Option<f64>> {
        match object.getattr_opt(name)? {
            Some(value) => value.extract(),
            None => Ok(None),
        }
    };
    let bytes = |value: f64| value.clamp(0.0, u64::MAX as f64) as u64;
    Ok(Answers {
        cwnd: bytes(object.getattr("cwnd")?.extract()?),
        ssthresh: optional("ssthresh")?.map_or(u64::MAX, bytes),
        pacing: optional("pacing_rate_bps")?.map(|rate| Rate::from_bits_per_sec(bytes(rate))),
        gain: optional("pacing_gain")?,
    })
}

impl cc::CongestionController for Controller {
    fn on_send(&mut self, sent: &cc::Sent) -> cc::SendToken {
        if !self.has.sent || self.object.is_none() {
            return cc::SendToken::default();
        }
        let event = Sent {
            now_s: sent.now.as_secs_f64(),
            bytes: sent.bytes,
            prior_in_flight: sent.prior_in_flight,
            retransmission: sent.retransmission,
            app_limited: sent.app_limited,
        };
        Python::attach(|py| {
            let token = self.call(py, "on_sent", (event,))?;
            match token.extract::<Option<u64>>() {
                Ok(token) => token,
                Err(error) => {
                    self.running.fail(error);
                    None
                }
            }
        })
        .map_or_else(cc::SendToken::default, cc::SendToken)
    }

    fn on_ack(&mut self, ack: &cc::Ack) {
        self.tell(
            "on_ack",
            (Ack {
                now_s: ack.now.as_secs_f64(),
                acked: ack.acked,
                delivered: ack.delivered,
                lost: ack.lost,
                prior_in_flight: ack.prior_in_flight,
                bytes_in_flight: ack.bytes_in_flight,
                rtt_s: ack.rtt.map(|rtt| rtt.as_secs_f64()),
                srtt_s: ack.srtt.as_secs_f64(),
                min_rtt_s: ack.min_rtt.as_secs_f64(),
                delivery_rate_bps: ack
                    .rate
                    .map(|rate| rate.delivery_rate.bits_per_sec() as f64),
                app_limited: ack.rate.is_some_and(|rate| rate.app_limited),
                total_delivered: ack.total_delivered,
                total_lost: ack.total_lost,
                in_recovery: ack.in_recovery,
                cwnd_limited: ack.cwnd_limited,
                token: ack.token.0,
            },),
        );
    }

    fn on_congestion(&mut self, congestion: &cc::Congestion) {
        self.tell(
            "on_congestion",
            (Congestion {
                now_s: congestion.now.as_secs_f64(),
                cause: cause(congestion.cause),
                prior_in_flight: congestion.prior_in_flight,
                cwnd_limited: congestion.cwnd_limited,
                consecutive_timeouts: congestion.consecutive_timeouts,
            },),
        );
    }

    fn on_recovered(&mut self, now: Instant) {
        if self.has.recovered {
            self.tell("on_recovered", (now.as_secs_f64(),));
        }
    }

    fn on_spurious(&mut self, now: Instant, of: cc::Cause) {
        if self.has.spurious {
            self.tell("on_spurious", (now.as_secs_f64(), cause(of)));
        }
    }

    fn on_false_marks(&mut self, now: Instant, window: u64) {
        if self.has.false_marks {
            self.tell("on_false_marks", (now.as_secs_f64(), window));
        }
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration) {
        if self.has.idle {
            self.tell("on_idle_restart", (now.as_secs_f64(), idle.as_secs_f64()));
        }
    }

    fn on_mss(&mut self, mss: u64) {
        if self.has.mss {
            self.tell("on_mss", (mss,));
        }
    }

    fn cwnd(&self) -> u64 {
        self.answers.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.answers.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.answers.pacing
    }

    fn pacing_gain(&self) -> f64 {
        match self.answers.gain {
            Some(gain) => gain,
            None if self.in_slow_start() => 2.0,
            None => 1.2,
        }
    }

    fn metrics(&self) -> cc::Metrics {
        cc::Metrics::phase("python")
    }
}

fn cause(cause: cc::Cause) -> &'static str {
    match cause {
        cc::Cause::Loss => "loss",
        cc::Cause::Ecn => "ecn",
        cc::Cause::Timeout => "timeout",
        _ => "other",
    }
}
