//! Sessions: one agent of one work item in one tmux session.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{BootId, DeliveryId, ProcessId, WorkItemRef};

/// A recorded id that does not have the form its owner gives to ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}")]
pub struct BadId {
    /// What the text should be.
    pub what: &'static str,
    /// The text.
    pub text: String,
}

/// One spawn: every attempt to create the same session carries the same owner id.
///
/// It names the run folder and the tmux option `@loop_owner`; a UUID, so it is safe in both.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OwnerId(String);

impl OwnerId {
    /// Mints a new owner id.
    #[must_use]
    pub fn mint() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The agent's own conversation id, the one that `--resume` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HarnessSessionId(String);

impl HarnessSessionId {
    /// Mints a new id, for a harness that takes ours.
    #[must_use]
    pub fn mint() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The configured name of a harness: `claude`, or a key of `harnesses`.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct HarnessName(pub String);

impl fmt::Display for HarnessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tmux session id: `$<n>`, unique within one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TmuxSessionId(String);

/// A tmux pane id: `%<n>`, unique within one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PaneId(String);

fn sigil_and_digits(text: &str, sigil: char) -> bool {
    text.strip_prefix(sigil)
        .is_some_and(|n| !n.is_empty() && n.len() <= 18 && n.bytes().all(|b| b.is_ascii_digit()))
}

fn is_plain_id(text: &str) -> bool {
    text.len() <= 128
        && text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

macro_rules! checked_id {
    ($type:ident, $what:literal, $valid:expr) => {
        impl FromStr for $type {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(BadId {
                        what: $what,
                        text: text.to_owned(),
                    })
                }
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(id: $type) -> Self {
                id.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_id!(OwnerId, "owner id", |text| uuid::Uuid::try_parse(text)
    .is_ok());
checked_id!(HarnessSessionId, "conversation id", is_plain_id);
checked_id!(TmuxSessionId, "tmux session id", |text| sigil_and_digits(
    text, '$'
));
checked_id!(PaneId, "tmux pane id", |text| sigil_and_digits(text, '%'));

/// Which tmux server, as tmux's own flag names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TmuxSocket {
    /// The user's default server.
    Default,
    /// A server of its own: `tmux -L <name>`.
    Name(String),
    /// A server at a path: `tmux -S <path>`; what is recorded once a server answered.
    Path(PathBuf),
}

/// Where exactly an agent runs; recorded when its session is registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TmuxTarget {
    /// The server's socket.
    pub socket: TmuxSocket,
    /// The server's process.
    pub server: ProcessId,
    /// The session's id on that server.
    pub session_id: TmuxSessionId,
    /// The pane that the host runs in.
    pub pane: PaneId,
    /// The host, the pane's own process.
    pub host: ProcessId,
    /// The harness, the host's child; the pane's own process where it was adopted from a person.
    pub harness: ProcessId,
    /// The boot during which all these processes ran.
    pub boot: BootId,
}

impl TmuxTarget {
    /// Tells whether a host of ours runs in the pane, rather than a person's own program or shell.
    #[must_use]
    pub fn is_hosted(&self) -> bool {
        self.host != self.harness
    }
}

/// What a session is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// A first spawn is under way; only its boot delivery may be claimed.
    Spawning,
    /// Deliveries go in.
    Active,
    /// Kept, but nothing is delivered.
    Paused,
    /// Ended, by a person or with its work item.
    Closed,
}

impl SessionStatus {
    /// Returns the status as the store writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawning => "spawning",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Closed => "closed",
        }
    }

    /// Tells whether the session still belongs to an agent.
    #[must_use]
    pub fn is_open(self) -> bool {
        self != Self::Closed
    }
}

impl FromStr for SessionStatus {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        [Self::Spawning, Self::Active, Self::Paused, Self::Closed]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| BadId {
                what: "session status",
                text: text.to_owned(),
            })
    }
}

