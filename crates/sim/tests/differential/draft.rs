//! A scenario in the making: keys that faults may replace before it is printed.

use std::fmt::Write as _;

use tack_base::random::RandomStream;

/// The tables of a scenario, each a list of keys in the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) head: Keys,
    pub(crate) wlan: Keys,
    pub(crate) wired: Keys,
    /// Tables below `[wired]`, as text.
    pub(crate) tables: String,
    pub(crate) flows: Vec<Keys>,
    /// One-way delay of the wire, microseconds, as `wired` has it.
    pub(crate) delay_us: u64,
}

/// Keys and values of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Vec<(String, String)>);

impl Keys {
    /// Sets `key` to a value that is written as it is: a number, a truth value, a list.
    pub(crate) fn set(&mut self, key: impl Into<String>, value: impl ToString) {
        let (key, value) = (key.into(), value.to_string());
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Sets `key` to a text.
    pub(crate) fn text(&mut self, key: impl Into<String>, value: impl std::fmt::Display) {
        self.set(key, format!("\"{value}\""));
    }

    fn print(&self, table: &str, to: &mut String) {
        if self.0.is_empty() {
            return;
        }
        to.push_str(table);
        for (key, value) in &self.0 {
            let _ = writeln!(to, "{key} = {value}");
        }
    }
}

impl Draft {
    /// The scenario file.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = String::new();
        self.head.print("", &mut text);
        self.wlan.print("[wlan]\n", &mut text);
        self.wired.print("[wired]\n", &mut text);
        text.push_str(&self.tables);
        for flow in &self.flows {
            flow.print("[[flow]]\n", &mut text);
        }
        text
    }
}

/// A number from `low` to `low` times two to the power of `octaves`, small ones as probable as
/// large ones. Powers of two and a product: the same on every machine, which a logarithm is not.
pub(crate) fn scaled(random: &mut RandomStream, low: f64, octaves: u64) -> f64 {
    low * (1_u64 << random.below(octaves)) as f64 * (1.0 + random.unit())
}

/// One of `values`.
pub(crate) fn pick<T: Copy>(random: &mut RandomStream, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

/// A probability with four digits.
pub(crate) fn share(value: f64) -> String {
    format!("{:.4}", value.min(1.0))
}
