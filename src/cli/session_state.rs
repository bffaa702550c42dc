//! What a session is in, as every table, filter and JSON of the command line says it.

use std::fmt;

use serde::{Serialize, Serializer};

use super::args::StateFilter;
use crate::model::{Session, SessionStatus};
use crate::process::identity::{Life, life_in};

/// What a session is in, from its row and from whether its harness still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// Whether its harness runs cannot be told.
    Unknown,
    /// Its harness is proved gone; the next event starts it again.
    Ended,
    /// Its harness runs, or that cannot be told.
    Paused,
    /// Its harness is proved gone; the next event after a resume starts it again.
    PausedAndEnded,
    Spawning,
    Closed,
    /// It was closed, and its agent was let run.
    ClosedAndRunning,
}

impl State {
    pub(super) const ALL: [Self; 8] = [
        Self::Running,
        Self::Unknown,
        Self::Ended,
        Self::Paused,
        Self::PausedAndEnded,
        Self::Spawning,
        Self::Closed,
        Self::ClosedAndRunning,
    ];

    pub(super) fn of(session: &Session) -> Self {
        let target = session.target.as_ref();
        let life = target.map(|target| life_in(&target.boot, &target.harness));
        Self::told_by(session.status, life)
    }

    fn told_by(status: SessionStatus, life: Option<Life>) -> Self {
        match (status, life) {
            (SessionStatus::Spawning, _) => Self::Spawning,
            (SessionStatus::Active, Some(Life::Running)) => Self::Running,
            (SessionStatus::Active, Some(Life::Unknown)) => Self::Unknown,
            (SessionStatus::Active, Some(Life::Gone) | None) => Self::Ended,
            (SessionStatus::Paused, Some(Life::Running | Life::Unknown)) => Self::Paused,
            (SessionStatus::Paused, Some(Life::Gone) | None) => Self::PausedAndEnded,
            (SessionStatus::Closed, Some(Life::Running)) => Self::ClosedAndRunning,
            (SessionStatus::Closed, _) => Self::Closed,
        }
    }

    /// Tells whether a filter means it: each of the words that it is shown with does.
    pub(super) fn is(self, wanted: StateFilter) -> bool {
        match wanted {
            StateFilter::Spawning => self == Self::Spawning,
            StateFilter::Running => self == Self::Running,
            StateFilter::Unknown => self == Self::Unknown,
            StateFilter::Ended => self.has_ended(),
            StateFilter::Paused => matches!(self, Self::Paused | Self::PausedAndEnded),
            StateFilter::Closed => matches!(self, Self::Closed | Self::ClosedAndRunning),
        }
    }

    /// Tells whether the session is open and its harness is proved gone.
    pub(super) fn has_ended(self) -> bool {
        matches!(self, Self::Ended | Self::PausedAndEnded)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Unknown => "unknown",
            Self::Ended => "ended",
            Self::Paused => "paused",
            Self::PausedAndEnded => "paused, ended",
            Self::Spawning => "spawning",
            Self::Closed => "closed",
            Self::ClosedAndRunning => "closed, runs on",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn only_a_harness_that_is_proved_gone_has_ended() {
        for status in [SessionStatus::Active, SessionStatus::Paused] {
            let ended = |life| State::told_by(status, life).has_ended();
            assert!(ended(Some(Life::Gone)) && ended(None), "{status:?}");
            assert!(
                !ended(Some(Life::Running)) && !ended(Some(Life::Unknown)),
                "{status:?}"
            );
        }
    }

    #[test]
    fn a_state_is_found_by_each_word_that_it_is_shown_with() {
        for state in State::ALL {
            let shown = state.to_string();
            let found: Vec<String> = StateFilter::value_variants()
                .iter()
                .filter(|filter| state.is(**filter))
                .filter_map(|filter| Some(filter.to_possible_value()?.get_name().to_owned()))
                .collect();
            assert!(!found.is_empty(), "{shown}");
            for word in shown.split(", ").filter(|word| *word != "runs on") {
                assert!(found.iter().any(|name| name == word), "{shown}: {found:?}");
            }
        }
    }
}
