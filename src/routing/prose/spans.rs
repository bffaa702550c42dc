//! Leaves out what is hidden or shown as code within lines.

use super::GAP;
use super::blocks::Start;

/// How far inline code can reach, which depends on what counts as one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Line,
    /// An item of a list, however deep it stands.
    DeepItem,
    Item,
    Paragraph,
}

/// Replaces each such part by one [`GAP`].
pub(super) fn without_spans(text: &str) -> String {
    let mut hidden = vec![false; text.len()];
    for reach in [Reach::Line, Reach::DeepItem, Reach::Item, Reach::Paragraph] {
        hide_spans(text, &block_ends(text, reach), &mut hidden);
    }
    let mut spoken = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if !hidden[at] {
            spoken.push(c);
        } else if !spoken.ends_with(GAP) {
            spoken.push(GAP);
        }
    }
    spoken
}

/// Returns where each block ends, in order; the last one is the text's end.
fn block_ends(text: &str, reach: Reach) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        let start = Start::of(line);
        let starts_block = line.trim().is_empty()
            || line.starts_with(GAP)
            || match reach {
                Reach::Line => true,
                Reach::DeepItem => start.interrupts(),
                Reach::Item => start.interrupts() && !start.is_deep(),
                Reach::Paragraph => false,
            };
        if starts_block {
            ends.push(at);
        }
        at += line.len() + 1;
    }
    ends.push(text.len());
    ends
}

/// Hides inline code, HTML comments, and HTML that shows code or quotes.
fn hide_spans(text: &str, ends: &[usize], hidden: &mut [bool]) {
    let runs = backtick_runs(text);
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let end = if let Some(escaped) = rest.strip_prefix('\\') {
            at += 1 + escaped.chars().next().map_or(0, char::len_utf8);
            continue;
        } else if first == '`' {
            let block_end = ends
                .get(ends.partition_point(|end| *end <= at))
                .copied()
                .unwrap_or(text.len());
            let length = rest.bytes().take_while(|b| *b == b'`').count();
            let later = runs.partition_point(|(start, _)| *start <= at);
            let closing = runs[later..]
                .iter()
                .take_while(|(start, _)| *start < block_end)
                .find(|(_, other)| *other == length);
            match closing {
                Some((start, _)) => start + length,
                None => {
                    at += length;
                    continue;
                }
            }
        } else if first == '<' {
            match html_end(rest) {
                Some(length) => at + length,
                None => {
                    at += 1;
                    continue;
                }
            }
        } else {
            at += first.len_utf8();
            continue;
        };
        hidden[at..end].fill(true);
        at = end;
    }
}

fn backtick_runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// Returns the length of a hidden HTML part; one that is never closed reaches to the end.
fn html_end(text: &str) -> Option<usize> {
    let close = if text.starts_with("<!--") {
        "-->".to_owned()
    } else {
        let inside = text.strip_prefix('<')?;
        let length = inside
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'-')
            .count();
        let name = inside[..length].to_ascii_lowercase();
        if !matches!(name.as_str(), "pre" | "code" | "blockquote") {
            return None;
        }
        format!("</{name}")
    };
    let found = text.char_indices().find(|(at, _)| {
        text.get(*at..at + close.len())
            .is_some_and(|part| part.eq_ignore_ascii_case(&close))
    });
    Some(found.map_or(text.len(), |(at, _)| at + close.len()))
}
