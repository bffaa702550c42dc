//! Printing: the one place that writes to stdout and stderr.

use std::io::{ErrorKind, IsTerminal, Write};

use comfy_table::{ContentArrangement, Row, Table, TableStyle};
use serde::Serialize;

/// Writes text and a newline to stdout. A reader that has gone away (`| head`) is no error.
pub(crate) fn line(text: impl AsRef<str>) {
    print(&format!("{}\n", text.as_ref()));
}

/// Writes text to stdout as it is.
pub(crate) fn print(text: &str) {
    write_to(anstream::stdout().lock(), text);
}

/// Writes a line for the person at the terminal to stderr, beside the command's real output.
pub(crate) fn note(text: impl AsRef<str>) {
    write_to(anstream::stderr().lock(), &format!("{}\n", text.as_ref()));
}

/// Writes an error to stderr.
pub(crate) fn error(message: &str) {
    note(format!("\u{1b}[31merror:\u{1b}[0m {message}"));
}

/// Writes a warning to stderr.
pub(crate) fn warning(message: &str) {
    note(format!("\u{1b}[33mwarning:\u{1b}[0m {message}"));
}

fn write_to(mut to: impl Write, text: &str) {
    let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        tracing::warn!("cannot write the output: {error}");
    }
}

/// Writes a value as pretty JSON to stdout.
pub(crate) fn json(value: &impl Serialize) -> Result<(), serde_json::Error> {
    line(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Writes a table that fits the terminal; a pipe gets it unwrapped.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new())
        .set_header(Row::from(header));
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for row in table.lines() {
        line(row.trim_end());
    }
}

/// Says how long ago something was, in one unit: `12 s`, `3 m`, `2 h`, `5 d`.
pub(crate) fn age(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..=59 => format!("{s} s"),
        s @ 60..=3_599 => format!("{} m", s / 60),
        s @ 3_600..=172_799 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_use_one_unit() {
        let ages = [-3, 59, 60, 3_600, 90_000, 172_800].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 m", "1 h", "25 h", "2 d"]);
    }
}
