//! Reading packet scripts.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use tack_tcp::{CloseReason, Event, State};
use tack_wire::{Ecn, Flags};

use super::{Action, Line, OptionsSpec, SegmentSpec, When};

/// Reads a script.
///
/// # Errors
/// Number and content of the first line that makes no sense, and why.
pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let parsed =
            parse_line(line).map_err(|why| format!("line {}: `{line}`: {why}", index + 1))?;
        lines.push(Line {
            number: index + 1,
            when: parsed.0,
            action: parsed.1,
        });
    }
    Ok(lines)
}

fn parse_line(line: &str) -> Result<(When, Action), String> {
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (when, rest) = match first.as_bytes()[0] {
        b'+' => (after(&first[1..])?, rest.trim_start()),
        b'@' => (When::At(duration(&first[1..])?), rest.trim_start()),
        b'*' => (When::Whenever, rest.trim_start()),
        _ => (When::After(Duration::ZERO), line),
    };
    let (verb, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let argument = argument.trim();
    let action = match verb {
        "<" => Action::Arrive(arrival(argument)?),
        ">" if argument == "nothing" => Action::Silence,
        ">" => Action::Leave(segment(argument)?),
        "write" => Action::Write(number(argument)?),
        "read" => Action::Read(number(argument)?),
        "mtu" => Action::PathMtu(number(argument)?),
        "eof" => Action::Eof,
        "finish" => Action::Finish,
        "abort" => Action::Abort,
        "stop_reading" => Action::StopReading,
        "event" => Action::Event(event(argument)?),
        "state" => Action::State(state(argument)?),
        _ => {
            return Err(format!(
                "`{verb}` is none of < > write read mtu eof finish abort stop_reading event state"
            ));
        }
    };
    if when == When::Whenever && !matches!(action, Action::Leave(_)) {
        return Err("only a segment that leaves can come whenever".to_string());
    }
    if matches!(when, When::Within(..)) && !matches!(action, Action::Leave(_)) {
        return Err("only a segment that leaves can come within a range of times".to_string());
    }
    Ok((when, action))
}

fn after(text: &str) -> Result<When, String> {
    let Some((least, most)) = text.split_once("..") else {
        return duration(text).map(When::After);
    };
    let (least, most) = (duration(least)?, duration(most)?);
    if most < least {
        return Err(format!("{most:?} is less than {least:?}"));
    }
    Ok(When::Within(least, most))
}

fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or_else(|| format!("`{text}` has no unit"))?;
    let nanos = match &text[unit_at..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        unit => return Err(format!("`{unit}` is none of ns us ms s")),
    };
    let count: f64 = number(&text[..unit_at])?;
    Ok(Duration::from_nanos((count * nanos).round() as u64))
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number that fits here"))
}

fn arrival(text: &str) -> Result<SegmentSpec, String> {
    let spec = segment(text)?;
    if spec.receive_window.is_some() {
        return Err("an arrival has a window field, as in `win 500`".to_string());
    }
    if spec.options.as_ref().and_then(|it| it.window_scale) == Some(None) {
        return Err("an arrival names its shift, as in `wscale 7`".to_string());
    }
    Ok(spec)
}

/// `5..`, `..9` or `5..9`, both included.
fn at_least_and_at_most(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (least, most) = text
        .split_once("..")
        .ok_or_else(|| format!("`{text}` is not a range, as 500..1000 and 500.. are"))?;
    let end = |text: &str, open| {
        if text.is_empty() {
            Ok(open)
        } else {
            number(text)
        }
    };
    let (least, most) = (end(least, 0)?, end(most, u32::MAX)?);
    if most < least {
        return Err(format!("{most} is less than {least}"));
    }
    Ok(least..=most)
}

