//! `the-loop demo --keep`: the story is told by a process in the background, which stays.
//!
//! It plays GitHub for the daemon that is left running, so it must outlive the command. The command
//! passes on what it says until the story is over.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use super::demo::{Narrator, exit_of};
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::demo::story::{self, Afterwards, Interrupts, Left, Told};
use crate::process::detach::{Detached, close_report, leave_terminal, own_program, spawn_detached};
use crate::process::find_program;
use crate::process::identity::identify;
use crate::process::signal::{Signal, signal};

/// Ends the report; the exit code follows as a digit.
const END: u8 = 0x04;

/// Starts the background process and passes on what it says.
pub(super) fn watch(room: usize) -> Result<Exit, Failure> {
    let args = ["demo", "--keep", "--backstage", &room.to_string()].map(str::to_owned);
    let Detached { pid, report } = spawn_detached(&args, Path::new("/dev/null"))
        .map_err(|error| Failure::of(format!("cannot start the demo: {error}")))?;
    let teller = identify(pid);
    setup::block_on(async {
        let mut interrupts = Interrupts::listen()
            .map_err(|error| Failure::of(format!("cannot listen to signals: {error}")))?;
        let mut told = tokio::task::spawn_blocking(move || relay(report));
        let code = loop {
            tokio::select! {
                code = &mut told => break code.ok().flatten(),
                () = interrupts.next() => {
                    if let Some(teller) = teller {
                        // It ends everything, and with it the report.
                        let _ended = signal(&teller, Signal::Terminate);
                    }
                }
            }
        };
        Ok(match code {
            Some(0) => Exit::Success,
            Some(_) | None => Exit::Failure,
        })
    })
}

/// Copies the report to stdout as it comes; returns the code at its end.
fn relay(mut report: impl Read) -> Option<u8> {
    let mut out = std::io::stdout();
    let mut chunk = [0; 4096];
    let mut ended = false;
    loop {
        let size = match report.read(&mut chunk) {
            Ok(0) => return None,
            Ok(size) => size,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        let read = chunk.get(..size).unwrap_or_default();
        let end = read.iter().position(|byte| *byte == END);
        let text = read.get(..end.unwrap_or(size)).unwrap_or_default();
        if !ended {
            // A reader that went away (`| head`) must not end the story.
            let _gone = out.write_all(text).and_then(|()| out.flush());
        }
        let code = match end {
            Some(at) => read.get(at + 1),
            None if ended => read.first(),
            None => None,
        };
        if let Some(code) = code {
            return Some(code.wrapping_sub(b'0'));
        }
        ended |= end.is_some();
    }
}

/// Tells the story in the background, stays until it is told to end, and removes everything.
pub(super) fn play(narrator: Narrator) -> Result<Exit, Failure> {
    leave_terminal().map_err(|error| Failure::of(format!("cannot leave the terminal: {error}")))?;
    setup::block_on(async {
        let mut interrupts = Interrupts::listen()
            .map_err(|error| Failure::of(format!("cannot listen to signals: {error}")))?;
        narrator.opening();
        let show = |told: &Told<'_>| narrator.show(told);
        let told = Box::pin(story::tell(Afterwards::Keep, &mut interrupts, show)).await;
        let ending = match told {
            Ok(ending) => ending,
            Err(error) => {
                output::line(format!("error: {error}"));
                report_end(Exit::Failure);
                return Ok(Exit::Failure);
            }
        };
        narrator.closing(&ending, Some("everything keeps running"));
        if let Some(left) = &ending.left {
            say_how_to_look_around(left);
        }
        let exit = exit_of(&ending);
        report_end(exit);
        if let Some(left) = ending.left {
            stay(&left, &mut interrupts).await;
            left.strike().await;
        }
        Ok(exit)
    })
}

fn report_end(exit: Exit) {
    let code = match exit {
        Exit::Success => b'0',
        Exit::Failure => b'1',
        Exit::Usage => b'2',
    };
    let mut out = std::io::stdout();
    // Who would read it may be gone; the story is over all the same.
    let _gone = out.write_all(&[END, code]).and_then(|()| out.flush());
    if let Err(error) = close_report() {
        tracing::warn!("cannot close the report: {error}");
    }
}

fn say_how_to_look_around(left: &Left) {
    let around = left.look_around();
    let program = program();
    let config = around.config.display();
    // Without it a start would go to another tmux server of the same name.
    let tmux = around.tmux_folder.display();
    let commands = [
        ("attach", format!("sessions attach {}", around.work_item)),
        ("status", "status".to_owned()),
        ("events", "events --follow".to_owned()),
    ];
    output::line("");
    for (name, command) in commands {
        output::line(format!(
            "{name}:  TMUX_TMPDIR={tmux} {program} --config {config} {command}"
        ));
    }
    output::line(format!(
        "stop:    kill {}  (ends daemon, agent and tmux, removes {})",
        std::process::id(),
        around.folder.display()
    ));
}

/// This program as the person's shell finds it.
fn program() -> String {
    let Ok(own) = own_program() else {
        return "the-loop".to_owned();
    };
    let found = find_program("the-loop", std::env::var_os("PATH").as_deref());
    match found.and_then(|path| path.canonicalize().ok()) {
        Some(path) if path == own => "the-loop".to_owned(),
        _ => own.display().to_string(),
    }
}

/// Waits until somebody ends it, or has removed the folder by hand.
async fn stay(left: &Left, interrupts: &mut Interrupts) {
    let config = left.look_around().config;
    while config.exists() {
        tokio::select! {
            () = interrupts.next() => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_follows_the_end_of_the_report_and_a_torn_report_has_none() {
        assert_eq!(relay(&b"text\n\x040"[..]), Some(0));
        assert_eq!(relay(b"text\n\x04".chain(&b"1"[..])), Some(1));
        assert_eq!(relay(&b"text"[..]), None);
    }
}
