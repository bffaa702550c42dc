//! The agent's life: start, wait for input or signals, end.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Error;
use super::conversation::Conversation;
use super::journal::{Counters, Entry, Journal};
use super::keys::{Key, Keys};
use super::options::{ExitAfter, Options};
use super::screen::{Line, View, draw};
use super::signals::Signals;
use super::terminal::Terminal;

/// Runs the agent and returns its exit code.
pub(super) fn run(options: &Options) -> Result<u8, Error> {
    if !Terminal::present() {
        return Err(Error::NoTerminal);
    }
    let (conversation, said) = match &options.resume {
        Some(id) => Conversation::resume(options.conversations.as_deref(), id)?,
        None => {
            let folder = options.conversations.as_deref();
            (Conversation::start(folder, options.session())?, Vec::new())
        }
    };
    let journal =
        Journal::open(options.log.as_deref()).map_err(|source| log_error(options, source))?;
    let signals = Signals::listen().map_err(Error::Terminal)?;
    let mut agent = Agent {
        options,
        conversation,
        journal,
        signals,
        keys: Keys::default(),
        transcript: said.into_iter().map(Line::Message).collect(),
        composer: Composer::default(),
        counters: Counters::default(),
        messages: 0,
        asking: options.dialog,
        busy_until: None,
        ends_at: None,
    };
    let end = agent.live()?;
    agent.record(Entry::End {
        reason: end.reason.to_owned(),
        code: end.code,
        counters: agent.counters,
    })?;
    Ok(end.code)
}

fn log_error(options: &Options, source: io::Error) -> Error {
    Error::Log {
        path: options.log.clone().unwrap_or_default(),
        source,
    }
}

/// How the agent ends.
#[derive(Debug, Clone, Copy)]
struct End {
    reason: &'static str,
    code: u8,
}

/// What the next message will be.
#[derive(Debug, Default)]
struct Composer {
    text: String,
    typed: bool,
}

struct Agent<'a> {
    options: &'a Options,
    conversation: Conversation,
    journal: Journal,
    signals: Signals,
    keys: Keys,
    transcript: Vec<Line>,
    composer: Composer,
    counters: Counters,
    messages: usize,
    asking: bool,
    busy_until: Option<Instant>,
    ends_at: Option<Instant>,
}

