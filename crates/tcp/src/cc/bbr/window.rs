//! The window: how it grows to what the model asks for, and what bounds it.

use super::marks::View;
use super::recovery::Window;
use super::{Ack, Bbr, MAX_WINDOW, Mode};
use crate::cc::cubic::BETA_OF_MARKS;

impl Bbr {
    /// What [`Marks`](super::marks::Marks) has to know.
    pub(super) fn marks_view(&self) -> View {
        let path = self.path_holds();
        let floor = if self.full_pipe.reached() {
            (path as f64 * BETA_OF_MARKS) as u64
        } else {
            path
        };
        View {
            cwnd: self.cwnd,
            floor,
            target: self.target(),
        }
    }

    pub(super) fn update_window(&mut self, ack: &Ack) {
        if ack.delivered > 0 {
            let window = self
                .recovery
                .window(ack, self.cwnd, self.mss, &mut self.round);
            self.cwnd = match window {
                Window::Conserve(cwnd) => cwnd,
                Window::Grow(cwnd) => self.grown(ack, cwnd).max(self.min_window()),
            };
        }
        self.cap_window();
    }

    /// Bytes in flight that need no queue, after the model.
    pub(super) fn path_holds(&self) -> u64 {
        self.model
            .bdp(self.bandwidth(), 1.0)
            .unwrap_or(0)
            .saturating_add(self.feedback.unreported())
    }

    /// The window that the model asks for.
    pub(super) fn target(&self) -> u64 {
        let bandwidth = self.bandwidth();
        let mut target = self
            .model
            .bdp(bandwidth, self.cwnd_gain)
            .unwrap_or(self.initial_window)
            .saturating_add(self.feedback.unreported());
        if self.full_pipe.reached() {
            target = target.saturating_add(self.extra_acked.allowance(bandwidth));
        }
        self.with_bursts(target)
    }

    /// `cwnd` on its way to the target, which no report of many segments takes it beyond; cut to
    /// it only once the pipe was full.
    pub(super) fn grown(&self, ack: &Ack, cwnd: u64) -> u64 {
        let target = self.target();
        let grown = cwnd.saturating_add(ack.delivered);
        if self.full_pipe.reached() {
            grown.min(target)
        } else if ack.total_delivered < self.initial_window {
            grown
        } else if cwnd < target {
            grown.min(target)
        } else {
            cwnd
        }
    }

    pub(super) fn cap_window(&mut self) {
        self.cwnd = self.cwnd.clamp(self.mss, MAX_WINDOW);
        if let Some(bound) = self.marks.bound() {
            self.cwnd = self.cwnd.min(bound.max(self.min_window()));
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
    }
}
