//! What the programs of a run say of it.

use serde_json::Value;

use super::plan::Trouble;

/// A download as its programs saw it, after what is omitted. What they do not say is not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    /// What the receiving program counted, bits a second.
    pub(super) goodput: f64,
    /// Mean of the sender's smoothed round-trip time, seconds.
    pub(super) rtt: f64,
    /// Least round-trip time of the connection, seconds; of this program only.
    pub(super) min_rtt: f64,
    /// The congestion controller's own floor of it, seconds, from the tenth percentile to the
    /// ninetieth; of BBR only, and of this program only.
    pub(super) cc_min_rtt: [f64; 2],
    /// Mean of what its congestion window permits: window over round-trip time, bits a second.
    pub(super) window_rate: f64,
    /// The median of its congestion window, bytes: what it is apart from BBR's pauses.
    pub(super) window: f64,
    /// Packets that it sent again, or declared lost.
    pub(super) lost: f64,
    /// Acknowledgements that left at once because segments were missing or came late; of this
    /// program only.
    pub(super) disordered: f64,
    /// Acknowledgements by the programs' count: of this program, of QUIC.
    pub(super) acks: f64,
    /// For each datagram that the receiver got: the system calls that delivered them, of the whole
    /// run; of this program only.
    pub(super) batches: f64,
    /// Times that flow control stopped the sender; of QUIC only.
    pub(super) blocked: f64,
    /// Shares of the time that something kept the sender from sending; of this program only.
    pub(super) limited: [(&'static str, f64); 5],
}

/// What may keep this program's sender from sending.
const LIMITS: [&str; 5] = ["cwnd", "rwnd", "pacing", "app", "machine"];

impl Outcome {
    /// Nothing but goodput is known.
    pub(super) fn of(goodput: f64) -> Self {
        Self {
            goodput,
            rtt: f64::NAN,
            min_rtt: f64::NAN,
            cc_min_rtt: [f64::NAN; 2],
            window_rate: f64::NAN,
            window: f64::NAN,
            lost: f64::NAN,
            disordered: f64::NAN,
            acks: f64::NAN,
            batches: f64::NAN,
            blocked: f64::NAN,
            limited: LIMITS.map(|name| (name, f64::NAN)),
        }
    }

    /// From iperf3's object, or this program's with the same fields.
    pub(super) fn of_iperf3(text: &str) -> Result<Self, Trouble> {
        let object: Value = serde_json::from_str(text)
            .map_err(|error| Trouble::Failed(format!("{error}: {text:.200}")))?;
        let number = |path: &str| object.pointer(path).and_then(Value::as_f64);
        let goodput = number("/end/sum_received/bits_per_second").filter(|rate| *rate > 0.0);
        let goodput = goodput.ok_or_else(|| {
            let error = object["error"].as_str().unwrap_or("nothing was received");
            Trouble::Failed(error.to_owned())
        })?;
        let none = Vec::new();
        let intervals = object["intervals"].as_array().unwrap_or(&none);
        let rows: Vec<&Value> = intervals
            .iter()
            .filter_map(|interval| interval.pointer("/streams/0"))
            .filter(|row| row["omitted"] != true)
            .collect();
        let of = |row: &Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        let rtts = rows.iter().map(|row| of(row, "rtt") / 1e6);
        let rates = rows
            .iter()
            .map(|row| of(row, "snd_cwnd") * 8.0 / (of(row, "rtt") / 1e6));
        let windows = rows.iter().map(|row| of(row, "snd_cwnd"));
        let floors = rows.iter().map(|row| of(row, "cc_min_rtt") / 1e6);
        let said = |name: &str| number(&format!("/tack/summary/up/{name}")).unwrap_or(f64::NAN);
        Ok(Self {
            goodput,
            rtt: mean(rtts),
            min_rtt: said("min_rtt_us") / 1e6,
            cc_min_rtt: usual(floors),
            window_rate: mean(rates),
            window: median(windows),
            lost: rows.iter().map(|row| of(row, "retransmits")).sum(),
            disordered: said("acks_by_kind/iack_loss"),
            acks: said("acks_sent"),
            batches: f64::NAN,
            blocked: f64::NAN,
            limited: LIMITS.map(|name| (name, said(&format!("limited/{name}")))),
        })
    }

    /// With what the receiver says of its socket: an object a line, the last one of the test.
    pub(super) fn with_batches(self, receiver: &str) -> Self {
        let object = receiver.lines().last().map(serde_json::from_str::<Value>);
        let number = |name: &str| match &object {
            Some(Ok(object)) => object[name].as_f64().unwrap_or(f64::NAN),
            _ => f64::NAN,
        };
        Self {
            batches: number("receives") / number("datagrams_received"),
            ..self
        }
    }

    /// From the lines of both sides of `bench/quinn`.
    pub(super) fn of_quinn(sender: &str, receiver: &str) -> Result<Self, Trouble> {
        let result = numbers(receiver, "RESULT ");
        let goodput = match result[..] {
            [bytes, nanos, ..] if nanos > 0.0 => bytes * 8.0 / nanos * 1e9,
            _ => return Err(Trouble::no("result of quinn")),
        };
        let path = sender.lines().map(|line| numbers(line, "PATH "));
        let path = path.max_by_key(Vec::len).unwrap_or_default();
        let [rtt_us, _window, window_rate, _sent, lost, blocked, acks] = path[..] else {
            return Err(Trouble::no("line about quinn's path"));
        };
        Ok(Self {
            rtt: rtt_us / 1e6,
            window_rate,
            lost,
            acks,
            blocked,
            ..Self::of(goodput)
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values
        .filter(|value| value.is_finite())
        .fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    sum / count
}

/// The tenth and the ninetieth percentile of those that are numbers: where they are apart from a
/// few, as RTTmin is while BBR drains the path to see it again.
pub(super) fn usual(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let values = sorted(values);
    let tenths = |tenths| {
        let nth = values.len().saturating_sub(1) * tenths / 10;
        values.get(nth).copied().unwrap_or(f64::NAN)
    };
    [tenths(1), tenths(9)]
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let values = sorted(values);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Those that are numbers, from the least.
fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The numbers of a line that begins with `name`.
fn numbers(line: &str, name: &str) -> Vec<f64> {
    line.strip_prefix(name)
        .into_iter()
        .flat_map(str::split_whitespace)
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_says_is_read() {
        let text = r#"{
            "intervals": [
                {"streams": [{"snd_cwnd": 9e9, "rtt": 1, "retransmits": 900, "omitted": true}]},
                {"streams": [{"snd_cwnd": 1000000, "rtt": 80000, "retransmits": 3, "omitted": false}]},
                {"streams": [{"snd_cwnd": 3000000, "rtt": 120000, "retransmits": 4, "omitted": false}]}
            ],
            "end": {"sum_received": {"bits_per_second": 1.5e6}}
        }"#;
        let outcome = Outcome::of_iperf3(text).unwrap();
        assert_eq!((outcome.goodput, outcome.lost), (1.5e6, 7.0));
        assert!((outcome.rtt - 0.1).abs() < 1e-9);
        assert!(
            (outcome.window_rate - 150e6).abs() < 1.0,
            "100 and 200 Mbit/s"
        );
        assert!(outcome.disordered.is_nan() && outcome.limited[0].1.is_nan());
        assert_eq!(outcome.window, 3e6, "the larger one of two");
        assert!(outcome.cc_min_rtt.iter().all(|floor| floor.is_nan()));
        let refused = r#"{"error":"unable to connect"}"#;
        let Err(Trouble::Failed(why)) = Outcome::of_iperf3(refused) else {
            panic!("expected an error, got a result");
        };
        assert_eq!(why, "unable to connect");
        assert!(Outcome::of_iperf3("no JSON").is_err());
    }

    #[test]
    fn a_few_that_are_apart_do_not_count() {
        let floors = [25.0, 26.0, 27.0, 28.0].repeat(10).into_iter();
        let few = [f64::NAN, 50.0, 50.0];
        assert_eq!(usual(floors.chain(few)), [25.0, 28.0]);
        assert!(usual(few[..1].iter().copied()).iter().all(|it| it.is_nan()));
    }

    #[test]
    fn what_this_program_says_besides_is_read() {
        let text = r#"{
            "intervals": [
                {"streams": [{"cc_min_rtt": 1000, "omitted": true}]},
                {"streams": [{"cc_min_rtt": 25000, "omitted": false}]},
                {"streams": [{"omitted": false}]}
            ],
            "end": {"sum_received": {"bits_per_second": 1e6}},
            "tack": {"summary": {"up": {
                "acks_sent": 40, "acks_by_kind": {"iack_loss": 5}, "limited": {"cwnd": 0.75, "pacing": 0.25}
            }}}
        }"#;
        let outcome = Outcome::of_iperf3(text).unwrap();
        assert_eq!((outcome.acks, outcome.disordered), (40.0, 5.0));
        assert_eq!(outcome.cc_min_rtt, [0.025; 2]);
        assert_eq!(outcome.limited[0], ("cwnd", 0.75));
        assert_eq!(outcome.limited[2], ("pacing", 0.25));
        assert!(outcome.batches.is_nan());
        let receiver = "{\"event\":\"listening\"}\n{\"event\":\"test\",\"receives\":10,\"datagrams_received\":40}\n";
        assert_eq!(outcome.with_batches(receiver).batches, 0.25);
        assert!(outcome.with_batches("").batches.is_nan());
    }

    #[test]
    fn what_quinn_says_is_read() {
        let sender = "PATH 90000 1250000 111e6 9000 12 3 4500\nRESULT 1 2 3 4\n";
        let outcome = Outcome::of_quinn(sender, "RESULT 1000 1000000000 5 6\n").unwrap();
        assert_eq!((outcome.goodput, outcome.rtt), (8_000.0, 0.09));
        assert_eq!((outcome.window_rate, outcome.lost), (111e6, 12.0));
        assert_eq!((outcome.acks, outcome.blocked), (4_500.0, 3.0));
        assert!(Outcome::of_quinn(sender, "").is_err());
        assert!(Outcome::of_quinn("RESULT 1 2 3 4\n", "RESULT 1000 1000 5 6\n").is_err());
    }
}