impl Agent<'_> {
    fn live(&mut self) -> Result<End, Error> {
        self.record(Entry::Start {
            session: self.options.session().map(str::to_owned),
            resumed: self.options.resume.is_some(),
            prompt: self.options.prompt.clone(),
            cwd: std::env::current_dir()
                .map(|cwd| cwd.display().to_string())
                .unwrap_or_default(),
            env: std::env::vars_os()
                .map(|(name, value)| {
                    let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
                    (text(name), text(value))
                })
                .collect(),
        })?;
        if let Some(end) = self.boot()? {
            return Ok(end);
        }
        let terminal = Terminal::open().map_err(Error::Terminal)?;
        self.record(Entry::Ready {})?;
        if let Some(ExitAfter::Time(time)) = self.options.exit_after {
            self.ends_at = Some(Instant::now() + time);
        }
        if let Some(prompt) = &self.options.prompt
            && let Some(end) = self.hear(&prompt.clone())?
        {
            return Ok(end);
        }
        self.attend(&terminal)
    }

    /// Is deaf for the scripted time; only signals are noticed.
    fn boot(&mut self) -> Result<Option<End>, Error> {
        let ready = Instant::now() + self.options.boot_delay;
        while Instant::now() < ready {
            let mut waiting = [PollFd::new(&self.signals, PollFlags::IN)];
            wait(&mut waiting, Some(ready))?;
            if waiting[0].revents().is_empty() {
                continue;
            }
            if let Some(end) = self.signalled()? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Waits for input, signals and the script's times, until one of them ends it.
    fn attend(&mut self, terminal: &Terminal) -> Result<End, Error> {
        let mut hung_up = false;
        loop {
            if !hung_up {
                // A terminal that is gone is noticed by reading it.
                drop(terminal.write(&draw(&self.view(), terminal.size())));
            }
            let until = [self.busy_until, self.ends_at].into_iter().flatten().min();
            let mut waiting = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(terminal, PollFlags::IN),
            ];
            let watched = if hung_up { 1 } else { 2 };
            wait(&mut waiting[..watched], until)?;
            let [signal, input] = waiting.map(|fd| !fd.revents().is_empty());

            if signal && let Some(end) = self.signalled()? {
                return Ok(end);
            }
            if input && !hung_up {
                let mut buffer = [0; 4096];
                let count = terminal.read(&mut buffer).map_err(Error::Terminal)?;
                if count == 0 && !self.options.ignore_hup {
                    return Ok(hangup());
                }
                hung_up = count == 0;
                if let Some(end) = self.heard(&buffer[..count])? {
                    return Ok(end);
                }
            }
            if let Some(end) = self.timed() {
                return Ok(end);
            }
        }
    }

    fn view(&self) -> View<'_> {
        let status = if self.asking {
            "Do you trust the files in this folder?  Enter: yes   Ctrl-C: no"
        } else if self.busy_until.is_some() {
            "working…"
        } else {
            "ready · Enter sends · /exit ends"
        };
        View {
            title: if self.options.resume.is_some() {
                "demo agent · conversation resumed"
            } else {
                "demo agent"
            },
            transcript: &self.transcript,
            composer: &self.composer.text,
            status,
        }
    }

    fn timed(&mut self) -> Option<End> {
        let now = Instant::now();
        if self.busy_until.is_some_and(|until| until <= now) {
            self.busy_until = None;
        }
        self.ends_at
            .is_some_and(|at| at <= now)
            .then(|| self.scripted_end())
    }

    fn scripted_end(&self) -> End {
        End {
            reason: "script",
            code: self.options.exit_code,
        }
    }

    fn signalled(&mut self) -> Result<Option<End>, Error> {
        for signal in self.signals.take().map_err(Error::Terminal)? {
            match signal {
                Signal::SIGWINCH => self.counters.resizes += 1,
                Signal::SIGHUP if !self.options.ignore_hup => return Ok(Some(hangup())),
                Signal::SIGTERM | Signal::SIGINT if !self.options.ignore_term => {
                    return Ok(Some(End {
                        reason: "signal",
                        code: 128 + u8::try_from(signal as i32).unwrap_or(0),
                    }));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn heard(&mut self, bytes: &[u8]) -> Result<Option<End>, Error> {
        self.counters.bytes += bytes.len() as u64;
        for key in self.keys.feed(bytes) {
            let end = if self.asking {
                self.answer(&key)?
            } else {
                self.edit(key)?
            };
            if end.is_some() {
                return Ok(end);
            }
        }
        Ok(None)
    }

    /// A question on the screen takes every key; a paste is lost on it.
    fn answer(&mut self, key: &Key) -> Result<Option<End>, Error> {
        match key {
            Key::Paste(_) => {
                self.counters.pastes += 1;
                self.counters.swallowed += 1;
            }
            Key::Enter => {
                self.counters.enters += 1;
                self.asking = false;
                self.record(Entry::Answered {
                    counters: self.counters,
                })?;
            }
            Key::Interrupt | Key::EndOfInput => return Ok(Some(asked())),
            Key::Text(_) | Key::Backspace | Key::ClearLine | Key::Other => {}
        }
        Ok(None)
    }

    fn edit(&mut self, key: Key) -> Result<Option<End>, Error> {
        match key {
            Key::Text(text) => {
                self.composer.text.push_str(&text);
                self.composer.typed = true;
            }
            Key::Paste(text) => {
                self.counters.pastes += 1;
                self.composer.text.push_str(&text);
            }
            Key::Backspace => drop(self.composer.text.pop()),
            Key::ClearLine => self.composer = Composer::default(),
            Key::Enter => {
                self.counters.enters += 1;
                return self.submit();
            }
            Key::Interrupt | Key::EndOfInput => return Ok(Some(asked())),
            Key::Other => {}
        }
        Ok(None)
    }

    fn submit(&mut self) -> Result<Option<End>, Error> {
        let composed = std::mem::take(&mut self.composer);
        if composed.text.trim().is_empty() {
            return Ok(None);
        }
        if composed.text.trim() == "/exit" {
            return Ok(Some(asked()));
        }
        self.record(Entry::Message {
            text: composed.text.clone(),
            bracketed: !composed.typed,
            counters: self.counters,
        })?;
        self.hear(&composed.text)
    }

    /// Takes a message into the conversation.
    fn hear(&mut self, message: &str) -> Result<Option<End>, Error> {
        self.conversation.say(message)?;
        self.messages += 1;
        let length = message.chars().count();
        self.transcript.push(Line::Message(message.to_owned()));
        self.transcript
            .push(Line::Answer(format!("read {length} characters")));
        if self.options.busy > Duration::ZERO {
            self.busy_until = Some(Instant::now() + self.options.busy);
        }
        let spent = matches!(
            self.options.exit_after,
            Some(ExitAfter::Messages(most)) if self.messages >= most
        );
        Ok(spent.then(|| self.scripted_end()))
    }

    fn record(&mut self, entry: Entry) -> Result<(), Error> {
        self.journal
            .write(entry)
            .map_err(|source| log_error(self.options, source))
    }
}

fn asked() -> End {
    End {
        reason: "asked",
        code: 0,
    }
}

fn hangup() -> End {
    End {
        reason: "hangup",
        code: 129,
    }
}

/// Waits until one of the files is readable, or until a time.
fn wait(files: &mut [PollFd<'_>], until: Option<Instant>) -> Result<(), Error> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = left.map(|left| Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    });
    match poll(files, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Error::Terminal(error.into())),
    }
}
