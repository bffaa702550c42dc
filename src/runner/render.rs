//! Commands as the arguments that tmux reads.
//!
//! Two layers of quoting meet here: an argument that ends in `;` would end its command, and a command
//! inside another one is a text that tmux parses again.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::model::{PaneId, SessionName, TmuxSessionId};

use super::command::{BufferName, Scope, Setting, Target, TmuxCommand};
use super::field::{Field, Marker};
use super::guard::Guard;

/// tmux takes a little more (16,364 bytes, measured on 3.3a and 3.7c) and refuses the rest.
const MAX_BYTES: usize = 15_000;

/// A command sequence that tmux would refuse for its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a tmux command of {bytes} bytes is too long: at most {MAX_BYTES} are sent")]
pub struct TooLong {
    /// How long it is.
    pub bytes: usize,
}

/// Renders a sequence of commands to arguments, ready for tmux's command line.
///
/// # Errors
/// When tmux would refuse the sequence for its length.
pub fn arguments(commands: &[TmuxCommand]) -> Result<Vec<OsString>, TooLong> {
    let mut all: Vec<OsString> = Vec::new();
    for command in commands {
        if !all.is_empty() {
            all.push(";".into());
        }
        all.extend(words(command).into_iter().map(|word| whole(&word)));
    }
    let bytes = all.iter().map(|word| word.len() + 1).sum();
    if bytes > MAX_BYTES {
        return Err(TooLong { bytes });
    }
    Ok(all)
}

/// Keeps an argument that ends in `;` from ending its command.
fn whole(word: &OsStr) -> OsString {
    match word.as_bytes().strip_suffix(b";") {
        Some(start) => OsString::from_vec([start, b"\\;"].concat()),
        None => word.to_owned(),
    }
}

/// Renders commands as one text that tmux parses again.
fn script(commands: &[TmuxCommand]) -> String {
    commands
        .iter()
        .map(|command| {
            let quoted: Vec<String> = words(command).iter().map(|word| quote(word)).collect();
            quoted.join(" ")
        })
        .collect::<Vec<_>>()
        .join(" ; ")
}

/// Single quotes keep everything (`$`, `#`, `;`, `{`) from the parser; only a quote needs leaving
/// them for a moment.
fn quote(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

impl Target {
    /// Returns the target for tmux: without the colon a name would also match longer ones.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            Self::Name(name) => exact(name),
            Self::Session(id) => by_id(id),
            Self::Pane(session, pane) => format!("{}.{pane}", by_id(session)),
        }
    }
}

fn exact(name: &SessionName) -> String {
    format!("={name}:")
}

fn by_id(id: &TmuxSessionId) -> String {
    format!("{id}:")
}

impl BufferName {
    /// Returns the name for tmux.
    #[must_use]
    pub fn render(&self) -> String {
        format!("loop-{}-{}", self.delivery, self.attempt)
    }
}

fn words(command: &TmuxCommand) -> Vec<OsString> {
    match command {
        TmuxCommand::NewSession {
            name,
            columns,
            rows,
            print,
            program,
        } => new_session(name, (*columns, *rows), print, program),
        TmuxCommand::SetOption {
            target,
            scope,
            setting,
        } => set_option(target, *scope, setting),
        TmuxCommand::LoadBuffer(buffer) => plain(["load-buffer", "-b", &buffer.render(), "-"]),
        TmuxCommand::PasteBuffer { buffer, pane } => plain([
            "paste-buffer",
            "-p",
            "-r",
            "-d",
            "-b",
            &buffer.render(),
            "-t",
            &pane.to_string(),
        ]),
        TmuxCommand::DeleteBuffer(buffer) => plain(["delete-buffer", "-b", &buffer.render()]),
        TmuxCommand::IfShell {
            target,
            guard,
            then,
            otherwise,
        } => {
            let mut all = plain(["if-shell", "-F", "-t", &target.render(), &guard.render()]);
            all.push(script(then).into());
            if !otherwise.is_empty() {
                all.push(script(otherwise).into());
            }
            all
        }
        TmuxCommand::RunShellDelayed { delay, commands } => plain([
            "run-shell",
            "-b",
            "-d",
            &format!("{:.3}", delay.as_secs_f64()),
            "-C",
            // tmux expands formats here when it is told, not when it acts: doubled, they stay
            // formats until then.
            &script(commands).replace('#', "##"),
        ]),
        TmuxCommand::SendEnter(pane) => enter(pane),
        TmuxCommand::LeaveModes(pane) => plain(["copy-mode", "-q", "-t", &pane.to_string()]),
        TmuxCommand::DisplayMessage {
            target,
            marker,
            fields,
        } => display_message(target.as_ref(), *marker, fields),
        TmuxCommand::ListPanes(fields) => {
            plain(["list-panes", "-a", "-F", &Marker::Pane.line(fields)])
        }
        TmuxCommand::ListClients { session, fields } => plain([
            "list-clients",
            "-t",
            &session.render(),
            "-F",
            &Marker::Client.line(fields),
        ]),
        TmuxCommand::KillSession(session) => plain(["kill-session", "-t", &by_id(session)]),
        TmuxCommand::RenameSession { session, to } => {
            plain(["rename-session", "-t", &by_id(session), &to.to_string()])
        }
        TmuxCommand::ShowWindowSize => plain(["show-options", "-gwv", "window-size"]),
        TmuxCommand::CapturePane(target) => plain([
            "capture-pane",
            "-p",
            "-J",
            "-S",
            "-",
            "-t",
            &target.render(),
        ]),
    }
}

