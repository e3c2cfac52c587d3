//! Axes: keys of a scenario, and the values that they take.

use tack_sim::ScenarioError;
use tack_sim::scenario::{Item, Origin, Reader, Value};

use crate::parquet_file::{Column, Kind};
use crate::quantity::Quantity;
use crate::table::Cell;

/// Keys that vary together.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// The keys; all take the same value, and the first names the columns.
    pub(crate) keys: Vec<String>,
    /// Where the axis stands in the plan.
    pub(crate) line: Option<usize>,
    values: Values,
    form: Form,
}

#[derive(Clone, Debug)]
enum Values {
    List(Vec<Value>),
    Range {
        quantity: Quantity,
        from: f64,
        to: f64,
        is_log: bool,
        /// How many a grid has.
        count: Option<u32>,
    },
}

/// How the values stand in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Text,
    /// As text, and as a number in a column of its own.
    Quantity(Quantity),
    Number(Quantity),
}

/// Most values of an axis.
const MOST: u64 = 100_000;

impl Axis {
    /// Reads a table `[[axis]]`; a grid needs a number of values.
    pub(super) fn read(mut table: Reader<'_>, is_grid: bool) -> Result<Self, ScenarioError> {
        let keys = read_keys(&mut table)?;
        let line = match table.item("key").map(|item| &item.origin) {
            Some(Origin::Line(line)) => Some(*line),
            _ => None,
        };
        let values = match table.item("values").cloned() {
            Some(item) => {
                for key in ["from", "to", "scale", "count"] {
                    table.refuse(
                        key,
                        "the axis has values: leave out either them or the range",
                    )?;
                }
                Values::List(read_list(&table, &item)?)
            }
            None => read_range(&mut table, is_grid)?,
        };
        table.finish()?;
        let form = form(&values);
        Ok(Self {
            keys,
            line,
            values,
            form,
        })
    }

