//! What the agent shows: pure, from its state and the terminal's size to bytes.

/// What is on the screen.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) title: &'a str,
    /// Messages and answers, oldest first.
    pub(super) transcript: &'a [Line],
    pub(super) composer: &'a str,
    pub(super) status: &'a str,
}

/// One entry of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// What the agent was told.
    Message(String),
    /// What it says to that.
    Answer(String),
}

/// The terminal's size, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Draws the whole screen and leaves the cursor behind the composer's last character.
pub(super) fn draw(view: &View<'_>, size: Size) -> String {
    let (rows, (row, column)) = compose(view, size);
    let body: String = rows
        .iter()
        .enumerate()
        .map(|(number, text)| format!("\x1b[{};1H{text}\x1b[K", number + 1))
        .collect();
    let (row, column) = (row + 1, column + 1);
    format!("\x1b[?25l{body}\x1b[J\x1b[{row};{column}H\x1b[?25h")
}

/// Lays the screen out: at most `size.rows` rows, none wider than the screen, and the cursor.
fn compose(view: &View<'_>, size: Size) -> (Vec<String>, (usize, usize)) {
    let columns = size.columns.max(1);
    let rows = size.rows.max(1);
    let mut composer = wrap(&format!("> {}", view.composer), columns);
    // The composer shows its end, and leaves more than half of the screen to the rest.
    let most = (rows / 2).saturating_sub(2).max(1);
    composer.drain(..composer.len().saturating_sub(most));

    let mut foot = Vec::new();
    if rows >= 4 {
        foot.push("─".repeat(columns));
    }
    let cursor_row_in_foot = foot.len() + composer.len() - 1;
    let last = composer.last().map_or(0, |line| width(line));
    foot.extend(composer);
    if rows >= 5 {
        foot.push(fit(view.status, columns));
    }

    let mut screen = Vec::new();
    if rows >= 6 {
        screen.push(fit(view.title, columns));
        screen.push(String::new());
    }
    let room = rows.saturating_sub(screen.len() + foot.len());
    screen.extend(tail(view.transcript, columns, room));
    let cursor = (screen.len() + cursor_row_in_foot, last.min(columns - 1));
    screen.extend(foot);
    (screen, cursor)
}

/// Returns the last rows of the transcript that fit.
fn tail(transcript: &[Line], columns: usize, room: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for line in transcript.iter().rev() {
        if rows.len() >= room {
            break;
        }
        let (mark, text) = match line {
            Line::Message(text) => ("› ", text),
            Line::Answer(text) => ("• ", text),
        };
        let mut block = wrap(&format!("{mark}{text}"), columns);
        block.push(String::new());
        block.extend(rows);
        rows = block;
    }
    rows.drain(..rows.len().saturating_sub(room));
    rows
}

/// Breaks a text into rows, at its own line ends and where the screen ends.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        let mut used = 0;
        for char in line.chars().flat_map(printable) {
            let needs = char_width(char);
            if used + needs > columns {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(char);
            used += needs;
        }
        rows.push(row);
    }
    rows
}

fn fit(text: &str, columns: usize) -> String {
    wrap(text, columns).into_iter().next().unwrap_or_default()
}

/// Keeps what came in from steering the terminal.
fn printable(char: char) -> impl Iterator<Item = char> {
    let (shown, times) = match char {
        '\t' => (' ', 4),
        control if control.is_control() => ('·', 1),
        other => (other, 1),
    };
    std::iter::repeat_n(shown, times)
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Cells that a character takes: enough for the scripts that a demo meets.
fn char_width(char: char) -> usize {
    match u32::from(char) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(transcript: &'a [Line], composer: &'a str) -> View<'a> {
        View {
            title: "demo agent",
            transcript,
            composer,
            status: "ready",
        }
    }

    #[test]
    fn every_size_is_filled_and_never_exceeded() {
        let transcript = [
            Line::Message("first line\nsecond \u{1f642} line with 漢字 in it".to_owned()),
            Line::Answer("noted".to_owned()),
            Line::Message("x".repeat(5000)),
        ];
        let composer = "a\nb\n".repeat(40);
        for columns in [1, 2, 3, 7, 20, 80, 200] {
            for rows in 1..60 {
                let size = Size { columns, rows };
                let (screen, cursor) = compose(&view(&transcript, &composer), size);
                assert!(screen.len() <= rows, "{size:?}");
                assert!(cursor.0 < rows && cursor.1 < columns, "{size:?} {cursor:?}");
                for row in screen {
                    assert!(width(&row) <= columns.max(2), "{size:?} {row:?}");
                }
            }
        }
    }

    #[test]
    fn the_newest_message_and_the_composer_are_in_sight() {
        let transcript: Vec<_> = (0..100)
            .map(|number| Line::Message(format!("message {number}")))
            .collect();
        let size = Size {
            columns: 40,
            rows: 10,
        };
        let (screen, cursor) = compose(&view(&transcript, "half a thought"), size);
        assert!(screen.iter().any(|row| row == "› message 99"));
        assert_eq!(screen[cursor.0], "> half a thought");
        assert_eq!(cursor.1, 16);
        assert_eq!(screen[0], "demo agent");
        assert_eq!(screen.last().unwrap(), "ready");
    }

    #[test]
    fn what_came_in_cannot_steer_the_terminal() {
        let transcript = [Line::Message("a\u{1b}[2Jb\rc\u{9b}d\te".to_owned())];
        let size = Size {
            columns: 40,
            rows: 10,
        };
        let (screen, _) = compose(&view(&transcript, ""), size);
        assert!(screen.contains(&"› a·[2Jb·c·d    e".to_owned()));
    }
}
