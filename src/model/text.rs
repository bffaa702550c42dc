//! Text of others on its way to a terminal.

/// Turns CRLF and lone CR into LF.
#[must_use]
pub fn lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Removes everything that a terminal or a reader could act on instead of showing it.
///
/// CRLF and CR become LF; C0 except tab and newline, DEL, C1, the bidirectional controls and the tag
/// characters go. Without ESC and C1 no sequence can end the bracketed paste early (measured on tmux
/// 3.3a to 3.7); tags spell out text that agents read and people do not see.
#[must_use]
pub fn clean(text: &str) -> String {
    lf(text).chars().filter(|c| is_harmless(*c)).collect()
}

fn is_harmless(c: char) -> bool {
    match c {
        '\t' | '\n' => true,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => false,
        '\u{061c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{e0000}'..='\u{e007f}' => false,
        _ => true,
    }
}

/// Makes a one-line value out of any text, for headers and log fields: cleaned, whitespace folded,
/// cut to `max` characters with an ellipsis.
#[must_use]
pub fn one_line(text: &str, max: usize) -> String {
    let folded = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() <= max {
        return folded;
    }
    let mut cut: String = folded.chars().take(max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// A number with the noun that it counts: `1 item`, `2 items`, `2 repositories`.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{number} {stem}ies"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bracket_cannot_be_ended_from_inside() {
        assert_eq!(
            clean("a\u{1b}[201~b\u{9b}c\rd\r\ne\0f\u{202e}g"),
            "a[201~bc\nd\nefg"
        );
        assert_eq!(clean("seen\u{e0068}\u{e0069}\u{e0001}"), "seen");
        assert_eq!(clean("tab\tand\nemoji 🙂 stay"), "tab\tand\nemoji 🙂 stay");
    }

    #[test]
    fn a_header_is_one_short_line() {
        assert_eq!(one_line(" a\n\tb  c ", 20), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    #[test]
    fn a_count_says_its_noun_in_the_right_number() {
        assert_eq!(count(1, "repository"), "1 repository");
        assert_eq!(count(0, "repository"), "0 repositories");
        assert_eq!(count(2, "delay"), "2 delays");
        assert_eq!(count(2, "item"), "2 items");
    }

    proptest! {
        #[test]
        fn clean_text_holds_no_control_but_tab_and_newline(text in "\\PC*|(?s).*") {
            prop_assert!(clean(&text).chars().all(|c| c == '\t' || c == '\n' || !c.is_control()));
        }
    }
}
