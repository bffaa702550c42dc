//! Quotes the text of others so that it can be told from ours.

use crate::model::text::clean;

/// Which end of a text that is too long is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Start,
    End,
}

/// A text of others on its way into a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quote<'a> {
    /// Whose it is, as the line above says.
    pub(super) label: &'a str,
    /// What the fence says of its content: `text`, `diff`.
    pub(super) info: &'a str,
    pub(super) text: &'a str,
    /// The longest that is shown, in characters.
    pub(super) cap: usize,
    pub(super) keep: Keep,
    /// Where the whole text stands; empty where that is not known.
    pub(super) url: &'a str,
}

impl Quote<'_> {
    /// Returns the label, the fenced text, and what was cut.
    pub(super) fn render(&self) -> String {
        let text = clean(self.text);
        let text = text.trim_matches('\n');
        let total = text.chars().count();
        let shown = capped(text, self.cap, self.keep);
        let fence = fence_for(shown);
        let kept = shown.chars().count();
        let cut = if kept < total {
            let place = match self.url {
                "" => String::new(),
                url => format!(", full text: {url}"),
            };
            format!("\n«cut, {kept} of {total} characters{place}»")
        } else {
            String::new()
        };
        format!(
            "{}:\n{fence}{}\n{shown}\n{fence}{cut}",
            self.label, self.info
        )
    }
}

/// Returns a fence that nothing in the text can close.
fn fence_for(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Returns whole lines up to the cap; a part of a line only where a single one is longer. The text neither
/// begins nor ends with a line break.
fn capped(text: &str, cap: usize, keep: Keep) -> &str {
    let total = text.chars().count();
    if total <= cap {
        return text;
    }
    let at = |chars: usize| {
        text.char_indices()
            .nth(chars)
            .map_or(text.len(), |(at, _)| at)
    };
    match keep {
        Keep::Start => {
            let part = &text[..at(cap)];
            let line = if text[part.len()..].starts_with('\n') {
                Some(part.len())
            } else {
                part.rfind('\n')
            };
            line.map_or(part, |end| &part[..end])
        }
        Keep::End => {
            let start = at(total - cap);
            let part = &text[start..];
            let line = if text[..start].ends_with('\n') {
                Some(0)
            } else {
                part.find('\n').map(|end| end + 1)
            };
            line.map_or(part, |begin| &part[begin..])
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quote(text: &str, cap: usize, keep: Keep) -> String {
        Quote {
            label: "by @mallory",
            info: "text",
            text,
            cap,
            keep,
            url: "https://x/1",
        }
        .render()
    }

    #[test]
    fn a_quote_is_labelled_and_fenced_beyond_what_it_contains() {
        assert_eq!(
            quote("a\nb", 9, Keep::Start),
            "by @mallory:\n```text\na\nb\n```"
        );
        assert_eq!(
            quote("```\nx", 9, Keep::Start),
            "by @mallory:\n````text\n```\nx\n````"
        );
        assert_eq!(quote("", 9, Keep::Start), "by @mallory:\n```text\n\n```");
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_line_and_says_so() {
        assert_eq!(
            quote("one\ntwo\nthree", 9, Keep::Start),
            "by @mallory:\n```text\none\ntwo\n```\n«cut, 7 of 13 characters, full text: https://x/1»"
        );
        assert_eq!(
            quote("one\ntwo\nthree", 7, Keep::End),
            "by @mallory:\n```text\nthree\n```\n«cut, 5 of 13 characters, full text: https://x/1»"
        );
        assert_eq!(capped("ééééé", 2, Keep::Start), "éé");
        assert_eq!(capped("ééééé", 2, Keep::End), "éé");
        assert_eq!(capped("ab\ncd", 2, Keep::Start), "ab");
        assert_eq!(capped("ab\ncd", 2, Keep::End), "cd");
    }

    proptest! {
        #[test]
        fn nothing_quoted_gets_out_of_its_fence(text in "(?s)[`~ab\\n\\r\\x1b]{0,60}|(?s).{0,60}", cap in 0..80_usize) {
            for keep in [Keep::Start, Keep::End] {
                let quoted = quote(&text, cap, keep);
                let lines: Vec<&str> = quoted.lines().collect();
                let fence = lines[1].strip_suffix("text").unwrap();
                prop_assert!(fence.len() >= 3 && fence.chars().all(|c| c == '`'));
                let closing = lines[2..].iter().position(|line| line.starts_with(fence)).unwrap() + 2;
                prop_assert_eq!(lines[closing], fence);
                let after = &lines[closing + 1..];
                prop_assert!(after.is_empty() || after.len() == 1 && after[0].starts_with("«cut, "));
            }
        }
    }
}
