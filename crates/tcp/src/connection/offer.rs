//! What a SYN says, in little room: enough to answer it, and to make the connection of it once the
//! peer has proven that it hears us (RFC 4987 §3.6).

use tack_base::{Instant, StreamOffset};
use tack_wire::options::TcpOptions;
use tack_wire::tack::TackSyn;
use tack_wire::{Ecn, Flags, Header, Segment, SeqNum, TackOption, Timestamps};

use super::Connection;
use super::due::Due;
use super::identity::Identity;
use crate::config::Config;
use crate::ecn::handshake::{Request, first_count};
use crate::recv::window::ReceiveWindow;
use crate::rtt::timestamps::TimestampClock;

/// What a peer's SYN says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    /// The peer's initial sequence number.
    pub(crate) irs: SeqNum,
    pub(crate) window: u16,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack: bool,
    /// What it asks of ECN.
    pub(crate) ecn: Request,
    /// TSval.
    pub(crate) timestamp: Option<u32>,
    pub(crate) tack: Option<TackSyn>,
}

/// How far the handshake has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Progress {
    /// When the first SYN-ACK left; `None` where nobody remembers.
    pub(crate) sent_at: Option<Instant>,
    /// When the newest one did.
    pub(crate) newest_at: Option<Instant>,
    /// SYN-ACKs that left.
    pub(crate) transmissions: u32,
    /// How often the timer ran out: a repeated SYN draws a SYN-ACK too, and is not a sign of loss.
    pub(crate) timeouts: u32,
}

/// What a connection is made of whose handshake the peer completes.
#[derive(Clone, Debug)]
pub(crate) struct Resumption {
    /// What the peer's SYN said.
    pub(crate) offer: Offer,
    /// Ports and initial sequence number.
    pub(crate) identity: Identity,
    /// How far the handshake has come.
    pub(crate) progress: Progress,
}

impl Offer {
    /// What `syn` says to who answers with `config`; its packet had codepoint `ecn`.
    pub(crate) fn of(syn: &Segment<'_>, ecn: Ecn, config: &Config) -> Self {
        let Header {
            seq,
            window,
            flags,
            options,
            ..
        } = &syn.header;
        Self {
            irs: *seq,
            window: *window,
            mss: options.mss,
            scale: options.window_scale,
            sack: options.sack_permitted,
            ecn: Request::of(*flags, ecn, config),
            timestamp: options.timestamps.map(|timestamps| timestamps.value),
            tack: match options.tack {
                Some(TackOption::Syn(syn)) => Some(syn),
                _ => None,
            },
        }
    }

    /// The SYN again.
    fn syn(&self, identity: &Identity) -> Header {
        let flags = Flags::SYN.with(self.ecn.flags());
        Header {
            src_port: identity.remote_port,
            dst_port: identity.local_port,
            seq: self.irs,
            flags,
            window: self.window,
            options: TcpOptions {
                mss: self.mss,
                window_scale: self.scale,
                sack_permitted: self.sack,
                timestamps: self.timestamp.map(|value| Timestamps { value, echo: 0 }),
                tack: self.tack.map(TackOption::Syn),
                ..TcpOptions::default()
            },
            ..Header::default()
        }
    }

    /// The SYN-ACK that a connection with `config` would answer with.
    pub(crate) fn syn_ack(&self, config: &Config, identity: &Identity, now: Instant) -> Header {
        let sack = config.sack && self.sack;
        let tack = config.offer().filter(|_| sack && self.tack.is_some());
        let scaling = config.window_scaling && self.scale.is_some();
        let agreement = self.ecn.agreement(config, tack.is_some());
        let flags = Flags::SYN.with(Flags::ACK).with(self.ecn.answer(agreement));
        Header {
            src_port: identity.local_port,
            dst_port: identity.remote_port,
            seq: identity.iss,
            ack: self.irs + 1,
            flags,
            window: ReceiveWindow::new(config.initial_receive_buffer, config.receive_buffer, now)
                .announce(StreamOffset::FIRST_BYTE, StreamOffset::FIRST_BYTE, true),
            urgent: 0,
            options: TcpOptions {
                mss: Some(config.mss),
                window_scale: scaling.then(|| ReceiveWindow::scale_for(config.receive_buffer)),
                sack_permitted: sack,
                timestamps: self
                    .timestamp
                    .filter(|_| config.timestamps)
                    .map(|echo| Timestamps {
                        value: timestamps(identity).value(now),
                        echo,
                    }),
                tack,
                ..TcpOptions::default()
            },
        }
    }