fn segment(text: &str) -> Result<SegmentSpec, String> {
    let mut spec = SegmentSpec::default();
    let (fields, options) = match text.split_once('<') {
        None => (text, None),
        Some((fields, options)) => (
            fields,
            Some(options.strip_suffix('>').ok_or("options end with `>`")?),
        ),
    };
    let mut words = fields.split_whitespace();
    spec.flags = flags(words.next().ok_or("a segment begins with its flags")?)?;
    let range = words
        .next()
        .ok_or("the sequence range is missing, as in 1:1001(1000)")?;
    (spec.seq, spec.len) = sequence(range)?;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` has no value"));
        match word {
            "ack" => spec.ack = Some(number(value()?)?),
            "win" => spec.window = Some(number(value()?)?),
            "rcv_wnd" => spec.receive_window = Some(at_least_and_at_most(value()?)?),
            "urg" => spec.urgent = Some(number(value()?)?),
            "ecn" => spec.ecn = Some(ecn(value()?)?),
            "each" => spec.each = Some(number(value()?)?),
            _ => {
                return Err(format!(
                    "`{word}` is none of ack win rcv_wnd urg ecn each <options>"
                ));
            }
        }
    }
    if spec.flags.ack() != spec.ack.is_some() {
        return Err("the flag `.` and an `ack` number go together".to_string());
    }
    spec.options = options.map(parse_options).transpose()?;
    Ok(spec)
}

fn flags(text: &str) -> Result<Flags, String> {
    text.chars().try_fold(Flags::default(), |flags, letter| {
        let flag = match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            '.' => Flags::ACK,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            'e' => Flags::AE,
            '-' => Flags::default(),
            _ => return Err(format!("`{letter}` is none of the flags SFRP.UEWe, nor -")),
        };
        Ok(flags.with(flag))
    })
}

/// `1:1001(1000)`: first, past the last, length. The length says what the other two should agree
/// with.
fn sequence(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("`{text}` is not a sequence range, as 1:1001(1000) is one");
    let (first, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (past, len) = rest
        .strip_suffix(')')
        .and_then(|rest| rest.split_once('('))
        .ok_or_else(wrong)?;
    let (first, past, len): (u32, u32, u32) = (number(first)?, number(past)?, number(len)?);
    if first.wrapping_add(len) != past {
        return Err(format!("{first} + {len} is not {past}"));
    }
    Ok((first, len))
}

fn ecn(text: &str) -> Result<Ecn, String> {
    Ok(match text {
        "not" => Ecn::NotEct,
        "ect0" => Ecn::Ect0,
        "ect1" => Ecn::Ect1,
        "ce" => Ecn::Ce,
        _ => return Err(format!("`{text}` is none of not ect0 ect1 ce")),
    })
}

fn parse_options(text: &str) -> Result<OptionsSpec, String> {
    let mut spec = OptionsSpec::default();
    for option in text
        .split(',')
        .map(str::trim)
        .filter(|option| !option.is_empty())
    {
        let words: Vec<&str> = option.split_whitespace().collect();
        match *words.as_slice() {
            ["mss", mss] => spec.mss = Some(number(mss)?),
            ["wscale", "*"] => spec.window_scale = Some(None),
            ["wscale", shift] => spec.window_scale = Some(Some(number(shift)?)),
            ["sackOK"] => spec.sack_permitted = true,
            ["sack", ref blocks @ ..] => {
                for block in blocks {
                    let (start, end) = block
                        .split_once(':')
                        .ok_or_else(|| format!("`{block}` is not a block"))?;
                    spec.sack.push((number(start)?, number(end)?));
                }
            }
            ["TS"] => spec.timestamps = Some((None, None)),
            ["TS", "val", value, "ecr", echo] => {
                let any = |text: &str| {
                    if text == "*" {
                        Ok(None)
                    } else {
                        number(text).map(Some)
                    }
                };
                spec.timestamps = Some((any(value)?, any(echo)?));
            }
            ["raw", ref bytes @ ..] => {
                for byte in bytes {
                    spec.unknown.push(
                        u8::from_str_radix(byte, 16)
                            .map_err(|_| format!("`{byte}` is not a hex byte"))?,
                    );
                }
            }
            ["..."] => spec.open = true,
            _ => return Err(format!("unknown option `{option}`")),
        }
    }
    Ok(spec)
}

fn event(text: &str) -> Result<Option<Event>, String> {
    Ok(Some(match text {
        "nothing" => return Ok(None),
        "Connected" => Event::Connected,
        "Readable" => Event::Readable,
        "Writable" => Event::Writable,
        "Finished" => Event::Finished,
        "Closed Graceful" => Event::Closed(CloseReason::Graceful),
        "Closed Reset" => Event::Closed(CloseReason::Reset),
        "Closed Refused" => Event::Closed(CloseReason::Refused),
        "Closed TimedOut" => Event::Closed(CloseReason::TimedOut),
        "Closed Aborted" => Event::Closed(CloseReason::Aborted),
        _ => return Err(format!("unknown event `{text}`")),
    }))
}

fn state(text: &str) -> Result<State, String> {
    [
        State::Closed,
        State::SynSent,
        State::SynReceived,
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
    ]
    .into_iter()
    .find(|state| format!("{state:?}") == text)
    .ok_or_else(|| format!("unknown state `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_mean() {
        let script = parse(
            "
            # comment
            +0 < S 0:0(0) win 500 <mss 1000,sackOK,wscale 7>
            @1.5s > .E 1:1001(1000) ack 7 ecn ect0 <TS val * ecr 5,sack 1:2 3:4,...>
            * > R 1:1(0)
            write 10   # now
            ",
        )
        .unwrap();
        assert_eq!(script.len(), 4);
        assert_eq!(
            (script[0].number, script[0].when),
            (3, When::After(Duration::ZERO))
        );
        let Action::Leave(spec) = &script[1].action else {
            panic!("{script:?}")
        };
        assert_eq!(script[1].when, When::At(Duration::from_millis(1500)));
        assert_eq!(
            (spec.seq, spec.len, spec.ack, spec.ecn),
            (1, 1000, Some(7), Some(Ecn::Ect0))
        );
        let options = spec.options.as_ref().unwrap();
        assert_eq!(
            (options.timestamps, &options.sack[..]),
            (Some((None, Some(5))), &[(1, 2), (3, 4)][..])
        );
        assert!(options.open);
        assert_eq!(script[3].action, Action::Write(10));
    }

    #[test]
    fn ranges_have_two_ends() {
        let script = parse(
            "
            +0 < S 0:0(0) <wscale 7>
            +280ms..3s > S. 0:0(0) ack 1 rcv_wnd 500.. <wscale *>
            * > . 1:1(0) ack 1 rcv_wnd ..900
            ",
        )
        .unwrap();
        let within = When::Within(Duration::from_millis(280), Duration::from_secs(3));
        assert_eq!(script[1].when, within);
        let specs: Vec<_> = script
            .iter()
            .map(|line| match &line.action {
                Action::Arrive(spec) | Action::Leave(spec) => spec,
                other => panic!("{other:?}"),
            })
            .collect();
        let windows: Vec<_> = specs.iter().map(|spec| &spec.receive_window).collect();
        assert_eq!(windows, [&None, &Some(500..=u32::MAX), &Some(0..=900)]);
        let scale = |spec: &SegmentSpec| spec.options.as_ref().and_then(|it| it.window_scale);
        assert_eq!(
            (scale(specs[0]), scale(specs[1])),
            (Some(Some(7)), Some(None))
        );
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for (line, why) in [
            ("+0 < S 0:1(0)", "0 + 0 is not 1"),
            ("+0 > . 1:1(0)", "go together"),
            ("+5 > . 1:1(0) ack 1", "no unit"),
            ("+0 > . 1:1(0) ack 1 <foo>", "unknown option"),
            ("* write 5", "only a segment"),
            ("+1s..2s write 5", "within a range of times"),
            ("+2s..1s > R 1:1(0)", "1s is less than 2s"),
            ("+0 < R 1:1(0) rcv_wnd 5..", "has a window field"),
            ("+0 > R 1:1(0) rcv_wnd 5", "is not a range"),
            ("+0 > R 1:1(0) rcv_wnd 9..5", "5 is less than 9"),
            ("+0 < S 0:0(0) <wscale *>", "names its shift"),
            ("+0 shout", "none of"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(
                error.starts_with("line 1:") && error.contains(why),
                "{error}"
            );
        }
    }
}
