//! Processor time of this process.

/// Processor time of this process, all threads, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTime {
    pub(crate) total: f64,
    /// In user mode; the rest is the kernel's, on behalf of this process.
    pub(crate) user: f64,
}

impl CpuTime {
    /// So far.
    pub(crate) fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let total = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        Self {
            total,
            user: total * user_share().unwrap_or(1.0),
        }
    }

    /// Since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        let total = (self.total - before.total).max(0.0);
        Self {
            total,
            user: (self.user - before.user).clamp(0.0, total),
        }
    }
}

/// Which part of it was in user mode; `None` where the system does not tell.
fn user_share() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (user, system) = ticks(&stat)?;
    (user + system > 0).then(|| user as f64 / (user + system) as f64)
}

/// Clock ticks in user mode and in the kernel (proc(5): fields 14 and 15).
fn ticks(stat: &str) -> Option<(u64, u64)> {
    // The name of the program, which may contain anything, ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_those_of_proc() {
        let stat = "12 (a (b) c) S 1 12 12 0 -1 4194560 100 0 0 0 75 25 0 0 20 0 1 0";
        assert_eq!(ticks(stat), Some((75, 25)));
        assert_eq!(ticks("nothing"), None);
        let used = CpuTime::now().since(CpuTime::default());
        assert!(used.total > 0.0 && used.user <= used.total);
    }
}
