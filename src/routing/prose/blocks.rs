//! Sorts the lines of a Markdown text.

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Spoken,
    Blank,
    Quoted,
    Code,
}

/// An open fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) mark: char,
    pub(super) length: usize,
    /// The deepest indentation at which it may be closed.
    close_within: usize,
}

/// Whether a fence may stand deeper than three columns, as it does inside lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeepFences {
    Count,
    AreText,
}

/// Returns what each line is, and the fence that is still open at the end.
pub(super) fn classify(text: &str, deep: DeepFences) -> (Vec<Line>, Option<Fence>) {
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
pub(super) struct Start<'a> {
    /// Columns before anything visible.
    indent: usize,
    /// The column at which the rest stands.
    column: usize,
    /// Columns between the last list mark and the rest; none where there is no list mark.
    after_mark: Option<usize>,
    rest: &'a str,
}

impl<'a> Start<'a> {
    pub(super) fn of(line: &'a str) -> Self {
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
        let allowed = !self.is_deep() || deep == DeepFences::Count;
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

    /// A list mark that stands so deep is one only inside a list, which is not looked for: it is text
    /// where a paragraph goes on, and code elsewhere.
    fn is_indented_code(&self, paragraph: bool) -> bool {
        self.is_deep() && !paragraph || self.after_mark.is_some_and(|columns| columns >= 5)
    }

    fn is_heading(&self) -> bool {
        let level = self.rest.chars().take_while(|c| *c == '#').count();
        (1..=6).contains(&level) && self.rest[level..].starts_with([' ', '\t'])
    }

    /// Tells whether the line begins something of its own even right after a paragraph.
    pub(super) fn interrupts(&self) -> bool {
        let visible: Vec<char> = self.rest.chars().filter(|c| !c.is_whitespace()).collect();
        let is_rule = visible.len() >= 3
            && matches!(visible.first(), Some('-' | '*' | '_'))
            && visible.iter().all(|c| Some(c) == visible.first());
        self.after_mark.is_some() || self.is_heading() || is_rule || self.rest.starts_with("<!--")
    }

    /// Tells whether the line stands so deep that it begins something only inside a list, which is not
    /// looked for; elsewhere it goes on with its paragraph.
    pub(super) fn is_deep(&self) -> bool {
        self.indent >= 4
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
