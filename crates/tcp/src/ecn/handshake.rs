//! The negotiation of ECN by SYN and SYN-ACK (RFC 3168 §6.1.1; RFC 9768 §3.1.1, table 2).

use tack_wire::{Ecn, Flags};

use crate::config::{AccurateEcn, Config};

/// The three flags that are a counter once accurate feedback has been negotiated.
pub(crate) const ACE: Flags = Flags::AE.with(Flags::CWR).with(Flags::ECE);

/// What a SYN asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Request {
    /// No ECN.
    #[default]
    None,
    /// Feedback of RFC 3168.
    Classic,
    /// Feedback of RFC 9768; the SYN arrived with this codepoint.
    Accurate(Ecn),
    /// The same with flags that are no request for classic feedback, as neither CWR nor ECE may be
    /// missing in one.
    OnlyAccurate(Ecn),
}

/// What both sides agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Agreement {
    /// No ECN.
    #[default]
    None,
    /// Feedback of RFC 3168.
    Classic,
    /// Feedback of RFC 9768.
    Accurate,
}

impl Request {
    /// What a SYN with these flags asks for. Its packet had codepoint `ecn`, and `config` is that
    /// of the host that answers. A host that supports accurate feedback reads all flags without
    /// another meaning as a request for it (§3.1.2).
    ///
    /// SYNs are sent as not capable. If one arrives as something else, the path overwrites the
    /// field, and classic feedback cannot show that: a path that marks everything would hold the
    /// sender at its smallest window. Such a request gets no ECN, as from Linux
    /// (`tcp_ecn_create_request`).
    pub(crate) fn of(flags: Flags, ecn: Ecn, config: &Config) -> Self {
        const CLASSIC: Flags = Flags::CWR.with(Flags::ECE);
        match Flags(flags.0 & ACE.0) {
            Flags(0) => Self::None,
            CLASSIC => Self::classic(ecn),
            ACE if config.accurate_ecn != AccurateEcn::Off => Self::Accurate(ecn),
            ACE => Self::classic(ecn),
            _ if config.accurate_ecn != AccurateEcn::Off => Self::OnlyAccurate(ecn),
            _ => Self::None,
        }
    }

    /// A request for classic feedback in a SYN that arrived with codepoint `ecn`.
    fn classic(ecn: Ecn) -> Self {
        match ecn {
            Ecn::NotEct => Self::Classic,
            Ecn::Ect1 | Ecn::Ect0 | Ecn::Ce => Self::None,
        }
    }

    /// The same, but with classic feedback instead of accurate feedback.
    pub(crate) fn at_most_classic(self) -> Self {
        match self {
            Self::Accurate(ecn) => Self::classic(ecn),
            Self::OnlyAccurate(_) => Self::None,
            Self::None | Self::Classic => self,
        }
    }

    /// What this side agrees to. With an acknowledgement `mechanism` that sends few
    /// acknowledgements a counter of three bits would be ambiguous. The answer is then classic
    /// feedback, which a SYN with all flags permits. Where some are missing, a middlebox may have
    /// cleared them; it would clear CWR as well, without which an echo never ends.
    pub(crate) fn agreement(self, config: &Config, mechanism: bool) -> Agreement {
        match self {
            _ if !config.ecn => Agreement::None,
            Self::None => Agreement::None,
            Self::Accurate(_) | Self::OnlyAccurate(_)
                if config.accurate_ecn != AccurateEcn::Off && !mechanism =>
            {
                Agreement::Accurate
            }
            Self::OnlyAccurate(_) => Agreement::None,
            Self::Accurate(ecn) if Self::classic(ecn) == Self::None => Agreement::None,
            Self::Classic | Self::Accurate(_) => Agreement::Classic,
        }
    }

    /// Flags of the SYN-ACK that announces `agreement`.
    pub(crate) fn answer(self, agreement: Agreement) -> Flags {
        match (agreement, self) {
            (Agreement::Accurate, Self::Accurate(ecn) | Self::OnlyAccurate(ecn)) => reflection(ecn),
            (Agreement::None, _) => Flags::default(),
            _ => Flags::ECE,
        }
    }

    /// Flags of a SYN that asks for this.
    pub(crate) fn flags(self) -> Flags {
        match self {
            Self::None => Flags::default(),
            Self::Classic => Flags::CWR.with(Flags::ECE),
            Self::Accurate(_) => ACE,
            Self::OnlyAccurate(_) => Flags::AE,
        }
    }

    /// The codepoint with which the SYN arrived, where that was noted.
    pub(crate) fn arrived_as(self) -> Option<Ecn> {
        match self {
            Self::Accurate(ecn) | Self::OnlyAccurate(ecn) => Some(ecn),
            Self::None | Self::Classic => None,
        }
    }
}

/// What a SYN-ACK with these flags agrees to. `asked_for_accurate` is whether our SYN asked for
/// accurate feedback, or only for classic feedback.
pub(crate) fn agreed(flags: Flags, asked_for_accurate: bool) -> Agreement {
    let flags = Flags(flags.0 & ACE.0);
    if flags.contains(Flags::ECE) && !flags.contains(Flags::CWR) {
        return Agreement::Classic;
    }
    if asked_for_accurate && flags != Flags::default() && flags != ACE {
        return Agreement::Accurate;
    }
    Agreement::None
}