    /// The columns of its values.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let key = &self.keys[0];
        let column = |suffix: &str, kind| Column::named(format!("{key}{suffix}"), kind);
        match self.form {
            Form::Text => vec![column("", Kind::Text)],
            Form::Quantity(quantity) => vec![
                column("", Kind::Text),
                column(quantity.suffix(), Kind::Float),
            ],
            Form::Number(Quantity::Whole) => vec![column("", Kind::Integer)],
            Form::Number(_) => vec![column("", Kind::Float)],
        }
    }

    /// The column whose numbers, or texts, order its values.
    pub(crate) fn plotted(&self) -> String {
        match self.form {
            Form::Quantity(quantity) => format!("{}{}", self.keys[0], quantity.suffix()),
            Form::Text | Form::Number(_) => self.keys[0].clone(),
        }
    }

    /// How many values a grid has.
    pub(crate) fn len(&self) -> usize {
        match &self.values {
            Values::List(values) => values.len(),
            Values::Range { count, .. } => count.unwrap_or(1) as usize,
        }
    }

    /// Value number `index` of a grid.
    pub(crate) fn at(&self, index: usize) -> (String, Vec<Cell>) {
        match &self.values {
            Values::List(values) => self.listed(&values[index.min(values.len() - 1)]),
            Values::Range {
                quantity,
                from,
                to,
                count,
                ..
            } => {
                let last = count.unwrap_or(1).saturating_sub(1) as usize;
                // The ends as they were written, not rounded.
                match index {
                    0 => self.amount(*quantity, *from),
                    index if index >= last => self.amount(*quantity, *to),
                    index => self.share(index as f64 / last as f64),
                }
            }
        }
    }

    /// The value at `share` of the way from the first to the last, 0 up to 1.
    pub(crate) fn share(&self, share: f64) -> (String, Vec<Cell>) {
        match &self.values {
            Values::List(values) => {
                let index = (share * values.len() as f64) as usize;
                self.listed(&values[index.min(values.len() - 1)])
            }
            Values::Range {
                quantity,
                from,
                to,
                is_log,
                ..
            } => {
                let amount = match is_log {
                    // By libm: every machine has the same points.
                    true => from * libm::exp(share * libm::log(to / from)),
                    false => from + share * (to - from),
                };
                let amount = quantity.rounded(amount).clamp(*from, *to);
                self.amount(*quantity, amount)
            }
        }
    }

    fn amount(&self, quantity: Quantity, amount: f64) -> (String, Vec<Cell>) {
        let text = quantity.text(amount);
        let cells = match self.form {
            Form::Quantity(_) => vec![Cell::Text(text.clone()), quantity.cell(amount)],
            _ => vec![quantity.cell(amount)],
        };
        (text, cells)
    }

    fn listed(&self, value: &Value) -> (String, Vec<Cell>) {
        let setting = value.setting().unwrap_or_default();
        let shown = match value {
            Value::Text(text) => text.clone(),
            _ => setting.clone(),
        };
        let cells = match self.form {
            Form::Text => vec![Cell::Text(shown)],
            Form::Quantity(quantity) => {
                let amount = Quantity::read(&shown).map_or(f64::NAN, |(_, amount)| amount);
                vec![Cell::Text(shown), quantity.cell(amount)]
            }
            Form::Number(quantity) => {
                vec![quantity.cell(number(value).unwrap_or(f64::NAN))]
            }
        };
        (setting, cells)
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn form(values: &Values) -> Form {
    let values = match values {
        Values::Range { quantity, .. } => {
            return match quantity {
                Quantity::Whole | Quantity::Real => Form::Number(*quantity),
                quantity => Form::Quantity(*quantity),
            };
        }
        Values::List(values) => values,
    };
    if values
        .iter()
        .all(|value| matches!(value, Value::Integer(_)))
    {
        return Form::Number(Quantity::Whole);
    }
    if values.iter().all(|value| number(value).is_some()) {
        return Form::Number(Quantity::Real);
    }
    let quantity = |value: &Value| match value {
        Value::Text(text) => Quantity::read(text).map(|(quantity, _)| quantity),
        _ => None,
    };
    match quantity(&values[0]) {
        Some(first) if values.iter().all(|value| quantity(value) == Some(first)) => {
            Form::Quantity(first)
        }
        _ => Form::Text,
    }
}

fn read_keys(table: &mut Reader<'_>) -> Result<Vec<String>, ScenarioError> {
    const EXAMPLE: &str = "an axis needs the key that it varies, such as key = \"wired.delay\"; \
                           several keys that take the same value are a list";
    let keys = match table.item("key").map(|item| &item.value) {
        Some(Value::Text(key)) => vec![key.clone()],
        Some(Value::Array(items)) => {
            let keys = items.iter().map(|item| match &item.value {
                Value::Text(key) => Some(key.clone()),
                _ => None,
            });
            let keys: Option<Vec<_>> = keys.collect();
            keys.filter(|keys| !keys.is_empty())
                .ok_or_else(|| table.fail("key", EXAMPLE))?
        }
        Some(_) => return Err(table.fail("key", EXAMPLE)),
        None => return Err(table.fail_table(EXAMPLE)),
    };
    for key in &keys {
        let is_part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !key.split('.').all(is_part) {
            return Err(table.fail(
                "key",
                format!("{key:?} is not a key; write it as --set does, such as flow.0.ack"),
            ));
        }
        if key == "seed" || key == "name" {
            let why = match key.as_str() {
                "seed" => "seeds are not an axis: write seeds = 5 in the plan",
                _ => "no result depends on the name",
            };
            return Err(table.fail("key", why));
        }
    }
    Ok(keys)
}

fn read_list(table: &Reader<'_>, item: &Item) -> Result<Vec<Value>, ScenarioError> {
    let Value::Array(items) = &item.value else {
        return Err(table.fail(
            "values",
            "expected a list such as [\"10ms\", \"50ms\"]; a range is written from = \"10ms\", to = \"200ms\"",
        ));
    };
    if items.is_empty() || items.len() as u64 > MOST {
        let count = items.len();
        return Err(table.fail(
            "values",
            format!("expected 1 to {MOST} values, got {count}"),
        ));
    }
    let values: Vec<Value> = items.iter().map(|item| item.value.clone()).collect();
    match values.iter().find(|value| value.setting().is_none()) {
        Some(value) => Err(table.fail(
            "values",
            format!("{} is not a value that a key takes", value.describe()),
        )),
        None => Ok(values),
    }
}

fn read_range(table: &mut Reader<'_>, is_grid: bool) -> Result<Values, ScenarioError> {
    let mut end = |key: &str| {
        match table.item(key).map(|item| item.value.clone()) {
        Some(Value::Integer(number)) => Ok(Some((Quantity::Whole, number as f64))),
        Some(Value::Float(number)) if number.is_finite() => {
            Ok(Some((Quantity::Real, number)))
        }
        Some(Value::Text(text)) => match Quantity::read(&text) {
            Some(read) => Ok(Some(read)),
            None => Err(table.fail(
                key,
                format!("{text:?} is not a quantity; write a number, or a text with a unit such as \"10ms\", \"54Mbps\", \"64KiB\", \"100p\" or \"1.0bdp\""),
            )),
        },
        Some(_) => Err(table.fail(key, "expected a number, or a text with a unit such as \"10ms\"")),
        None => Ok(None),
    }
    };
    let (Some(from), Some(to)) = (end("from")?, end("to")?) else {
        return Err(table.fail_table(
            "an axis needs its values: values = [\"10ms\", \"50ms\"], or a range from = \"10ms\", to = \"200ms\"",
        ));
    };
    let quantity = match (from.0, to.0) {
        (a, b) if a == b => a,
        (Quantity::Whole | Quantity::Real, Quantity::Whole | Quantity::Real) => Quantity::Real,
        _ => return Err(table.fail("to", "both ends of a range need the same kind of unit")),
    };
    if from.1 >= to.1 {
        return Err(table.fail("to", "the end of a range must be above its beginning"));
    }
    let is_log = table
        .choice("scale", &[("linear", false), ("log", true)])?
        .unwrap_or(false);
    if is_log && from.1 <= 0.0 {
        return Err(table.fail("from", "a logarithmic range begins above zero"));
    }
    let count = table.integer("count", 2, MOST)?;
    let count = match (count, is_grid) {
        (None, true) => {
            return Err(table
                .fail_table("a grid needs the number of values of each range, such as count = 5"));
        }
        (Some(_), false) => {
            return Err(table.fail(
                "count",
                "only a grid has a count; here [sampling] says the number of points",
            ));
        }
        (count, _) => count.and_then(|count| u32::try_from(count).ok()),
    };
    Ok(Values::Range {
        quantity,
        from: from.1,
        to: to.1,
        is_log,
        count,
    })
}
