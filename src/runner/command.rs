//! The tmux commands that the runner uses, as data.
//!
//! The real server gets them rendered to arguments; a test double interprets them as they are. No
//! text of others is in any of them: texts travel through [`TmuxCommand::LoadBuffer`].

use std::ffi::OsString;
use std::time::Duration;

use crate::model::{DeliveryId, PaneId, SessionName, TmuxSessionId, TmuxTarget};

use super::field::{Field, Marker, OptionName};
use super::guard::Guard;

/// What a command addresses; always exactly one session or pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The session of exactly this name, or the active pane of its current window.
    Name(SessionName),
    /// The session with this id, or the active pane of its current window.
    Session(TmuxSessionId),
    /// The session with this id, and the pane with that id; formats and guards see the session's active
    /// pane where it is nowhere.
    ///
    /// By its id alone a pane may be one of another session: a person who looks on by a session of
    /// their own (`new-session -t`) shares its windows.
    Pane(TmuxSessionId, PaneId),
}

/// The registered pane, in its session.
pub(super) fn pane_of(target: &TmuxTarget) -> Target {
    Target::Pane(target.session_id.clone(), target.pane.clone())
}

/// Where an option lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The server.
    Server,
    /// The session.
    Session,
    /// The session's current window.
    Window,
    /// The pane.
    Pane,
}

/// An option with its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// One of ours, to a text.
    Ours(OptionName, String),
    /// One of ours, to what the field shows in this moment.
    Shown(OptionName, Field),
    /// One of ours, to nothing.
    Unset(OptionName),
    /// One of tmux's own.
    Native(&'static str, &'static str),
}

/// The name of a paste buffer; one per attempt, so that attempts never see each other's text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BufferName {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Its attempt.
    pub attempt: u32,
}

/// The name of a session that was moved out of the way: `<name>+kept<n>`.
///
/// `+` is in no name that is minted for a work item, so a kept session is nobody's target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeptName {
    /// The name that it had.
    pub name: SessionName,
    /// Its number.
    pub number: u32,
}

impl std::fmt::Display for KeptName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+kept{}", self.name, self.number)
    }
}

/// One command of tmux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TmuxCommand {
    /// Makes a detached session and prints one [`Marker::Made`] line.
    NewSession {
        /// Its name.
        name: SessionName,
        /// Its size.
        columns: u16,
        /// Its size.
        rows: u16,
        /// What is printed of it.
        print: Vec<Field>,
        /// The program and its arguments, at least two words: one alone would go to a shell.
        program: Vec<OsString>,
    },
    /// Sets an option.
    SetOption {
        /// Whose.
        target: Target,
        /// Where.
        scope: Scope,
        /// Which, and to what.
        setting: Setting,
    },
    /// Reads the invocation's input into a buffer; an input of no bytes makes none.
    LoadBuffer(BufferName),
    /// Pastes and deletes a buffer: bracketed where the program asked for it, newlines as they are.
    PasteBuffer {
        /// Which.
        buffer: BufferName,
        /// Where.
        pane: PaneId,
    },
    /// Deletes a buffer.
    DeleteBuffer(BufferName),
    /// Does one or the other, decided by a guard on the target.
    IfShell {
        /// What the guard looks at; an absent one has empty fields.
        target: Target,
        /// The condition.
        guard: Guard,
        /// When it holds.
        then: Vec<Self>,
        /// When it does not.
        otherwise: Vec<Self>,
    },
    /// Does something later, whatever becomes of the client.
    RunShellDelayed {
        /// How much later.
        delay: Duration,
        /// What; their guards are evaluated then, not now.
        commands: Vec<Self>,
    },
    /// Presses Enter, whoever looks on; a pane that is dead, absent or in a mode drops it.
    SendEnter(PaneId),
    /// Ends every tmux mode of the pane.
    LeaveModes(PaneId),
    /// Prints one line.
    DisplayMessage {
        /// What the fields are of; an absent one has empty fields.
        target: Option<Target>,
        /// The first word.
        marker: Marker,
        /// The other words.
        fields: Vec<Field>,
    },
    /// Prints one [`Marker::Pane`] line for each pane of the server; an error without sessions.
    ListPanes(Vec<Field>),
    /// Prints one [`Marker::Client`] line for each client of a session.
    ListClients {
        /// Whose.
        session: Target,
        /// What.
        fields: Vec<Field>,
    },
    /// Ends a session and what runs in it.
    KillSession(TmuxSessionId),
    /// Gives a session another name.
    RenameSession {
        /// Which.
        session: TmuxSessionId,
        /// Its new name.
        to: KeptName,
    },
    /// Prints the pane's screen and history.
    CapturePane(Target),
    /// Prints how the server sizes windows that say nothing of their own: `latest`, `manual`, …
    ShowWindowSize,
}

impl TmuxCommand {
    /// Tells whether the command changes nothing.
    #[must_use]
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Self::DisplayMessage { .. }
                | Self::ListPanes(_)
                | Self::ListClients { .. }
                | Self::CapturePane(_)
                | Self::ShowWindowSize
        )
    }
}