/// The recorded session of a work item, open or closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The row's number.
    pub id: i64,
    /// The work item as it is called now.
    pub work_item: WorkItemRef,
    /// The ref that the session was spawned for; its name is minted from this one.
    pub minted_ref: WorkItemRef,
    /// The machine that runs it; only that machine claims for it.
    pub host: String,
    /// The spawn that made the running harness.
    pub owner: OwnerId,
    /// Which harness.
    pub harness: HarnessName,
    /// The conversation that a respawn resumes (AC12).
    pub harness_session_id: HarnessSessionId,
    /// The absolute directory that the harness runs in.
    pub cwd: PathBuf,
    /// What it is in; the command line says more: whether its harness runs.
    #[serde(skip)]
    pub status: SessionStatus,
    /// Since when.
    #[serde(rename = "stateSince")]
    pub status_since: DateTime<Utc>,
    /// A respawn under way; nothing of it counts before it is registered.
    pub attempt: Option<RespawnAttempt>,
    /// When the running harness was registered.
    pub registered_at: Option<DateTime<Utc>>,
    /// Where it runs; none until the first spawn was registered.
    pub target: Option<TmuxTarget>,
    /// The delivery that the first spawn carries.
    pub boot_delivery: Option<DeliveryId>,
    /// When the row was made.
    pub created_at: DateTime<Utc>,
    /// When something was last delivered into it.
    pub last_event_at: Option<DateTime<Utc>>,
    /// When it was closed.
    pub closed_at: Option<DateTime<Utc>>,
}

/// A respawn under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RespawnAttempt {
    /// Its spawn.
    pub owner: OwnerId,
    /// The conversation it resumes or begins.
    pub harness_session_id: HarnessSessionId,
    /// The delivery it carries.
    pub boot_delivery: DeliveryId,
}

impl TmuxTarget {
    /// Tells whether both name the same pane of the same session of the same server process.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.server == other.server
            && self.session_id == other.session_id
            && self.pane == other.pane
            && self.boot == other.boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_tmux_own_form_are_accepted() {
        assert!("%5".parse::<PaneId>().is_ok());
        for hostile in ["", "%", "5", "%5;kill-server", "%-1", "=x:", "%5 "] {
            assert!(hostile.parse::<PaneId>().is_err(), "{hostile}");
        }
        assert!("$12".parse::<TmuxSessionId>().is_ok());
        assert!("%12".parse::<TmuxSessionId>().is_err());
    }

    #[test]
    fn a_place_is_a_pane_of_a_session_of_a_server_of_a_boot() {
        let process = ProcessId { pid: 40, start: 7 };
        let here = TmuxTarget {
            socket: TmuxSocket::Default,
            server: process,
            session_id: "$1".parse().unwrap(),
            pane: "%1".parse().unwrap(),
            host: process,
            harness: process,
            boot: BootId("b".to_owned()),
        };
        let other = ProcessId { pid: 41, start: 7 };
        let another_agent = TmuxTarget {
            host: other,
            harness: other,
            ..here.clone()
        };
        assert!(here.is_same_place(&another_agent));
        let server = TmuxTarget {
            server: other,
            ..here.clone()
        };
        let session = TmuxTarget {
            session_id: "$2".parse().unwrap(),
            ..here.clone()
        };
        let pane = TmuxTarget {
            pane: "%2".parse().unwrap(),
            ..here.clone()
        };
        let boot = TmuxTarget {
            boot: BootId("c".to_owned()),
            ..here.clone()
        };
        for elsewhere in [server, session, pane, boot] {
            assert!(!here.is_same_place(&elsewhere), "{elsewhere:?}");
        }
    }

    #[test]
    fn a_conversation_id_never_looks_like_a_flag() {
        assert!("0d6f-4.a_b".parse::<HarnessSessionId>().is_ok());
        for hostile in ["", "-p", "--dangerously", "a b", "a/b", "../x"] {
            assert!(hostile.parse::<HarnessSessionId>().is_err(), "{hostile}");
        }
    }
}
