//! One line of the table: what was measured, its target, and what the Python program takes.

use std::time::Duration;

use serde_json::json;

use super::Result;

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    values: Vec<Value>,
    python: &'static str,
}

#[derive(Debug)]
struct Value {
    label: &'static str,
    amount: f64,
    unit: &'static str,
    at_most: Option<f64>,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            values: Vec::new(),
            python: "",
        }
    }

    /// Adds a number.
    pub(crate) fn value(mut self, label: &'static str, amount: f64, unit: &'static str) -> Self {
        self.values.push(Value {
            label,
            amount,
            unit,
            at_most: None,
        });
        self
    }

    /// Adds the median, and the best or the worst, of many durations in milliseconds.
    pub(crate) fn spread(self, samples: &Samples, other: Other) -> Self {
        let figure = self.value("p50", samples.at(0.5), "ms");
        match other {
            Other::Best => figure.value("min", samples.at(0.0), "ms"),
            Other::Worst => figure.value("p99", samples.at(0.99), "ms"),
        }
    }

    /// Sets the target of the first number.
    pub(crate) fn target(self, at_most: f64) -> Self {
        self.target_of(0, at_most)
    }

    /// Sets the target of a number.
    pub(crate) fn target_of(mut self, index: usize, at_most: f64) -> Self {
        if let Some(value) = self.values.get_mut(index) {
            value.at_most = Some(at_most);
        }
        self
    }

    /// Says what the Python program takes for the same.
    pub(crate) fn python(mut self, words: &'static str) -> Self {
        self.python = words;
        self
    }

    fn cells(&self) -> [String; 4] {
        let measured: Vec<String> = self.values.iter().map(Value::shown).collect();
        let targets: Vec<String> = self.values.iter().filter_map(Value::verdict).collect();
        [
            self.name.clone(),
            measured.join(", "),
            targets.join(", "),
            self.python.to_owned(),
        ]
    }
}

impl Value {
    fn shown(&self) -> String {
        format!("{} {}", self.label, with_unit(self.amount, self.unit))
    }

    fn verdict(&self) -> Option<String> {
        let limit = self.at_most?;
        let verdict = if self.amount <= limit {
            "met"
        } else {
            "MISSED"
        };
        let limit = with_unit(limit, self.unit);
        Some(format!("{} ≤ {limit}: {verdict}", self.label))
    }
}

fn with_unit(amount: f64, unit: &str) -> String {
    let number = if amount.fract() == 0.0 {
        format!("{amount:.0}")
    } else if amount < 10.0 {
        format!("{amount:.2}")
    } else {
        format!("{amount:.1}")
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Which number stands beside a median.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Other {
    Best,
    Worst,
}

/// Durations of the same thing.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Adds a duration.
    pub(crate) fn add(&mut self, took: Duration) {
        self.add_ms(took.as_secs_f64() * 1e3);
    }

    /// Adds milliseconds.
    pub(crate) fn add_ms(&mut self, took: f64) {
        let at = self.0.partition_point(|known| *known < took);
        self.0.insert(at, took);
    }

    /// Returns the milliseconds that this share of the samples stays within.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index between 0 and the number of samples"
    )]
    pub(crate) fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// Prints the lines as a Markdown table.
#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
pub(crate) fn print_table(figures: &[Figure]) {
    let head = ["", "measured", "target", "Python program"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head)
        .chain(figures.iter().map(Figure::cells))
        .collect();
    let widths: Vec<usize> = (0..4)
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        })
        .collect();
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        println!("| {} |", cells.join(" | "));
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            println!("| {} |", rules.join(" | "));
        }
    }
}

/// Prints the lines as JSON.
#[expect(
    clippy::print_stdout,
    reason = "the figures are what the program is for"
)]
pub(crate) fn print_json(figures: &[Figure]) -> Result<()> {
    let all: Vec<_> = figures
        .iter()
        .map(|figure| {
            let values: Vec<_> = figure
                .values
                .iter()
                .map(|value| {
                    json!({
                        "label": value.label,
                        "amount": value.amount,
                        "unit": value.unit,
                        "atMost": value.at_most,
                    })
                })
                .collect();
            json!({ "name": figure.name, "values": values, "python": figure.python })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&all)?);
    Ok(())
}

/// Says what is being measured, for whoever waits.
pub(crate) fn progress(words: &str) {
    complain(&format!("measuring {words} …"));
}

/// Says something beside the table.
#[expect(clippy::print_stderr, reason = "stdout is the table's")]
pub(crate) fn complain(words: &str) {
    eprintln!("{words}");
}