    /// An acknowledgement that says where a half-open connection stands, in answer to what does not
    /// belong there (RFC 5961).
    pub(crate) fn challenge(&self, config: &Config, identity: &Identity, now: Instant) -> Header {
        let answer = self.syn_ack(config, identity, now);
        let agreement = self.ecn.agreement(config, answer.options.tack.is_some());
        Header {
            seq: identity.iss + 1,
            flags: Flags::ACK.with(first_count(agreement)),
            window: answer.window >> answer.options.window_scale.unwrap_or_default(),
            options: TcpOptions {
                timestamps: answer
                    .options
                    .timestamps
                    .filter(|_| answer.options.tack.is_none()),
                ..TcpOptions::default()
            },
            ..answer
        }
    }
}

/// The clock of the timestamps option.
fn timestamps(identity: &Identity) -> TimestampClock {
    TimestampClock::new((identity.seed >> 32) as u32)
}

impl Connection {
    /// The connection that `offer` asked for, in SYN-RECEIVED: its SYN-ACKs have left already.
    pub(crate) fn resume(config: &Config, resumption: &Resumption, now: Instant) -> Self {
        let Resumption {
            offer,
            identity,
            progress,
        } = resumption;
        let syn = Segment {
            header: offer.syn(identity),
            payload: &[],
        };
        let (iss, seed) = (identity.iss, identity.seed);
        let ecn = offer.ecn.arrived_as().unwrap_or(Ecn::NotEct);
        let mut connection = Self::accept(config, &syn, ecn, iss, seed, now);
        // What the SYN-ACK promised.
        let _ = connection.receiver.window.announce(
            StreamOffset::FIRST_BYTE,
            StreamOffset::FIRST_BYTE,
            true,
        );
        connection.acking.on_syn_ack_sent();
        connection.due.set(Due::Syn, false);
        let handshake = &mut connection.handshake;
        handshake.transmissions = progress.transmissions;
        handshake.timeouts = progress.timeouts;
        handshake.sent_at = progress.sent_at;
        handshake.newest_at = progress.newest_at;
        connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckKind;
    use crate::transmit::Batch;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const NOW: Instant = Instant::from_millis(1_000_000);

    fn config(switches: u8) -> Config {
        Config {
            sack: switches & 1 > 0,
            timestamps: switches & 2 > 0,
            window_scaling: switches & 4 > 0,
            ecn: switches & 8 > 0,
            ack: if switches & 16 > 0 {
                AckKind::default()
            } else {
                AckKind::Every
            },
            initial_receive_buffer: if switches & 32 > 0 { 4000 } else { 64 << 10 },
            ..Config::default()
        }
    }

    proptest! {
        /// The record answers as the connection would, whatever either side wants.
        #[test]
        fn the_answer_is_that_of_a_connection(
            switches in any::<u8>(),
            mss in proptest::option::of(any::<u16>()),
            scale in proptest::option::of(0_u8..15),
            sack in any::<bool>(),
            ecn in prop_oneof![
                Just(Request::None), Just(Request::Classic), Just(Request::Accurate(Ecn::NotEct)),
                Just(Request::OnlyAccurate(Ecn::NotEct)),
            ],
            timestamp in proptest::option::of(any::<u32>()),
            tack in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let tack = tack.then_some(TackSyn { segments: 2, beta: 4 });
            let offer = Offer {
                irs: SeqNum(5000), window: 1000, mss, scale, sack, ecn, timestamp, tack,
            };
            let identity = Identity {
                local_port: 80, remote_port: 9, iss: SeqNum(7000), seed,
            };
            let config = config(switches);
            let syn = Segment { header: offer.syn(&identity), payload: &[] };
            prop_assert_eq!(Offer::of(&syn, Ecn::NotEct, &config), offer);
            let mut connection =
                Connection::accept(&config, &syn, Ecn::NotEct, identity.iss, seed, NOW);
            let mut bytes = Vec::new();
            connection
                .poll_transmit(NOW, &mut Batch::new(&mut bytes, 0, 1))
                .expect("a SYN-ACK");
            let answer = Segment::parse(&bytes).expect("a segment").header;
            prop_assert_eq!(offer.syn_ack(&config, &identity, NOW), answer);
        }
    }
}
