//! One command sequence, done by one server.

use std::time::Duration;

use chrono::{DateTime, Utc};
use the_loop::model::PaneId;
use the_loop::runner::{
    BufferName, Field, Marker, OptionName, Scope, Setting, Target, TmuxCommand,
};

use super::Programs;
use super::format::Subject;
use super::server::{Found, Server};

/// The rest of a sequence is skipped; tmux's words say why.
pub(crate) struct Failed;

/// A sequence under way.
pub(crate) struct Run<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) programs: &'a mut dyn Programs,
    pub(crate) now: DateTime<Utc>,
    /// What the client hands over; nothing of a client that was killed.
    pub(crate) input: Option<String>,
    pub(crate) output: String,
    pub(crate) words: String,
    pub(crate) later: Vec<(Duration, Vec<TmuxCommand>)>,
}

impl Run<'_> {
    pub(crate) fn all(&mut self, commands: &[TmuxCommand]) -> Result<(), Failed> {
        commands.iter().try_for_each(|command| self.one(command))
    }

    fn fail<T>(&mut self, words: impl Into<String>) -> Result<T, Failed> {
        self.words = words.into();
        Err(Failed)
    }

    fn subject(&self, found: Option<Found>) -> Subject<'_> {
        Subject {
            server: self.server,
            found,
            now: self.now,
        }
    }

    fn print(&mut self, marker: Marker, fields: &[Field], found: Option<Found>) {
        let mut line = marker.as_str().to_owned();
        for field in fields {
            line.push('|');
            line.push_str(&self.subject(found).show(*field));
        }
        self.output.push_str(&line);
        self.output.push('\n');
    }

    fn pane(&mut self, id: &PaneId) -> Result<Found, Failed> {
        match self.server.find_pane(id) {
            Some(found) => Ok(found),
            None => self.fail(format!("can't find pane: {id}")),
        }
    }

    fn session(&mut self, target: &Target) -> Result<Found, Failed> {
        match self.server.find(target) {
            Some(found) => Ok(found),
            None => {
                let shown = target.render();
                let name = shown.trim_start_matches('=').trim_end_matches(':');
                self.fail(format!("can't find session: {name}"))
            }
        }
    }

    fn one(&mut self, command: &TmuxCommand) -> Result<(), Failed> {
        match command {
            TmuxCommand::NewSession {
                name,
                print,
                program,
                ..
            } => {
                if self.server.sessions.iter().any(|s| s.name == name.as_str()) {
                    return self.fail(format!("duplicate session: {name}"));
                }
                let program = self.programs.start(program);
                let made = self.server.add_session(name.as_str(), program);
                self.print(Marker::Made, print, Some(made));
                Ok(())
            }
            TmuxCommand::SetOption {
                target,
                scope,
                setting,
            } => self.set_option(target, *scope, setting),
            TmuxCommand::LoadBuffer(name) => match self.input.take() {
                Some(text) if text.is_empty() => Ok(()),
                Some(text) => {
                    self.server.buffers.insert(name.render(), text);
                    Ok(())
                }
                // The client serves the text, so a dead one ends the sequence.
                None => Err(Failed),
            },
            TmuxCommand::PasteBuffer { buffer, pane } => self.paste(buffer, pane),
            TmuxCommand::DeleteBuffer(name) => match self.server.buffers.remove(&name.render()) {
                Some(_) => Ok(()),
                None => self.fail(format!("unknown buffer: {}", name.render())),
            },
            TmuxCommand::IfShell {
                target,
                guard,
                then,
                otherwise,
            } => {
                let found = self.server.find(target);
                if self.subject(found).holds(guard) {
                    self.all(then)
                } else {
                    self.all(otherwise)
                }
            }
            TmuxCommand::RunShellDelayed { delay, commands } => {
                self.later.push((*delay, commands.clone()));
                Ok(())
            }
            TmuxCommand::SendEnter(pane) => {
                let Some(found) = self.server.find_pane(pane) else {
                    return Ok(());
                };
                let pane = self.server.pane(found);
                if !pane.dead && !pane.input_off && pane.modes == 0 {
                    self.programs.typed(pane.program.pid, b"\r");
                }
                Ok(())
            }
            TmuxCommand::LeaveModes(pane) => {
                let found = self.pane(pane)?;
                self.server.found_mut(found).modes = 0;
                Ok(())
            }
            TmuxCommand::DisplayMessage {
                target,
                marker,
                fields,
            } => {
                let found = target.as_ref().and_then(|target| self.server.find(target));
                self.print(*marker, fields, found);
                Ok(())
            }
            TmuxCommand::ListPanes(fields) => self.list_panes(fields),
            TmuxCommand::ListClients { session, fields } => self.list_clients(session, fields),
            TmuxCommand::KillSession(id) => {
                let found = self.session(&Target::Session(id.clone()))?;
                let session = self.server.sessions.remove(found.session);
                for pane in session.panes.iter().filter(|pane| !pane.dead) {
                    self.programs.hung_up(pane.program.pid);
                }
                Ok(())
            }
            TmuxCommand::RenameSession { session, to } => {
                let found = self.session(&Target::Session(session.clone()))?;
                let to = to.to_string();
                if self.server.sessions.iter().any(|s| s.name == to) {
                    return self.fail(format!("duplicate session: {to}"));
                }
                self.server.sessions[found.session].name = to;
                Ok(())
            }
            TmuxCommand::ShowWindowSize => {
                self.output.push_str("latest\n");
                Ok(())
            }
            TmuxCommand::CapturePane(target) => {
                let found = self.session(target)?;
                let pane = self.server.pane(found);
                if let Target::Pane(_, wanted) = target
                    && pane.id != *wanted
                {
                    return self.fail(format!("can't find pane: {wanted}"));
                }
                self.output
                    .push_str(&self.programs.screen(pane.program.pid));
                Ok(())
            }
        }
    }

    fn set_option(
        &mut self,
        target: &Target,
        scope: Scope,
        setting: &Setting,
    ) -> Result<(), Failed> {
        let found = match (scope, self.server.find(target)) {
            (Scope::Server, found) => found,
            (_, Some(found)) => Some(found),
            (_, None) => return self.fail(format!("no such session: {}", target.render())),
        };
        let shown = match setting {
            Setting::Shown(_, field) => self.subject(found).show(*field),
            _ => String::new(),
        };
        let options = match (scope, found) {
            (Scope::Session, Some(found)) => &mut self.server.sessions[found.session].options,
            (Scope::Pane, Some(found)) => &mut self.server.found_mut(found).options,
            (Scope::Server, _) => &mut self.server.options,
            (Scope::Window, Some(found)) => {
                let Setting::Native(name, value) = setting else {
                    unreachable!("no option of ours is a window's")
                };
                let window = &mut self.server.sessions[found.session].window;
                window.insert(name, value);
                return Ok(());
            }
            (_, None) => unreachable!("found above"),
        };
        match setting {
            Setting::Ours(name, value) => {
                options.insert(name.render(), value.clone());
            }
            Setting::Shown(name, _) => {
                options.insert(name.render(), shown);
            }
            Setting::Unset(name) => {
                options.remove(&OptionName::render(*name));
            }
            Setting::Native(name, value) => {
                options.insert((*name).to_owned(), (*value).to_owned());
            }
        }
        Ok(())
    }

    fn paste(&mut self, name: &BufferName, pane: &PaneId) -> Result<(), Failed> {
        let found = self.pane(pane)?;
        let Some(text) = self.server.buffers.get(&name.render()).cloned() else {
            return self.fail(format!("no buffer {}", name.render()));
        };
        let pane = self.server.pane(found);
        if pane.dead {
            // tmux 3.3a crashes.
            self.server.alive = false;
            return Err(Failed);
        }
        if !pane.input_off {
            // A mode has no brackets, whatever the program below asked for.
            let typed = if pane.program.bracketed && pane.modes == 0 {
                format!("\u{1b}[200~{text}\u{1b}[201~")
            } else {
                text
            };
            self.programs.typed(pane.program.pid, typed.as_bytes());
        }
        self.server.buffers.remove(&name.render());
        Ok(())
    }

    fn list_panes(&mut self, fields: &[Field]) -> Result<(), Failed> {
        if self.server.sessions.is_empty() {
            return self.fail("no current target");
        }
        for session in 0..self.server.sessions.len() {
            for pane in 0..self.server.sessions[session].panes.len() {
                let found = Found {
                    session,
                    home: session,
                    pane,
                };
                self.print(Marker::Pane, fields, Some(found));
            }
        }
        Ok(())
    }

    fn list_clients(&mut self, session: &Target, fields: &[Field]) -> Result<(), Failed> {
        let found = self.session(session)?;
        for client in self.server.sessions[found.session].clients.clone() {
            let mut line = Marker::Client.as_str().to_owned();
            for field in fields {
                line.push('|');
                let shown = match field {
                    Field::ClientReadOnly => u8::from(client.read_only).to_string(),
                    field => self.subject(Some(found)).show(*field),
                };
                line.push_str(&shown);
            }
            self.output.push_str(&line);
            self.output.push('\n');
        }
        Ok(())
    }
}
