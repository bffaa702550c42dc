//! What holds for every text that may command: properties, for the tests and for the fuzz targets.

use super::control::{Words, parse};
use super::policy::ControlWords;
use super::prose::spoken;
use crate::model::ControlCommand::{self, Start};
use crate::model::text::lf;

/// Control words count where the author says them himself: not in quotes, not in code, and not
/// beside another one.
pub fn control_words_count_only_where_they_are_said(text: &str) {
    let words = ControlWords::default();
    let said = parse(text, &words);
    let text = lf(text);
    assert_eq!(parse(&text, &words), said, "line ends mean nothing");
    if let Words::One(command) = said {
        let heard = spoken(&text).to_lowercase();
        let names = |word: &str| heard.split_whitespace().any(|said| said.contains(word));
        assert!(names("the-loop") && names(command.as_str()), "{text:?}");
    }

    let each_line = |before: &str| -> String {
        let lines = text.split('\n').map(|line| format!("{before}{line}\n"));
        lines.collect()
    };
    assert_eq!(parse(&each_line("> "), &words), Words::None, "quoted");
    let indented = format!("\n\n{}", each_line("    "));
    assert_eq!(parse(&indented, &words), Words::None, "indented");
    for mark in ["`", "~"] {
        let fence = mark.repeat(3 + text.matches(mark).count());
        let fenced = format!("{fence}\n{text}\n{fence}\n");
        assert_eq!(parse(&fenced, &words), Words::None, "fenced");
    }

    let also = |command: ControlCommand| parse(&format!("the-loop {command}\n\n{text}"), &words);
    for command in ControlCommand::ALL {
        let expected = match said {
            Words::None => Words::One(command),
            Words::One(other) if other == command => Words::One(command),
            Words::One(_) | Words::Ambiguous => Words::Ambiguous,
        };
        assert_eq!(also(command), expected, "beside {command}: {text:?}");
    }
    let mut silent = words;
    silent.keywords.clear();
    assert_eq!(
        parse(&format!("the-loop {Start}\n\n{text}"), &silent),
        Words::None
    );
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words, quotes and code, in pieces.
    fn any_comment() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("the-loop start"),
            Just("the-loop  STOP"),
            Just("the-loop\npause"),
            Just("the-loop"),
            Just("resume"),
            Just("> "),
            Just("\n"),
            Just("\n\n"),
            Just("\r\n"),
            Just("```"),
            Just("`"),
            Just("~~~"),
            Just("    "),
            Just("- "),
            Just("<!--"),
            Just("-->"),
            Just("<pre>"),
            Just("</pre>"),
            Just("\\"),
            Just(" "),
            Just("a"),
            Just("é"),
            Just("\u{1b}"),
        ];
        prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_command_is_never_heard_in_quotes_or_code_nor_beside_another(text in any_comment()) {
            control_words_count_only_where_they_are_said(&text);
        }

        #[test]
        fn any_text_commands_one_thing_or_nothing(text in "(?s).{0,80}") {
            control_words_count_only_where_they_are_said(&text);
        }
    }
}
