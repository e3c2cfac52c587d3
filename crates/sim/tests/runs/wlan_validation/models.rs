//! What paper and pencil say: Bianchi's saturation model and collision-free closed forms.
//!
//! G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE
//! JSAC 18(3), 2000, with a retry limit as in H. Wu et al., IEEE INFOCOM 2002.

use tack_sim::Scenario;
use tack_wlan::frame::len;
use tack_wlan::mac::MacConfig;

use super::reference::Row;

/// Goodput in Mbit/s, and probability of a collision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) goodput: f64,
    pub(crate) collision: f64,
}

fn mac(row: &Row) -> MacConfig {
    let scenario = Scenario::from_toml("row.toml", &row.scenario(), &[]).expect("a right scenario");
    scenario.wlan.expect("a wireless network").world.mac
}

fn micros(duration: std::time::Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// Parts of an exchange, microseconds.
struct Exchange {
    /// Space before the backoff: AIFS.
    space: f64,
    data: f64,
    /// SIFS and response.
    answer: f64,
    frames: f64,
}

impl Exchange {
    /// An exchange of `frames` packets of `packet` bytes.
    fn new(mac: &MacConfig, packet: u32, frames: u32) -> Self {
        let timing = &mac.timing;
        let mpdu = len::mpdu(packet, mac.is_qos);
        let is_aggregate = frames > 1 || mac.data_mode.is_always_aggregate();
        let psdu = if is_aggregate {
            (0..frames).fold(0, |psdu, _| len::ampdu(psdu, mpdu))
        } else {
            mpdu
        };
        let answer = if frames > 1 { len::BLOCK_ACK } else { len::ACK };
        Self {
            space: micros(timing.sifs) + f64::from(mac.contention[1].aifsn) * micros(timing.slot),
            data: micros(timing.airtime(mac.data_mode, psdu as usize)),
            answer: micros(timing.sifs) + micros(mac.control_airtime(answer)),
            frames: f64::from(frames),
        }
    }

    /// The most packets of `packet` bytes that fit.
    fn most(mac: &MacConfig, packet: u32) -> u32 {
        if !mac.aggregates() {
            return 1;
        }
        let mpdu = len::mpdu(packet, mac.is_qos);
        let (mut psdu, mut frames) = (0, 0);
        while frames < u32::from(mac.ampdu.frames) {
            psdu = len::ampdu(psdu, mpdu);
            let airtime = mac.timing.airtime(mac.data_mode, psdu as usize);
            if frames > 0 && (psdu > mac.ampdu.bytes || airtime > mac.ampdu.airtime) {
                break;
            }
            frames += 1;
        }
        frames
    }

    /// With the mean backoff of a station alone.
    fn alone(&self, mac: &MacConfig) -> f64 {
        let backoff = f64::from(mac.contention[1].cw_min) / 2.0 * micros(mac.timing.slot);
        self.space + backoff + self.data + self.answer
    }
}

/// One station, nobody else on the air; for TCP with one acknowledgement for so many segments and
/// no collisions.
pub(crate) fn closed_form(row: &Row) -> f64 {
    let mac = mac(row);
    let payload = f64::from(row.payload()) * 8.0;
    let packet = if row.is_udp() {
        row.payload() + 28
    } else {
        1_500
    };
    let data = Exchange::new(&mac, packet, Exchange::most(&mac, packet));
    if row.is_udp() {
        return data.frames * payload / data.alone(&mac);
    }
    // Acknowledgements in one PPDU after each PPDU of data, or after so many single frames.
    let ack = 1_500 - row.payload();
    let per_ack = f64::from(row.segments_per_ack());
    let (exchanges, acks) = if data.frames > 1.0 {
        (
            (per_ack / data.frames).max(1.0),
            (data.frames / per_ack).max(1.0),
        )
    } else {
        (per_ack, 1.0)
    };
    let reverse = Exchange::new(&mac, ack, acks.ceil() as u32);
    exchanges * data.frames * payload / (exchanges * data.alone(&mac) + reverse.alone(&mac))
}

/// `row.stations` saturated stations.
pub(crate) fn bianchi(row: &Row) -> Prediction {
    let mac = mac(row);
    let exchange = Exchange::new(
        &mac,
        row.payload() + 28,
        Exchange::most(&mac, row.payload() + 28),
    );
    let contention = mac.contention[1];
    let attempts = i32::from(mac.retry_limit);
    // The mean number of slots an attempt takes at each stage: backoff and the transmission itself.
    let stage = |attempt: i32| {
        let window = (f64::from(contention.cw_min) + 1.0) * 2_f64.powi(attempt);
        let window = window.min(f64::from(contention.cw_max) + 1.0);
        (window - 1.0) / 2.0 + 1.0
    };
    let tau = |p: f64| {
        let sum =
            |weight: &dyn Fn(i32) -> f64| (0..attempts).map(|i| p.powi(i) * weight(i)).sum::<f64>();
        sum(&|_| 1.0) / sum(&stage)
    };
    let others = i32::from(row.stations as u8) - 1;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let p = (low + high) / 2.0;
        if 1.0 - (1.0 - tau(p)).powi(others) > p {
            low = p;
        } else {
            high = p;
        }
    }
    let (p, t) = (low, tau(low));
    let silent = (1.0 - t).powi(others + 1);
    let single = f64::from(row.stations) * t * (1.0 - t).powi(others);
    let failed = 1.0 - silent - single;
    let success = exchange.data + exchange.answer + exchange.space;
    let collision = exchange.data + exchange.space;
    let time = silent * micros(mac.timing.slot) + single * success + failed * collision;
    Prediction {
        goodput: single * exchange.frames * f64::from(row.payload()) * 8.0 / time,
        collision: p,
    }
}
