//! Which parts of a Markdown text its author says himself: not quotes, not code, not what is hidden.
//!
//! A command or a closing keyword counts only there. Where Markdown can be read in two ways, a part
//! counts only if it does in both: overlooking a word costs a second comment, obeying a quoted one
//! ends somebody's session.

use crate::model::text::lf;

/// Stands for a part that was left out; no keyword contains it or may touch it.
pub(super) const GAP: char = '\u{fffc}';

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Spoken,
    Blank,
    Quoted,
    Code,
}

/// An open fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
    /// The deepest indentation at which it may be closed.
    close_within: usize,
}

/// Whether a fence may stand deeper than three columns, as it does inside lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeepFences {
    Count,
    AreText,
}

/// Returns what the author says himself; each part left out becomes a [`GAP`].
pub(super) fn spoken(text: &str) -> String {
    let text = lf(text);
    let (deep, _) = classify(&text, DeepFences::Count);
    let (shallow, _) = classify(&text, DeepFences::AreText);
    let lines = text.split('\n').zip(deep.into_iter().zip(shallow));
    let lines: Vec<String> = lines
        .map(|(line, kinds)| match kinds {
            (Line::Spoken | Line::Blank, Line::Spoken | Line::Blank) => line.to_owned(),
            _ => GAP.to_string(),
        })
        .collect();
    without_spans(&lines.join("\n"))
}

/// Tells whether the last line that is not blank is outside quotes and code, and returns it.
pub(super) fn last_line(text: &str) -> Option<&str> {
    let (kinds, _) = classify(text, DeepFences::AreText);
    let mut lines = text
        .split('\n')
        .zip(kinds)
        .collect::<Vec<_>>()
        .into_iter()
        .rev();
    let (line, kind) = lines.find(|(_, kind)| *kind != Line::Blank)?;
    (kind == Line::Spoken).then_some(line)
}

/// Returns the fence that would close the text's code, where it was left open.
pub(super) fn missing_fence(text: &str) -> Option<String> {
    let (_, open) = classify(text, DeepFences::AreText);
    open.map(|fence| fence.mark.to_string().repeat(fence.length))
}

fn classify(text: &str, deep: DeepFences) -> (Vec<Line>, Option<Fence>) {
    let mut kinds = Vec::new();
    let mut fence: Option<Fence> = None;
    let mut paragraph = false;
    let mut quote_goes_on = false;
    for line in text.split('\n') {
        let start = Start::of(line);
        let kind = if let Some(open) = fence {
            if start.closes(line, open) {
                fence = None;
            }
            Line::Code
        } else if line.trim().is_empty() {
            Line::Blank
        } else if start.rest.starts_with('>') {
            Line::Quoted
        } else if let Some(open) = start.opens_fence(deep) {
            fence = Some(open);
            Line::Code
        } else if start.is_indented_code(paragraph) {
            Line::Code
        } else if quote_goes_on && !start.interrupts() {
            Line::Quoted
        } else {
            Line::Spoken
        };
        // A paragraph in a quote goes on over lines that lack the mark, until something else begins.
        let said_something = !start.rest.trim_start_matches(['>', ' ', '\t']).is_empty();
        quote_goes_on = kind == Line::Quoted && said_something;
        paragraph = kind == Line::Spoken && !start.is_heading();
        kinds.push(kind);
    }
    (kinds, fence)
}

/// How a line begins: its indentation, list marks, and what follows them.
#[derive(Debug, Clone, Copy)]
struct Start<'a> {
    /// Columns before anything visible.
    indent: usize,
    /// The column at which the rest stands.
    column: usize,
    /// Columns between the last list mark and the rest; none where there is no list mark.
    after_mark: Option<usize>,
    rest: &'a str,
}

impl<'a> Start<'a> {
    fn of(line: &'a str) -> Self {
        let (indent, mut rest) = blanks(line, 0);
        let mut start = Self {
            indent,
            column: indent,
            after_mark: None,
            rest,
        };
        while let Some(mark) = list_mark(rest) {
            let after = start.column + mark;
            let (column, next) = blanks(&rest[mark..], after);
            if next.is_empty() {
                break;
            }
            rest = next;
            start = Self {
                indent,
                column,
                after_mark: Some(column - after),
                rest,
            };
        }
        start
    }

