//! The numbers of a run, by name.

use std::collections::BTreeMap;

use serde_json::Value;

/// Numbers by name: those of the report as `flows.0.goodput_bps`, `wlan.airtime.tcp_ack`, and those
/// of a [`Measure`](super::Measure).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(BTreeMap<String, f64>);

/// Radios whose counters figures look at.
const RADIOS: [&str; 4] = ["ap", "sta0", "sta1", "neighbour_ap"];

impl Values {
    /// The number called `name`; not a number when there is none.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Those whose names begin with `prefix`, by what follows it, as a number.
    pub fn numbered(&self, prefix: &str) -> Vec<(f64, f64)> {
        let mut all: Vec<_> = self
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.parse().ok()?, value)))
            .collect();
        all.sort_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0));
        all
    }

    /// Keeps a number; what is none is as if it had not been measured.
    pub fn insert(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.0.insert(name.into(), value);
        }
    }

    /// Every number of a report but how long it took on the wall clock; of single radios only those
    /// of [`RADIOS`], as `wlan.ap.attempts`.
    pub(super) fn of_report(report: &tack_sim::Report) -> Self {
        let mut values = Self::default();
        if let Ok(mut json) = serde_json::to_value(report) {
            if let Some(wlan) = json.get_mut("wlan").and_then(Value::as_object_mut) {
                wlan.remove("stations");
            }
            values.flatten("", &json);
        }
        let radios = report.wlan.iter().flat_map(|wlan| &wlan.stations);
        for radio in radios.filter(|radio| RADIOS.contains(&radio.name.as_str())) {
            if let Ok(json) = serde_json::to_value(radio) {
                values.flatten(&format!("wlan.{}", radio.name), &json);
            }
        }
        values.0.remove("wall_seconds");
        values.0.remove("seed");
        values
    }

    fn flatten(&mut self, path: &str, value: &Value) {
        let below = |key: &str| {
            if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}.{key}")
            }
        };
        match value {
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.insert(path, number);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.flatten(&below(&index.to_string()), item);
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    self.flatten(&below(key), field);
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
}

impl FromIterator<(String, f64)> for Values {
    fn from_iter<I: IntoIterator<Item = (String, f64)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_values_are_sorted_by_number() {
        let values: Values = [("a.10", 1.0), ("a.9", 2.0), ("b.1", 3.0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect();
        assert_eq!(values.numbered("a."), [(9.0, 2.0), (10.0, 1.0)]);
    }
}
