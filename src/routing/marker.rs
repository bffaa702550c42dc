//! The mark by which our own comments are known again.

use super::prose::{last_line, missing_fence};
use crate::model::text::lf;

/// The line that ends every comment which the daemon or its agents write on GitHub.
pub const MARKER: &str = "<!-- the-loop:agent-comment -->";

/// What a reader sees above the hidden marker.
const ATTRIBUTION: &str = "🤖 _Written by an agent of the-loop._";

/// Tells whether a text carries our own marker: alone on the last line, outside quotes and code.
///
/// A reply that quotes one of our comments does not count, nor does a text that speaks of the marker.
#[must_use]
pub fn is_own(text: &str) -> bool {
    let text = lf(text);
    last_line(&text).is_some_and(|line| line.trim() == MARKER)
}

/// Marks a text as ours; one that is marked already stays as it is.
#[must_use]
pub fn stamp(text: &str) -> String {
    if is_own(text) {
        return text.to_owned();
    }
    let text = lf(text);
    let text = text.trim_end();
    let fence = missing_fence(text).map_or(String::new(), |fence| format!("\n{fence}"));
    let gap = if text.is_empty() { "" } else { "\n\n" };
    format!("{text}{fence}{gap}{ATTRIBUTION}\n{MARKER}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_marker_alone_on_the_last_line_is_ours() {
        for (text, expected) in [
            (MARKER.to_owned(), true),
            (format!("done\n\n{MARKER}"), true),
            (format!("done\r\n{MARKER}\r\n\r\n"), true),
            (format!("> quote\n{MARKER}"), true),
            (format!("done {MARKER}"), false),
            (format!("{MARKER}\nand my own words"), false),
            (format!("> done\n> {MARKER}"), false),
            (format!("> done\n> {MARKER}\n\nwhy?"), false),
            (format!("```\n{MARKER}"), false),
            (format!("    {MARKER}"), false),
            (format!("`{MARKER}`"), false),
            (String::new(), false),
        ] {
            assert_eq!(is_own(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_stamp_is_visible_and_given_once() {
        let stamped = stamp("All done.\n");
        assert_eq!(stamped, format!("All done.\n\n{ATTRIBUTION}\n{MARKER}"));
        assert_eq!(stamp(&stamped), stamped);
    }

    proptest! {
        #[test]
        fn whatever_is_stamped_is_ours(text in "(?s)[a-z`~> \\n<!-]{0,40}|(?s).{0,40}") {
            let stamped = stamp(&text);
            prop_assert!(is_own(&stamped), "{:?}", stamped);
            prop_assert_eq!(stamp(&stamped), stamped);
        }
    }
}
