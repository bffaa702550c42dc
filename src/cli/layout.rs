//! Fitting text into columns: everything is measured as a terminal shows it, wide characters as two.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What remains of a cut column on the narrowest terminal.
const LEAST: usize = 6;
/// The space between two columns of a table.
const GAP: usize = 2;

/// Returns how many cells a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a text to at most `room` cells; what is cut ends with an ellipsis.
pub(super) fn clip(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut used = 0;
    let mut cut: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used < room
        })
        .collect();
    if room > 0 {
        cut.push('…');
    }
    cut
}

/// Fills a text with blanks up to `room` cells.
pub(super) fn pad(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(width(text))))
}

/// Breaks a text between words into lines of at most `room` cells; a longer word stays whole.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        if let Some(line) = lines.last_mut() {
            if line.is_empty() {
                line.push_str(word);
                continue;
            }
            if width(line) + 1 + width(word) <= room {
                line.push(' ');
                line.push_str(word);
                continue;
            }
        }
        lines.push(word.to_owned());
    }
    lines
}

/// What becomes of a column where the terminal is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is always shown whole: ids that people copy.
    Whole,
    /// It is cut, down to this many cells; further only when nothing is left to leave out.
    Cut(usize),
    /// It is left out when that much cutting is not enough; the last one first.
    Optional,
}

/// A column's head, and how it fits.
pub(super) type Column = (&'static str, Fit);

/// Lays out a table in lines of at most `room` cells; without a limit nothing is cut.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>], room: Option<usize>) -> Vec<String> {
    let head: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let natural = |at: usize| {
        std::iter::once(&head)
            .chain(rows)
            .filter_map(|row| row.get(at))
            .map(|cell| width(cell))
            .max()
            .unwrap_or(0)
    };
    let mut shown: Vec<(usize, usize)> = (0..columns.len()).map(|at| (at, natural(at))).collect();
    if let Some(room) = room {
        fit(columns, &mut shown, room);
    }
    std::iter::once(&head)
        .chain(rows)
        .map(|row| {
            let cells: Vec<String> = shown
                .iter()
                .map(|(at, room)| {
                    let cell = row.get(*at).map_or("", String::as_str);
                    pad(&clip(cell, *room), *room)
                })
                .collect();
            cells.join(&" ".repeat(GAP)).trim_end().to_owned()
        })
        .collect()
}

fn total(shown: &[(usize, usize)]) -> usize {
    let gaps = GAP * shown.len().saturating_sub(1);
    shown.iter().map(|(_, width)| width).sum::<usize>() + gaps
}

/// Leaves out columns and narrows others until all fit, as far as they may.
fn fit(columns: &[Column], shown: &mut Vec<(usize, usize)>, room: usize) {
    let least = |(at, width): &(usize, usize)| match columns[*at].1 {
        Fit::Cut(least) => (*at, least.min(*width)),
        Fit::Whole | Fit::Optional => (*at, *width),
    };
    while total(&shown.iter().map(least).collect::<Vec<_>>()) > room {
        let Some(last) = shown
            .iter()
            .rposition(|(at, _)| columns[*at].1 == Fit::Optional)
        else {
            break;
        };
        shown.remove(last);
    }
    while total(shown) > room {
        // The widest gives first, so that all that are cut end up about equally wide.
        let widest = |shown: &mut Vec<(usize, usize)>, least: fn(usize) -> usize| {
            let cut = shown.iter_mut();
            let cut = cut
                .filter(|(at, width)| matches!(columns[*at].1, Fit::Cut(to) if *width > least(to)));
            cut.max_by_key(|(_, width)| *width)
                .map(|(_, width)| *width -= 1)
        };
        if widest(shown, |to| to)
            .or_else(|| widest(shown, |to| to.min(LEAST)))
            .is_none()
        {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_count_as_the_two_cells_that_they_take() {
        assert_eq!(width("日本"), 4);
        assert_eq!(clip("日本語", 5), "日本…");
        assert_eq!(clip("日本語", 4), "日…");
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("abc", 0), "");
        assert_eq!(pad("日", 4), "日  ");
    }

    #[test]
    fn lines_break_between_words_and_never_inside_one() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a-very-long-word b", 5), ["a-very-long-word", "b"]);
        assert_eq!(wrap("", 5), [""]);
    }

    fn lines(room: Option<usize>) -> Vec<String> {
        let columns = [
            ("ITEM", Fit::Whole),
            ("TITLE", Fit::Cut(8)),
            ("TMUX", Fit::Optional),
        ];
        let row = ["octo/app#15", "A rather long title", "loop-octo"];
        table(&columns, &[row.map(str::to_owned).to_vec()], room)
    }

    #[test]
    fn a_pipe_gets_every_cell_whole() {
        assert_eq!(
            lines(None),
            [
                "ITEM         TITLE                TMUX",
                "octo/app#15  A rather long title  loop-octo"
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_gets_cut_titles_then_fewer_columns_and_whole_ids() {
        assert_eq!(lines(Some(34))[1], "octo/app#15  A rather …  loop-octo");
        assert_eq!(lines(Some(31))[1], "octo/app#15  A rather long tit…");
        assert_eq!(lines(Some(10))[1], "octo/app#15  A rat…");
    }
}