    fn opens_fence(&self, deep: DeepFences) -> Option<Fence> {
        let mark = self
            .rest
            .chars()
            .next()
            .filter(|c| matches!(c, '`' | '~'))?;
        let length = self.rest.chars().take_while(|c| *c == mark).count();
        let allowed = self.after_mark.is_some() || self.indent < 4 || deep == DeepFences::Count;
        let info = &self.rest[length..];
        (allowed && length >= 3 && !(mark == '`' && info.contains('`'))).then(|| Fence {
            mark,
            length,
            close_within: match (self.after_mark, deep) {
                (None, DeepFences::AreText) => 3,
                _ => self.column + 3,
            },
        })
    }

    fn closes(&self, line: &str, open: Fence) -> bool {
        let (indent, rest) = blanks(line, 0);
        let rest = rest.trim_end();
        indent <= open.close_within
            && rest.chars().count() >= open.length
            && rest.chars().all(|c| c == open.mark)
    }

    fn is_indented_code(&self, paragraph: bool) -> bool {
        self.after_mark
            .map_or(self.indent >= 4 && !paragraph, |columns| columns >= 5)
    }

    fn is_heading(&self) -> bool {
        let level = self.rest.chars().take_while(|c| *c == '#').count();
        (1..=6).contains(&level) && self.rest[level..].starts_with([' ', '\t'])
    }

    /// Tells whether the line begins something of its own even right after a paragraph.
    fn interrupts(&self) -> bool {
        let visible: Vec<char> = self.rest.chars().filter(|c| !c.is_whitespace()).collect();
        let is_rule = visible.len() >= 3
            && matches!(visible.first(), Some('-' | '*' | '_'))
            && visible.iter().all(|c| Some(c) == visible.first());
        self.indent < 4
            && (self.after_mark.is_some()
                || self.is_heading()
                || is_rule
                || self.rest.starts_with("<!--"))
    }
}

/// Skips blanks; returns the column reached and the rest. A tab goes to the next multiple of four.
fn blanks(text: &str, mut column: usize) -> (usize, &str) {
    for (at, c) in text.char_indices() {
        match c {
            ' ' => column += 1,
            '\t' => column += 4 - column % 4,
            _ => return (column, &text[at..]),
        }
    }
    (column, "")
}

/// Returns the length of the list mark that the text begins with; only a list that begins with 1 may
/// interrupt a paragraph.
fn list_mark(text: &str) -> Option<usize> {
    let length = match text.as_bytes() {
        [b'-' | b'*' | b'+', ..] => 1,
        [b'1', b'.' | b')', ..] => 2,
        _ => return None,
    };
    text[length..].starts_with([' ', '\t']).then_some(length)
}

/// How far inline code can reach, which depends on what counts as one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Line,
    Item,
    Paragraph,
}