/// Flags of the counter as long as no mark has arrived, if there is a counter (RFC 9768 §3.2.1).
pub(crate) fn first_count(agreement: Agreement) -> Flags {
    match agreement {
        Agreement::Accurate => Flags::AE.with(Flags::ECE),
        Agreement::None | Agreement::Classic => Flags::default(),
    }
}

/// Flags that report the codepoint with which a SYN or a SYN-ACK arrived (tables 2 and 3).
pub(crate) fn reflection(ecn: Ecn) -> Flags {
    match ecn {
        Ecn::NotEct => Flags::CWR,
        Ecn::Ect1 => Flags::CWR.with(Flags::ECE),
        Ecn::Ect0 => Flags::AE,
        Ecn::Ce => Flags::AE.with(Flags::CWR),
    }
}

/// The codepoint with which a packet of ours arrived; `None` if the flags do not say.
pub(crate) fn reflected(flags: Flags) -> Option<Ecn> {
    let flags = Flags(flags.0 & ACE.0);
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]
        .into_iter()
        .find(|ecn| reflection(*ecn) == flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(flags: Flags) -> u16 {
        let bit = |flag, value| if flags.contains(flag) { value } else { 0 };
        bit(Flags::AE, 4) | bit(Flags::CWR, 2) | bit(Flags::ECE, 1)
    }

    fn flags(bits: u16) -> Flags {
        let all = [(4, Flags::AE), (2, Flags::CWR), (1, Flags::ECE)];
        let set = all.into_iter().filter(|(bit, _)| bits & bit > 0);
        set.fold(Flags::default(), |flags, (_, flag)| flags.with(flag))
    }

    /// The blocks of table 2 with a server that supports accurate feedback.
    #[test]
    fn a_server_answers_as_table_2_has_it() {
        let config = Config::default();
        let answer = |asked, ecn| {
            let request = Request::of(flags(asked), ecn, &config);
            bits(request.answer(request.agreement(&config, false)))
        };
        for (ecn, expected) in [
            (Ecn::NotEct, 0b010),
            (Ecn::Ect1, 0b011),
            (Ecn::Ect0, 0b100),
            (Ecn::Ce, 0b110),
        ] {
            assert_eq!(answer(0b111, ecn), expected);
            for future in [0b001, 0b010, 0b100, 0b101, 0b110] {
                assert_eq!(answer(future, ecn), expected, "{future:03b}");
            }
            assert_eq!(answer(0b000, ecn), 0b000);
        }
        let request = Request::of(flags(0b111), Ecn::NotEct, &config);
        assert_eq!(
            request.agreement(&config, true),
            Agreement::Classic,
            "with TACK"
        );
        assert_eq!(answer(0b011, Ecn::NotEct), 0b001);
        // What is left of a request when a middlebox has cleared CWR, ECE or both.
        for cleared in [0b001, 0b010, 0b100, 0b101, 0b110] {
            let request = Request::of(flags(cleared), Ecn::NotEct, &config);
            assert_eq!(request.agreement(&config, true), Agreement::None);
            assert_eq!(request.at_most_classic(), Request::None);
            let again = Request::of(request.flags(), Ecn::NotEct, &config);
            assert_eq!(again, request);
        }
        // A path that overwrites the field: no classic feedback.
        for ecn in [Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(answer(0b011, ecn), 0b000);
            let request = Request::of(flags(0b111), ecn, &config);
            assert_eq!(request.agreement(&config, true), Agreement::None);
            assert_eq!(request.at_most_classic(), Request::None);
        }
    }

    #[test]
    fn a_server_without_it_is_one_of_rfc_3168() {
        let config = Config {
            accurate_ecn: AccurateEcn::Off,
            ..Config::default()
        };
        for (asked, expected) in [
            (0b111, 0b001),
            (0b011, 0b001),
            (0b001, 0),
            (0b010, 0),
            (0, 0),
        ] {
            let request = Request::of(flags(asked), Ecn::NotEct, &config);
            assert_eq!(
                bits(request.answer(request.agreement(&config, false))),
                expected
            );
        }
        let none = Config {
            ecn: false,
            ..Config::default()
        };
        let request = Request::of(flags(0b111), Ecn::NotEct, &none);
        assert_eq!(request.agreement(&none, false), Agreement::None);
    }

    #[test]
    fn a_client_reads_answers_as_table_2_has_it() {
        for (answer, expected) in [
            (0b000, Agreement::None),
            (0b001, Agreement::Classic),
            (0b010, Agreement::Accurate),
            (0b011, Agreement::Accurate),
            (0b100, Agreement::Accurate),
            (0b101, Agreement::Classic),
            (0b110, Agreement::Accurate),
            (0b111, Agreement::None),
        ] {
            assert_eq!(agreed(flags(answer), true), expected, "{answer:03b}");
        }
        for (answer, expected) in [
            (0b001, Agreement::Classic),
            (0b010, Agreement::None),
            (0b011, Agreement::None),
        ] {
            assert_eq!(agreed(flags(answer), false), expected, "{answer:03b}");
        }
    }

    #[test]
    fn what_is_reflected_is_read_back() {
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(reflected(reflection(ecn)), Some(ecn));
        }
        for other in [0b000, 0b001, 0b101, 0b111] {
            assert_eq!(reflected(flags(other)), None);
        }
    }
}
