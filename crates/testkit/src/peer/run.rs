//! Runs packet scripts: what arrives, what the application does, and what has to leave.

use tack_base::Instant;

use super::segment::difference;
use super::{BEGIN, Peer};
use crate::pattern;
use crate::script::{self, Action, Line, SegmentSpec, When};
use crate::trace::describe;
use tack_tcp::Event;

impl Peer {
    /// Runs a script (see [`script`]). Everything that leaves must be expected.
    pub fn run(&mut self, text: &str) {
        let lines = script::parse(text).unwrap_or_else(|why| panic!("{why}"));
        for line in &lines {
            self.step(line);
        }
        self.demand_silence("the end of the script");
    }

    fn step(&mut self, line: &Line) {
        let place = format!("line {} of the script", line.number);
        let target = match line.when {
            When::After(time) => Some(self.last + time),
            When::At(time) => Some(BEGIN + time),
            When::Within(..) | When::Whenever => None,
        };
        if let Some(target) = target {
            assert!(target >= self.now, "{place} goes back in time");
            self.advance(target);
            self.last = target;
        }
        if let Action::Leave(spec) = &line.action {
            for spec in spec.train() {
                let before = self.last;
                self.expect(&spec, target, &place);
                if let When::Within(least, most) = line.when {
                    let after = self.last.saturating_since(before);
                    if after < least || after > most {
                        self.fail(&place, &format!("it left after {after:?}"));
                    }
                }
            }
            return;
        }
        self.demand_silence(&place);
        self.act(&line.action, &place);
    }

    pub(super) fn act(&mut self, action: &Action, place: &str) {
        let now = self.now;
        match action {
            Action::Arrive(spec) => spec.train().iter().for_each(|spec| self.arrive(spec)),
            Action::Leave(_) | Action::Silence => {}
            Action::Write(len) => {
                let data = pattern::bytes(self.written, *len);
                let mut taken = 0;
                while taken < *len {
                    let more = self.with(|connection, now| connection.write(now, &data[taken..]));
                    match more {
                        Ok(more) => taken += more,
                        Err(why) => self.fail(
                            place,
                            &format!("write of {len} bytes: {taken} were taken, then: {why}"),
                        ),
                    }
                }
                self.written += *len as u64;
            }
            Action::Read(len) => {
                let got = self.read_all(place);
                if got != *len {
                    self.fail(place, &format!("{got} bytes could be read, not {len}"));
                }
            }
            Action::Eof => {
                let result = self.with(|connection, now| connection.read(now, &mut [0; 16]));
                if result != Ok(0) {
                    self.fail(
                        place,
                        &format!("end of stream expected, read says {result:?}"),
                    );
                }
            }
            Action::Finish => self.with(|connection, now| connection.finish(now)),
            Action::Abort => self.with(|connection, now| connection.abort(now)),
            Action::StopReading => self.with(|connection, now| connection.stop_reading(now)),
            Action::PathMtu(mtu) => {
                self.with(|connection, _| connection.handle_path_mtu(now, *mtu))
            }
            Action::Event(expected) => {
                let mut event = self.next_event();
                // These events recur, and count only where a script names them.
                while matches!(event, Some(Event::Writable | Event::Readable)) && *expected != event
                {
                    event = self.next_event();
                }
                if event != *expected {
                    self.fail(place, &format!("event {event:?}, not {expected:?}"));
                }
            }
            Action::State(expected) => {
                let state = self.connection().state();
                if state != *expected {
                    self.fail(place, &format!("state {state:?}, not {expected:?}"));
                }
            }
        }
    }

    fn expect(&mut self, spec: &SegmentSpec, target: Option<Instant>, place: &str) {
        if target.is_none() {
            self.run_timers_until_output();
        }
        let Some(output) = self.output.pop_front() else {
            self.fail(place, &format!("expected {spec:?}, but nothing left"));
        };
        let at = target.map_or(output.at, |target| target.saturating_since(BEGIN));
        self.last = BEGIN + at;
        let difference = difference(&output, spec, at, self.origins(), self.shift());
        if !difference.is_empty() {
            let left = describe(
                &output.header,
                output.payload.len(),
                output.ecn,
                self.origins(),
            );
            self.fail(
                place,
                &format!("what left is not what was expected:\n  {left}\n{difference}"),
            );
        }
    }

    fn demand_silence(&mut self, place: &str) {
        if let Some(output) = self.output.front() {
            let left = describe(
                &output.header,
                output.payload.len(),
                output.ecn,
                self.origins(),
            );
            let at = output.at;
            self.fail(
                place,
                &format!("this left at {at:?} and was not expected:\n  {left}"),
            );
        }
    }
}
