//! What holds for every text: properties, for the tests and for the fuzz targets in `fuzz/`.

use super::text::{clean, one_line};
use super::{RepoRef, WorkItemRef};

const PASTE: &str = "\u{1b}[200~";
const PASTE_END: &str = "\u{1b}[201~";

/// No text leaves the bracket that it is pasted in: a terminal reads one paste, and then one Enter.
pub fn no_text_leaves_its_bracket(text: &str) {
    let cleaned = clean(text);
    let typed = format!("{PASTE}{cleaned}{PASTE_END}\r");
    let read = Terminal::read(&typed);
    assert_eq!(read, [Input::Paste(cleaned.clone()), Input::Control('\r')]);
    assert_eq!(clean(&cleaned), cleaned, "what is clean stays as it is");
    let line = one_line(text, 40);
    assert!(line.chars().count() <= 40 && !line.contains(char::is_control));
}

/// What a program on a terminal is given.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    /// A bracketed paste: plain text with its tabs and line breaks.
    Paste(String),
    /// A character outside brackets.
    Typed(char),
    /// A control character that acts.
    Control(char),
    /// A sequence that acts, by its final character.
    Sequence(String),
}

/// The parser of a terminal's input: ECMA-48 in UTF-8, where C1 controls work like their escapes.
#[derive(Default)]
struct Terminal {
    read: Vec<Input>,
    state: State,
    sequence: String,
    paste: Option<String>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// Inside a control sequence.
    Control,
    /// Inside a device control, operating system or other command that a terminator ends.
    Command,
}

impl Terminal {
    fn read(typed: &str) -> Vec<Input> {
        let mut terminal = Self::default();
        typed.chars().for_each(|c| terminal.take(c));
        if let Some(open) = terminal.paste.take() {
            terminal
                .read
                .push(Input::Sequence(format!("unended: {open}")));
        }
        terminal.read
    }

    fn take(&mut self, c: char) {
        match (self.state, c) {
            // Whatever it interrupts, an escape begins anew.
            (_, '\u{1b}') => self.begin(State::Escape),
            (_, '\u{9b}') => self.begin(State::Control),
            (_, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => self.begin(State::Command),
            (State::Ground, _) => self.plain(c),
            (State::Escape, '[') => self.state = State::Control,
            (State::Escape, 'P' | 'X' | ']' | '^' | '_') => self.state = State::Command,
            (State::Control, ' '..='?') => self.sequence.push(c),
            (State::Control | State::Escape, _) => {
                self.sequence.push(c);
                self.finish();
            }
            (State::Command, '\u{7}' | '\u{9c}') => self.finish(),
            (State::Command, _) => self.sequence.push(c),
        }
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.sequence.clear();
    }

    fn plain(&mut self, c: char) {
        let shows = !c.is_control() || matches!(c, '\t' | '\n');
        match &mut self.paste {
            Some(paste) if shows => paste.push(c),
            None if shows => self.read.push(Input::Typed(c)),
            _ => self.read.push(Input::Control(c)),
        }
    }

    fn finish(&mut self) {
        self.state = State::Ground;
        match (self.sequence.as_str(), self.paste.take()) {
            ("200~", None) => self.paste = Some(String::new()),
            ("201~", Some(paste)) => self.read.push(Input::Paste(paste)),
            (other, paste) => {
                self.paste = paste;
                self.read.push(Input::Sequence(other.to_owned()));
            }
        }
    }
}

/// Two texts that are work items have one session exactly where they are one item, and its name leads
/// back to it.
pub fn refs_and_session_names_are_one_to_one(one: &str, other: &str) {
    drop(one.parse::<RepoRef>());
    if let Some(found) = WorkItemRef::of_session(one) {
        let minted = found.session_name().map(|name| name.to_string());
        assert_eq!(minted.as_deref(), Ok(one), "a name that was not minted");
    }
    let (Ok(one), Ok(other)) = (one.parse::<WorkItemRef>(), other.parse::<WorkItemRef>()) else {
        return;
    };
    assert_eq!(one.to_string().parse(), Ok(one.clone()));
    assert_eq!(one == other, one.key() == other.key());
    let (Ok(name), Ok(another)) = (one.session_name(), other.session_name()) else {
        return;
    };
    assert_eq!(one == other, name == another, "{one} and {other}");
    assert_eq!(WorkItemRef::of_session(name.as_str()), Some(one));
    let kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    assert!(name.as_str().chars().all(kept), "{name}");
    assert!(name.as_str().len() < 255, "{name}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What steers terminals, in pieces, among text.
    fn any_hostile_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\u{1b}[201~".to_owned()),
            Just("\u{1b}[200~".to_owned()),
            Just("\u{9b}201~".to_owned()),
            Just("201~".to_owned()),
            Just("\u{1b}\u{1b}[".to_owned()),
            Just("\u{1b}]0;x\u{7}".to_owned()),
            Just("\u{90}q\u{9c}".to_owned()),
            Just("\r\n\r".to_owned()),
            "[\\x00-\\x1f\\x7f-\\u{9f}]",
            "[\u{200e}\u{202a}-\u{202e}\u{2066}-\u{2069}\u{e0020}-\u{e007f}]",
            "\\PC{0,6}",
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn the_terminal_of_these_tests_is_left_by_what_ends_a_paste() {
        for (end, typed) in [
            ("\u{1b}[201~", "x"),
            ("\u{9b}201~", "x"),
            ("\u{1b}\u{1b}[201~", "x"),
        ] {
            let read = Terminal::read(&format!("{PASTE}a{end}{typed}"));
            assert_eq!(
                read,
                [Input::Paste("a".to_owned()), Input::Typed('x')],
                "{end:?}"
            );
        }
        let kept = Terminal::read(&format!("{PASTE}a201~[201~\n{PASTE_END}"));
        assert_eq!(kept, [Input::Paste("a201~[201~\n".to_owned())]);
        let acts = Terminal::read(&format!("{PASTE}\u{1b}]0;x\u{7}\r{PASTE_END}"));
        assert_eq!(acts.len(), 3, "{acts:?}");
    }

    proptest! {
        #[test]
        fn no_sequence_leaves_the_bracket_of_a_paste(text in any_hostile_text()) {
            no_text_leaves_its_bracket(&text);
        }

        #[test]
        fn no_bytes_leave_the_bracket_of_a_paste(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            no_text_leaves_its_bracket(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn no_two_refs_share_a_session(
            one in "(github:)?(g.h/)?[aA.-]{1,3}/[aA._-]{1,4}#[1-2]",
            other in "(github:)?(g.h/)?[aA.-]{1,3}/[aA._-]{1,4}#[1-2]",
        ) {
            refs_and_session_names_are_one_to_one(&one, &other);
            refs_and_session_names_are_one_to_one(&one, &one.to_uppercase());
        }

        #[test]
        fn only_a_minted_name_leads_to_a_work_item(text in "(loop-)?(github-)?[a-z0-9_-]{0,12}(--)?[a-z_-]{0,4}-?[0-9]{0,3}") {
            refs_and_session_names_are_one_to_one(&text, "o/r#1");
        }
    }
}
