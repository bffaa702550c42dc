//! Which tmux this is, and whether it can be worked with.

use std::fmt;

/// The oldest version with everything that the runner uses: pane options (3.0), `run-shell -C` (3.2).
pub const OLDEST: Version = Version { major: 3, minor: 2 };

/// A version of tmux; letters after the minor number are patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// Reads what `tmux -V` prints: `tmux 3.3a`, `tmux next-3.6`; none where it is none of these.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.trim().strip_prefix("tmux ")?;
        let number = word.strip_prefix("next-").unwrap_or(word);
        let (major, rest) = number.split_once('.')?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(Self {
            major: major.parse().ok()?,
            minor: digits.parse().ok()?,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_tmux_prints_them() {
        let version = |major, minor| Some(Version { major, minor });
        assert_eq!(Version::parse("tmux 3.3a\n"), version(3, 3));
        assert_eq!(Version::parse("tmux 3.10"), version(3, 10));
        assert_eq!(Version::parse("tmux next-3.7"), version(3, 7));
        assert_eq!(Version::parse("tmux master"), None);
        assert_eq!(Version::parse(""), None);
        assert!(Version::parse("tmux 2.9a") < Some(OLDEST));
        assert!(Version::parse("tmux 3.10") > Some(OLDEST));
    }
}
