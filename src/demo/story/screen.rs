//! What is worth showing of the scripted agent's screen.

/// Cuts the last message and its answer out of the scripted agent's screen.
pub(super) fn latest_message(screen: &str) -> Vec<String> {
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let is_rule = |line: &&str| line.starts_with('─');
    let foot = lines.iter().rposition(is_rule).unwrap_or(lines.len());
    let transcript = lines.get(..foot).unwrap_or_default();
    let is_message = |line: &&str| line.starts_with('›');
    let first = transcript.iter().rposition(is_message).unwrap_or(0);
    let message = transcript.get(first..).unwrap_or_default();
    message
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| (*line).to_owned())
        .collect()
}

/// Keeps the beginning and the end of a long message.
pub(super) fn shorten(mut lines: Vec<String>) -> Vec<String> {
    const AT_MOST: usize = 6;
    const END: usize = 3;
    if lines.len() > AT_MOST {
        let left_out = lines.len() - (AT_MOST - 1);
        let note = format!("… {left_out} lines more");
        lines.splice(AT_MOST - 1 - END..lines.len() - END, [note]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_shown_by_its_beginning_and_its_end() {
        let lines = |n: u32| (1..=n).map(|at| at.to_string()).collect::<Vec<_>>();
        assert_eq!(shorten(lines(6)), lines(6));
        assert_eq!(
            shorten(lines(9)),
            ["1", "2", "… 4 lines more", "7", "8", "9"]
        );
    }

    #[test]
    fn the_last_message_and_its_answer_are_shown_of_the_screen() {
        let screen = "scripted agent\n\n› first\n\n• read 5 characters\n\n› [the-loop] comment\nplease\n\n• read 9 characters\n\n────\n> \nready\n";
        assert_eq!(
            latest_message(screen),
            ["› [the-loop] comment", "please", "• read 9 characters"]
        );
        assert!(latest_message("").is_empty());
    }
}
