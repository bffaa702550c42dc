//! Which environment variables hold secrets, by their names.

/// Tells whether a value of this name is better not shown.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "PRIVATE",
    ]
    .iter()
    .any(|word| name.contains(word))
        || name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| matches!(word, "KEY" | "AUTH" | "PASS" | "PAT" | "APIKEY"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name() {
        for name in [
            "GH_TOKEN",
            "ANTHROPIC_API_KEY",
            "db_password",
            "CLIENT_SECRET",
            "KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["LANG", "KEYBOARD", "PATH", "EDITOR", "MONKEY_MODE"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
