//! Keys of older or fuller versions, so that an existing file gets an answer better than "unknown".

/// Why a key that once had a meaning has none here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Gone for good; says what replaced it.
    Removed(&'static str),
    /// Another version has it.
    NotAvailable,
}

impl Fate {
    /// Returns the message for the key; `is_section` tells whether its value is a map.
    pub(super) fn message(self, is_section: bool) -> String {
        match self {
            Self::Removed(instead) => format!("removed; {instead}"),
            Self::NotAvailable if is_section => {
                "not available in this version: delete the section".to_owned()
            }
            Self::NotAvailable => "not available in this version: delete the line".to_owned(),
        }
    }
}

const API: &str = "GitHub is reached through its API now: delete the line";
const DATABASE: &str = "all state is in the database below state.root: delete the line";
const LOCK: &str = "a lock below state.root replaces it: delete the line";

/// Paths with list indexes left out; a path stands for all below it.
const RETIRED: &[(&str, Fate)] = &[
    (
        "version",
        Fate::Removed("the file needs no version: delete the line"),
    ),
    ("webhooks", Fate::NotAvailable),
    ("collaborators", Fate::NotAvailable),
    ("notifications", Fate::NotAvailable),
    ("service", Fate::NotAvailable),
    ("channels", Fate::NotAvailable),
    ("selfDiagnosis", Fate::NotAvailable),
    ("standingSessions", Fate::NotAvailable),
    (
        "polling.enabled",
        Fate::Removed("`the-loop poll start` is what polls: delete the line"),
    ),
    ("polling.stateFile", Fate::Removed(DATABASE)),
    ("polling.stateDir", Fate::Removed(DATABASE)),
    ("polling.pidfile", Fate::Removed(LOCK)),
    ("polling.sources[].ghBinary", Fate::Removed(API)),
    ("routing.enabled", Fate::NotAvailable),
    ("routing.registryDir", Fate::Removed(DATABASE)),
    (
        "routing.runner",
        Fate::Removed("every session runs in tmux: delete the line"),
    ),
    ("routing.ghBinary", Fate::Removed(API)),
    ("routing.control.ghBinary", Fate::Removed(API)),
    ("routing.control.keywords.execute", Fate::NotAvailable),
    ("routing.control.keywords.contribute", Fate::NotAvailable),
    ("routing.control.keywords.cleanup", Fate::NotAvailable),
    ("routing.control.keywords.do", Fate::NotAvailable),
    (
        "routing.dedupCacheSize",
        Fate::Removed("every event is remembered in the database: delete the line"),
    ),
    (
        "routing.dispatchTimeoutSeconds",
        Fate::Removed("every call has a deadline of its own: delete the line"),
    ),
    ("routing.graph", Fate::NotAvailable),
    ("routing.workspace", Fate::NotAvailable),
    ("routing.webTerminal", Fate::NotAvailable),
    ("routing.reactions", Fate::NotAvailable),
    ("routing.announce", Fate::NotAvailable),
    ("routing.harnessTrust", Fate::NotAvailable),
    ("routing.harnessPlugins", Fate::NotAvailable),
    ("routing.tmux.sessionPerPr", Fate::NotAvailable),
    ("integrations.slack", Fate::NotAvailable),
    ("integrations.jira", Fate::NotAvailable),
    ("integrations.github.transport", Fate::Removed(API)),
    ("integrations.github.cli", Fate::Removed(API)),
    (
        "integrations.github.api",
        Fate::Removed("write integrations.github.apiUrl and integrations.github.tokenEnv instead"),
    ),
];

/// Returns the fate of a retired key, by its path with list indexes left out.
pub(super) fn fate(pattern: &str) -> Option<Fate> {
    RETIRED
        .iter()
        .find(|(path, _)| *path == pattern)
        .map(|(_, fate)| *fate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn no_retired_key_is_a_valid_one() {
        let keys = schema::keys();
        for (path, _) in RETIRED {
            let inside = format!("{path}.");
            assert!(
                !keys
                    .iter()
                    .any(|key| key.path == *path || key.path.starts_with(&inside)),
                "{path} is retired and valid"
            );
        }
    }
}
