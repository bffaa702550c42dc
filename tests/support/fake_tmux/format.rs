//! Fields and guards, as the server sees them in one moment.

use chrono::{DateTime, Utc};
use the_loop::runner::{Field, Guard, OptionName};

use super::server::{Found, Pane, Server, Session};

/// What formats are about: a session with its pane, or something that is not there.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) server: &'a Server,
    pub(crate) found: Option<Found>,
    pub(crate) now: DateTime<Utc>,
}

impl Subject<'_> {
    fn session(&self) -> Option<&Session> {
        Some(&self.server.sessions[self.found?.session])
    }

    fn pane(&self) -> Option<&Pane> {
        Some(self.server.pane(self.found?))
    }

    /// Options of a pane are its own, then its session's.
    fn option(&self, name: OptionName) -> String {
        let name = name.render();
        let own = self.pane().and_then(|pane| pane.options.get(&name));
        let session = || self.session().and_then(|s| s.options.get(&name));
        let found = own
            .or_else(session)
            .or_else(|| self.server.options.get(&name));
        found.cloned().unwrap_or_default()
    }

    fn pid(&self) -> String {
        self.pane()
            .map(|pane| pane.program.pid.to_string())
            .unwrap_or_default()
    }

    /// What of a pane is shown; nothing of one that is not there.
    fn of_pane(&self, show: impl Fn(&Pane) -> String) -> String {
        self.pane().map(show).unwrap_or_default()
    }

    fn of_session(&self, show: impl Fn(&Session) -> String) -> String {
        self.session().map(show).unwrap_or_default()
    }

    pub(crate) fn show(&self, field: Field) -> String {
        match field {
            Field::ServerPid => self.server.pid.to_string(),
            Field::AnySession => "s".repeat(self.server.sessions.len()),
            Field::ServerVersion => "3.3a".to_owned(),
            Field::SocketPath => self.server.path.display().to_string(),
            Field::SessionId => self.of_session(|session| session.id.to_string()),
            Field::SessionName => self.of_session(|session| session.name.clone()),
            Field::SessionAttached => self.of_session(|s| s.clients.len().to_string()),
            Field::PaneId => self.of_pane(|pane| pane.id.to_string()),
            Field::PanePid => self.pid(),
            Field::PaneDead => self.of_pane(|pane| flag(pane.dead)),
            Field::PaneInMode => self.of_pane(|pane| pane.modes.to_string()),
            Field::PaneInputOff => self.of_pane(|pane| flag(pane.input_off)),
            Field::PaneInFront => flag(self.pane().is_some_and(|pane| pane.in_front)),
            Field::Foreground => self.of_pane(|pane| word(&pane.program.name)),
            Field::Hosted => {
                let host = self.option(OptionName::Host);
                flag(!host.is_empty() && host == self.pid())
            }
            Field::HarnessEnded => flag(self.ended()),
            Field::ClientReadOnly => unreachable!("a field of clients"),
            Field::Option(name) => word(&self.option(name)),
        }
    }

    fn ended(&self) -> bool {
        self.option(OptionName::Exit)
            .starts_with(&format!("{} ", self.pid()))
    }

    pub(crate) fn holds(&self, guard: &Guard) -> bool {
        match guard {
            Guard::All(all) => all.iter().all(|guard| self.holds(guard)),
            Guard::Is(field, value) => self.show(*field) == *value,
            Guard::Unset(option) => self.option(*option).is_empty(),
            Guard::Before(second) => {
                self.option(OptionName::Epoch) == "%s" && self.now.timestamp() < *second
            }
            Guard::EveryPaneEnded => self.panes().all(|pane| pane.over()),
            Guard::EveryHostEnded => self
                .panes()
                .all(|pane| pane.over() || pane.show(Field::Hosted) != "1"),
        }
    }

    fn over(&self) -> bool {
        self.pane().is_some_and(|pane| pane.dead) || self.ended()
    }

    fn panes(&self) -> impl Iterator<Item = Self> {
        let session = self.found.map(|found| found.session);
        let count = self.session().map_or(0, |session| session.panes.len());
        (0..count).filter_map(move |pane| {
            Some(Self {
                found: Some(Found {
                    session: session?,
                    home: session?,
                    pane,
                }),
                ..*self
            })
        })
    }
}

fn flag(is: bool) -> String {
    u8::from(is).to_string()
}

/// The text with everything but harmless characters replaced.
fn word(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let safe = |c| if harmless(c) { c } else { '_' };
    text.chars().map(safe).collect()
}
