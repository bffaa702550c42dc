//! Which parts of a Markdown text its author says himself: not quotes, not code, not what is hidden.
//!
//! A command or a closing keyword counts only there. Where Markdown can be read in two ways, a part
//! counts only if it does in both: overlooking a word costs a second comment, obeying a quoted one
//! ends somebody's session.

mod blocks;
mod spans;

use blocks::{DeepFences, Line, classify};

use crate::model::text::lf;

/// Stands for a part that was left out; no keyword contains it or may touch it.
pub(super) const GAP: char = '\u{fffc}';

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
    spans::without_spans(&lines.join("\n"))
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
            ("> q\n1. WORD", true),
            ("> q\n# WORD", true),
            ("> q\n***\nWORD", true),
            ("> q\n<!-- x -->\nWORD", true),
            ("-    WORD", true),
            ("- \t WORD", true),
            ("#a\n    WORD", true),
            ("```\nx\n```\nWORD", true),
            ("```\nx\n   ```\nWORD", true),
            ("``` a`\nWORD", true),
            ("- ```\n  x\n  ```\n\nWORD", true),
            ("1. a\n    ```\n    x\n    ```\nWORD", true),
            ("`x` WORD `y`", true),
            ("it`s WORD", true),
            ("it`s WORD\n\nb`", true),
            ("it`s WORD\n```\nx\n```\nb`", true),
            ("\n\n\n\n\n\n\n\n\nit`s WORD\n\nb`", true),
            ("b`\nit`s WORD\n`x", true),
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
            ("> q\n**\nWORD", false),
            ("a ` b\n***\nc ` d\n    - WORD ` e", false),
            ("> q\n---a\nWORD", false),
            ("> q\nabc\nWORD", false),
            ("> q\r\nWORD", false),
            ("```\nWORD\n```", false),
            ("```\nWORD", false),
            ("~~~ text\nWORD\n~~~", false),
            ("~~~ a`b\nWORD\n~~~", false),
            ("````\n```\nWORD\n````", false),
            ("```\n    ```\nWORD\n```", false),
            ("  ```\n    ```\nWORD\n```", false),
            ("```\n```x\nWORD\n```", false),
            ("- ```\n  WORD\n  ```", false),
            ("1. a\n    ```\n    WORD\n    ```", false),
            ("- a\n    - WORD", true),
            ("- a\n    - ```\n      x\n      ```\nWORD", true),
            ("- a\n    - ```\n      WORD\n      ```", false),
            ("    - ```\n```\nWORD\n```", false),
            ("    - WORD", false),
            ("a\n\n    1. WORD", false),
            ("    WORD", false),
            ("\tWORD", false),
            ("a\n\n    WORD", false),
            ("-      WORD", false),
            ("1.      WORD", false),
            ("# a\n    WORD", false),
            ("`WORD`", false),
            ("``WORD``", false),
            ("``a ` WORD``", false),
            ("`a\nWORD`", false),
            ("- it`s\n- `WORD`", false),
            ("- it`s\n    - `a\n      WORD`", false),
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

    #[test]
    fn only_a_fence_that_was_left_open_is_missing() {
        for (text, expected) in [
            ("a", None),
            ("```\na\n```", None),
            ("    ```\na", None),
            ("```\na", Some("```")),
            ("a\n~~~~ text\n```", Some("~~~~")),
        ] {
            assert_eq!(missing_fence(text).as_deref(), expected, "{text:?}");
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
