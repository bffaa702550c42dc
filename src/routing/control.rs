//! Finds the control words in a text.

use std::collections::BTreeSet;

use super::policy::ControlWords;
use super::prose::{GAP, spoken};
use crate::model::ControlCommand;

/// What a text commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// Nothing.
    None,
    /// One thing, said once or several times.
    One(ControlCommand),
    /// Things that contradict each other; none is obeyed.
    Ambiguous,
}

/// Finds the control words that the author of a text says himself.
///
/// A phrase matches as whole tokens in any case, whatever blanks or single line break stand between
/// its words; text around it is fine. It does not match inside quotes, code and HTML comments, nor
/// where it touches a letter, a digit or one of `_ - : / @`: `/the-loop start` and
/// `the-loop start-up` say nothing. Of two phrases that begin at the same place the longer counts.
#[must_use]
pub fn parse(text: &str, words: &ControlWords) -> Words {
    let mut phrases: Vec<(ControlCommand, Vec<Vec<char>>)> = words
        .keywords
        .iter()
        .map(|(command, phrase)| (*command, phrase.split_whitespace().map(folded).collect()))
        .filter(|(_, phrase): &(_, Vec<_>)| !phrase.is_empty())
        .collect();
    phrases
        .sort_by_key(|(_, phrase)| std::cmp::Reverse(phrase.iter().map(Vec::len).sum::<usize>()));
    let text: Vec<char> = spoken(text).chars().collect();
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < text.len() {
        let mut end = at + 1;
        if at == 0 || !touches(text[at - 1], text.get(at.wrapping_sub(2)).copied()) {
            for (command, phrase) in &phrases {
                if let Some(after) = matches(&text, at, phrase) {
                    // Two commands with the same phrase are both found, and so contradict each other.
                    found.insert(*command);
                    end = end.max(after);
                    if phrases.iter().filter(|(_, other)| other == phrase).count() == 1 {
                        break;
                    }
                }
            }
        }
        at = end;
    }
    let found: Vec<ControlCommand> = found.into_iter().collect();
    match found[..] {
        [] => Words::None,
        [command] => Words::One(command),
        _ => Words::Ambiguous,
    }
}

fn folded(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).collect()
}

/// Returns where the phrase that begins at `at` ends.
fn matches(text: &[char], at: usize, phrase: &[Vec<char>]) -> Option<usize> {
    let mut at = at;
    for (index, word) in phrase.iter().enumerate() {
        if index > 0 {
            let blanks = text[at..].iter().take_while(|c| c.is_whitespace()).count();
            let breaks = text[at..at + blanks].iter().filter(|c| **c == '\n').count();
            if blanks == 0 || breaks > 1 {
                return None;
            }
            at += blanks;
        }
        let mut wanted = word.iter().copied();
        let mut next = wanted.next();
        while let Some(c) = next {
            let mut given = text.get(at)?.to_lowercase();
            if given.next() != Some(c) || given.any(|more| wanted.next() != Some(more)) {
                return None;
            }
            at += 1;
            next = wanted.next();
        }
    }
    let ends = text
        .get(at)
        .is_none_or(|after| !touches(*after, text.get(at + 1).copied()));
    ends.then_some(at)
}

/// Tells whether a phrase beside this character is only a part of something longer.
fn touches(beside: char, beyond: Option<char>) -> bool {
    let joins = matches!(beside, '.' | '\'' | '’') && beyond.is_some_and(char::is_alphanumeric);
    beside.is_alphanumeric() || matches!(beside, '_' | '-' | ':' | '/' | '@' | GAP) || joins
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ControlCommand::{Pause, Resume, Start, Stop};

    fn said(text: &str) -> Words {
        parse(text, &ControlWords::default())
    }

    #[test]
    fn a_control_word_is_a_whole_token_that_the_author_says() {
        for (text, expected) in [
            ("the-loop start", Words::One(Start)),
            ("The-Loop STOP", Words::One(Stop)),
            ("Thanks! the-loop pause, please.", Words::One(Pause)),
            ("the-loop  \t resume", Words::One(Resume)),
            ("the-loop\nstart", Words::One(Start)),
            ("the-loop\u{a0}start", Words::One(Start)),
            ("(the-loop start)", Words::One(Start)),
            ("**the-loop start**", Words::One(Start)),
            ("the-loop start.\nUse tokio.", Words::One(Start)),
            ("the-loop start the-loop start", Words::One(Start)),
            ("don't the-loop stop", Words::One(Stop)),
            ("the-loop start the-loop stop", Words::Ambiguous),
            ("", Words::None),
            ("the-loop", Words::None),
            ("the-loop\n\nstart", Words::None),
            ("theloop start", Words::None),
            ("/the-loop start", Words::None),
            ("@the-loop start", Words::None),
            ("x/the-loop start", Words::None),
            ("my-the-loop start", Words::None),
            ("the-loop start-up", Words::None),
            ("the-loop started", Words::None),
            ("the-loop start:now", Words::None),
            ("the-loop: start", Words::None),
            ("the-loop start.sh", Words::None),
            ("the-loop start's", Words::None),
            ("> the-loop stop", Words::None),
            ("`the-loop stop`", Words::None),
            ("```\nthe-loop stop\n```", Words::None),
            ("<!-- the-loop stop -->", Words::None),
            ("the-loop `x` start", Words::None),
            ("> the-loop stop\n\nNo, the-loop pause", Words::One(Pause)),
        ] {
            assert_eq!(said(text), expected, "{text:?}");
        }
    }

    #[test]
    fn keywords_can_be_chosen_and_switched_off() {
        let keywords = [
            (Start, "Начать Работу".to_owned()),
            (Stop, String::new()),
            (Pause, "go".to_owned()),
            (Resume, "go on".to_owned()),
        ];
        let words = ControlWords {
            keywords: keywords.into(),
            require_start: true,
        };
        assert_eq!(parse("начать  работу!", &words), Words::One(Start));
        assert_eq!(parse("the-loop stop", &words), Words::None);
        assert_eq!(parse("go on", &words), Words::One(Resume));
        assert_eq!(parse("go", &words), Words::One(Pause));
        assert_eq!(parse("go on, then go", &words), Words::Ambiguous);
    }

    #[test]
    fn a_letter_that_becomes_two_in_lower_case_counts_as_both() {
        let words = |phrase: &str| ControlWords {
            keywords: [(Start, phrase.to_owned())].into(),
            require_start: true,
        };
        assert_eq!(parse("İŞ", &words("İş")), Words::One(Start));
        assert_eq!(parse("İŞ", &words("iş")), Words::None);
    }

    #[test]
    fn one_phrase_for_two_commands_is_never_obeyed() {
        let words = ControlWords {
            keywords: [(Start, "go".to_owned()), (Stop, "GO".to_owned())].into(),
            require_start: true,
        };
        assert_eq!(parse("go", &words), Words::Ambiguous);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).*", phrase in "(?s).{0,10}") {
            let words = ControlWords { keywords: [(Start, phrase)].into(), require_start: true };
            drop(parse(&text, &words));
        }

        #[test]
        fn a_quoted_word_is_never_obeyed(text in "(?s)[a-z \\n`]{0,40}", depth in 1..4_usize) {
            let quoted = format!("{text}\nthe-loop stop").lines()
                .map(|line| format!("{} {line}", ">".repeat(depth)))
                .collect::<Vec<_>>()
                .join("\n");
            prop_assert_eq!(said(&quoted), Words::None);
            let reply = format!("{quoted}\n\nthe-loop start");
            prop_assert_eq!(said(&reply), Words::One(Start));
        }
    }
}