/// Enter as a pasted CR, which a program reads as it reads the key.
///
/// From tmux 3.8 on, `send-keys` fails while a read-only client is the newest of the server. A paste
/// ignores modes, and into a dead pane it ends tmux 3.3a: there it is dropped, as the key would be.
fn enter(pane: &PaneId) -> Vec<OsString> {
    let zero = |field| Guard::Is(field, "0".to_owned());
    let takes_keys = Guard::All(vec![
        Guard::pane(pane),
        zero(Field::PaneDead),
        zero(Field::PaneInMode),
    ]);
    // Of the pane, so that no other Enter uses it up.
    let buffer = format!("loop-enter-{pane}");
    let keys =
        format!("set-buffer -b '{buffer}' '\r' ; paste-buffer -r -d -b '{buffer}' -t '{pane}'");
    plain([
        "if-shell",
        "-F",
        "-t",
        &pane.to_string(),
        &takes_keys.render(),
        &keys,
    ])
}

fn plain<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}

fn new_session(
    name: &SessionName,
    (columns, rows): (u16, u16),
    print: &[Field],
    program: &[OsString],
) -> Vec<OsString> {
    let mut all = plain(["new-session", "-d", "-s", name.as_str()]);
    all.extend(plain(["-x", &columns.to_string(), "-y", &rows.to_string()]));
    all.extend(plain(["-P", "-F", &Marker::Made.line(print), "--"]));
    all.extend(program.iter().cloned());
    all
}

fn set_option(target: &Target, scope: Scope, setting: &Setting) -> Vec<OsString> {
    let mut all = plain(["set-option"]);
    match scope {
        Scope::Server => all.push("-s".into()),
        Scope::Session => {}
        Scope::Window => all.push("-w".into()),
        Scope::Pane => all.push("-p".into()),
    }
    if scope != Scope::Server {
        all.extend(plain(["-t", &target.render()]));
    }
    match setting {
        Setting::Ours(name, value) => all.extend(plain([&name.render(), value])),
        Setting::Shown(name, field) => {
            all.extend(plain(["-F", &name.render(), &field.render()]));
        }
        Setting::Unset(name) => all.extend(plain(["-u", &name.render()])),
        Setting::Native(name, value) => all.extend(plain([name, value])),
    }
    all
}

fn display_message(target: Option<&Target>, marker: Marker, fields: &[Field]) -> Vec<OsString> {
    let mut all = plain(["display-message", "-p"]);
    if let Some(target) = target {
        all.extend(plain(["-t", &target.render()]));
    }
    all.push(marker.line(fields).into());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DeliveryId, WorkItemRef};
    use crate::runner::field::OptionName;

    fn name() -> SessionName {
        let item: WorkItemRef = "github:o/r#1".parse().unwrap();
        item.session_name().unwrap()
    }

    fn pane() -> PaneId {
        "%5".parse().unwrap()
    }

    fn texts(commands: &[TmuxCommand]) -> Vec<String> {
        arguments(commands)
            .unwrap()
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_name_is_matched_exactly_and_a_pane_in_its_session() {
        assert_eq!(Target::Name(name()).render(), "=loop-github-o--r-1:");
        let pane = Target::Pane("$3".parse().unwrap(), pane());
        assert_eq!(pane.render(), "$3:.%5");
    }

    #[test]
    fn an_argument_that_ends_in_a_semicolon_does_not_end_its_command() {
        let session = TmuxCommand::NewSession {
            name: name(),
            columns: 200,
            rows: 50,
            print: vec![Field::SessionId],
            program: vec!["/bin/a;".into(), ";".into(), r"x\;".into(), "a;b".into()],
        };

        let rendered = texts(&[session.clone(), session]);

        assert_eq!(rendered.iter().filter(|word| *word == ";").count(), 1);
        assert_eq!(&rendered[12..16], [r"/bin/a\;", r"\;", r"x\\;", "a;b"]);
    }

    #[test]
    fn what_acts_later_is_guarded_later() {
        let delayed = TmuxCommand::RunShellDelayed {
            delay: Duration::from_millis(300),
            commands: vec![TmuxCommand::IfShell {
                target: Target::Pane("$3".parse().unwrap(), pane()),
                guard: Guard::Is(Field::Option(OptionName::Enter), "7".to_owned()),
                then: vec![TmuxCommand::SendEnter(pane())],
                otherwise: Vec::new(),
            }],
        };

        let rendered = texts(&[delayed]);

        assert_eq!(&rendered[..5], ["run-shell", "-b", "-d", "0.300", "-C"]);
        assert!(rendered[5].contains("##{==:##{"), "{}", rendered[5]);
        let now = rendered[5].replace("##", "");
        assert!(!now.contains('#'), "{}", rendered[5]);
    }

    #[test]
    fn a_sequence_that_tmux_would_refuse_is_not_sent() {
        let long = TmuxCommand::NewSession {
            name: name(),
            columns: 200,
            rows: 50,
            print: Vec::new(),
            program: vec!["/bin/a".into(), "x".repeat(MAX_BYTES).into()],
        };

        assert!(arguments(&[long]).is_err());
        let of = |length: usize| TmuxCommand::SetOption {
            target: Target::Name(name()),
            scope: Scope::Session,
            setting: Setting::Ours(OptionName::WorkItem, "x".repeat(length)),
        };
        let other: usize = texts(&[of(0)]).iter().map(|word| word.len() + 1).sum();
        assert!(arguments(&[of(MAX_BYTES - other)]).is_ok());
        let bytes = MAX_BYTES + 1;
        assert_eq!(arguments(&[of(bytes - other)]), Err(TooLong { bytes }));
        let buffer = BufferName {
            delivery: DeliveryId(7),
            attempt: 2,
        };
        assert_eq!(buffer.render(), "loop-7-2");
    }

    use std::time::Duration;
}