fn without_spans(text: &str) -> String {
    let mut hidden = vec![false; text.len()];
    for reach in [Reach::Line, Reach::Item, Reach::Paragraph] {
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
        let starts_block = match reach {
            Reach::Line => true,
            Reach::Item => {
                line.trim().is_empty() || line.starts_with(GAP) || Start::of(line).interrupts()
            }
            Reach::Paragraph => line.trim().is_empty() || line.starts_with(GAP),
        };
        if starts_block && at > 0 {
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
    while at < text.len() {
        let rest = &text[at..];
        let end = if rest.starts_with('\\') {
            at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            continue;
        } else if rest.starts_with('`') {
            let block_end = ends
                .get(ends.partition_point(|end| *end <= at))
                .copied()
                .unwrap_or(text.len());
            let first = runs.partition_point(|(start, _)| *start < at);
            let length = rest.bytes().take_while(|b| *b == b'`').count();
            let closing = runs[first..]
                .iter()
                .skip_while(|(start, _)| *start < at + length)
                .take_while(|(start, _)| *start < block_end)
                .find(|(_, other)| *other == length);
            match closing {
                Some((start, _)) => start + length,
                None => {
                    at += length;
                    continue;
                }
            }
        } else if rest.starts_with('<') {
            match html_end(rest) {
                Some(length) => at + length,
                None => {
                    at += 1;
                    continue;
                }
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
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
        let name = ["pre", "code", "blockquote"].into_iter().find(|name| {
            let tag = text.get(1..=name.len());
            let after = text[1..].as_bytes().get(name.len());
            tag.is_some_and(|tag| tag.eq_ignore_ascii_case(name))
                && after.is_some_and(|b| !b.is_ascii_alphanumeric() && *b != b'-')
        })?;
        format!("</{name}")
    };
    let found = text.char_indices().find(|(at, _)| {
        text.get(*at..at + close.len())
            .is_some_and(|part| part.eq_ignore_ascii_case(&close))
    });
    Some(found.map_or(text.len(), |(at, _)| at + close.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORD: &str = "WORD";

    #[test]
    fn only_what_the_author_says_himself_is_spoken() {
        for (text, expected) in [
            ("WORD", true),
            ("please WORD now", true),
            ("- WORD", true),
            ("1. WORD", true),
            ("# WORD", true),
            ("**WORD**", true),
            ("a\n    WORD", true),
            ("> q\n\nWORD", true),
            ("> q\n- WORD", true),
            (">\nWORD", true),
            ("```\nx\n```\nWORD", true),
            ("- ```\n  x\n  ```\n\nWORD", true),
            ("1. a\n    ```\n    x\n    ```\nWORD", true),
            ("`x` WORD `y`", true),
            ("it`s WORD", true),
            ("\\`WORD\\`", true),
            ("<!-- x --> WORD", true),
            ("`<!--` WORD", true),
            ("a < b WORD", true),
            ("<coder> WORD", true),
            ("> WORD", false),
            ("   > WORD", false),
            (">WORD", false),
            (">> WORD", false),
            ("- > WORD", false),
            ("> q\nWORD", false),
            ("> q\r\nWORD", false),
            ("```\nWORD\n```", false),
            ("```\nWORD", false),
            ("~~~ text\nWORD\n~~~", false),
            ("````\n```\nWORD\n````", false),
            ("```\n    ```\nWORD\n```", false),
            ("```\n```x\nWORD\n```", false),
            ("- ```\n  WORD\n  ```", false),
            ("1. a\n    ```\n    WORD\n    ```", false),
            ("    WORD", false),
            ("\tWORD", false),
            ("a\n\n    WORD", false),
            ("-      WORD", false),
            ("`WORD`", false),
            ("``a ` WORD``", false),
            ("`a\nWORD`", false),
            ("- it`s\n- `WORD`", false),
            ("it`s\n\n`WORD`", false),
            ("<!-- WORD -->", false),
            ("<!--\n\nWORD\n\n-->", false),
            ("<!-- WORD", false),
            ("<!-- ` --> x `WORD`", false),
            ("<pre>WORD</pre>", false),
            ("<CODE>WORD</CODE>", false),
            ("<blockquote>\n\nWORD\n\n</blockquote>", false),
        ] {
            assert_eq!(
                spoken(text).contains(WORD),
                expected,
                "{text:?} gave {:?}",
                spoken(text)
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s)[`~<>!\\-\\\\ \\n\\ta-c1.é]{0,60}|(?s).{0,60}") {
            drop(spoken(&text));
            drop(missing_fence(&text));
            let closed = missing_fence(&text).map_or(text.clone(), |fence| format!("{text}\n{fence}"));
            prop_assert_eq!(missing_fence(&closed), None);
        }

        #[test]
        fn nothing_inside_a_fence_is_spoken(before in "[a-z .\\n-]{0,20}", inside in "(?s)[a-z`~> \\n#-]{0,40}") {
            let fence = "`".repeat(3 + inside.matches('`').count());
            let text = format!("{before}\n{fence}\n{inside}\nWORD\n{fence}\nafter");
            let said = spoken(&text);
            prop_assert!(!said.contains(WORD), "{}", said);
        }

        #[test]
        fn nothing_inside_a_quote_is_spoken(before in "[a-z .\\n`-]{0,20}", after in "[a-z .\\n`-]{0,20}") {
            let text = format!("{before}\n\n> a WORD b\n\n{after}");
            let said = spoken(&text);
            prop_assert!(!said.contains(WORD), "{}", said);
        }
    }
}
