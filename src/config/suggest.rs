//! "Did you mean": the nearest valid name.

/// Returns the candidate that `word` most likely meant, if one is near enough.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    // Two slips in a long word are likely the same word; in a short one they make another.
    let tolerance = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word_and_strangers_find_none() {
        let keys = ["authorizedUsers", "control", "tmux", "issues"];
        assert_eq!(nearest("authorisedUsers", keys), Some("authorizedUsers"));
        assert_eq!(nearest("authorized_users", keys), Some("authorizedUsers"));
        assert_eq!(nearest("TMUX", keys), Some("tmux"));
        assert_eq!(nearest("webhooks", keys), None);
        assert_eq!(nearest("", keys), None);
    }
}
