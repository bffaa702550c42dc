//! What tmux is asked to print, and the options that we keep in it.
//!
//! Every field prints one word without `|`, so a line of fields can be split again whatever a
//! person typed into an option or a title. Only the session's name may hold anything; it comes last.

use crate::model::DeliveryId;

/// What is left of a text of others: one harmless word.
const WORD: &str = "s/[^A-Za-z0-9._-]/_/:";

/// A user option that carries our state inside tmux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptionName {
    /// On the session: the spawn that made it, or that adopted it.
    Owner,
    /// On the session: the work item's ref, for people.
    WorkItem,
    /// On the session: `%s`; expanded as a time it is the server's clock.
    Epoch,
    /// On the session: the delivery whose Enter is still to be sent.
    Enter,
    /// On the session: the foreground program of a person's pane that this Enter is for.
    EnterProgram,
    /// On the session: the attempt that pasted this delivery; set means pasted.
    Token(DeliveryId),
    /// On the pane: the pid of our host, set when the pane was made.
    Host,
    /// On the pane: how the harness ended, `<host pid> <how>`; set by the host.
    Exit,
}

impl OptionName {
    /// Returns the name as tmux knows it.
    #[must_use]
    pub fn render(self) -> String {
        match self {
            Self::Owner => "@loop_owner".to_owned(),
            Self::WorkItem => "@loop_item".to_owned(),
            Self::Epoch => "@loop_epoch".to_owned(),
            Self::Enter => "@loop_enter".to_owned(),
            Self::EnterProgram => "@loop_enter_program".to_owned(),
            Self::Token(delivery) => format!("@loop_d_{delivery}"),
            Self::Host => "@loop_host".to_owned(),
            Self::Exit => "@loop_exit".to_owned(),
        }
    }
}

/// One value that tmux prints or compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The server's pid.
    ServerPid,
    /// `s` for each session; empty on a server that has none.
    AnySession,
    /// The server's version.
    ServerVersion,
    /// The path of the server's socket; comes last on a line.
    SocketPath,
    /// The session's id, `$3`.
    SessionId,
    /// The session's name; comes last on a line.
    SessionName,
    /// How many clients look at the session.
    SessionAttached,
    /// The pane's id, `%5`.
    PaneId,
    /// The pid of the pane's process. Of a dead pane the one that it had, where it is known: tmux 3.8
    /// has forgotten it, and only a host noted its own.
    PanePid,
    /// `1` when the pane's process has ended and tmux keeps the pane.
    PaneDead,
    /// How many tmux modes (copy mode, …) lie over the pane.
    PaneInMode,
    /// `1` when input of the pane is switched off.
    PaneInputOff,
    /// `1` for the active pane of the current window.
    PaneInFront,
    /// The name of the pane's foreground program, as one harmless word.
    Foreground,
    /// `1` when the pane runs the host that it was made with.
    Hosted,
    /// `1` when the host of this very pane recorded its harness's end; never true for a person's
    /// split, which may inherit the option but has another pid.
    HarnessEnded,
    /// `1` when the client cannot type.
    ClientReadOnly,
    /// The value of one of our options, as one harmless word.
    Option(OptionName),
}

impl Field {
    /// Returns the tmux format that prints the field.
    #[must_use]
    pub fn render(self) -> String {
        let plain = match self {
            Self::ServerPid => "#{pid}",
            Self::AnySession => "#{S:s}",
            Self::ServerVersion => "#{version}",
            Self::SocketPath => "#{socket_path}",
            Self::SessionId => "#{session_id}",
            Self::SessionName => "#{session_name}",
            Self::SessionAttached => "#{session_attached}",
            Self::PaneId => "#{pane_id}",
            Self::PanePid => "#{?pane_pid,#{pane_pid},#{@loop_host}}",
            Self::PaneDead => "#{pane_dead}",
            Self::PaneInMode => "#{pane_in_mode}",
            Self::PaneInputOff => "#{pane_input_off}",
            Self::PaneInFront => "#{&&:#{window_active},#{pane_active}}",
            Self::Foreground => return format!("#{{{WORD}pane_current_command}}"),
            // Nothing would equal nothing.
            Self::Hosted => {
                return format!(
                    "#{{&&:#{{@loop_host}},#{{==:#{{@loop_host}},{}}}}}",
                    Self::PanePid.render()
                );
            }
            Self::HarnessEnded => "#{m:#{pane_pid} *,#{@loop_exit}}",
            Self::ClientReadOnly => "#{client_readonly}",
            Self::Option(name) => return format!("#{{{WORD}{}}}", name.render()),
        };
        plain.to_owned()
    }
}

/// The first word of a line that we make tmux print; a line without one is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Marker {
    /// Who answers.
    Server,
    /// One pane.
    Pane,
    /// One client.
    Client,
    /// A session was made.
    Made,
    /// Its options are set.
    Ready,
    /// A guarded change was made.
    Done,
    /// A guard refused, and here is what it saw.
    Refused,
    /// An answer to a question.
    Is,
}

impl Marker {
    /// Returns the word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "loop-server",
            Self::Pane => "loop-pane",
            Self::Client => "loop-client",
            Self::Made => "loop-made",
            Self::Ready => "loop-ready",
            Self::Done => "loop-done",
            Self::Refused => "loop-refused",
            Self::Is => "loop-is",
        }
    }

    /// Returns the format of a line: the marker, then the fields.
    #[must_use]
    pub fn line(self, fields: &[Field]) -> String {
        let mut line = self.as_str().to_owned();
        for field in fields {
            line.push('|');
            line.push_str(&field.render());
        }
        line
    }
}
