//! `the-loop demo`: tells the story, scene by scene.

use super::args::DemoArgs;
use super::backstage;
use super::exit::{Exit, Failure};
use super::layout::{clip, pad, width, wrap};
use super::output::{self, Paint, colours, paint};
use super::setup;
use crate::demo::story::{self, Afterwards, Ending, Interrupts, Told};

/// How wide a story is told where no terminal limits it: every line whole.
const UNLIMITED: usize = 132;
/// The title's column, as wide as the longest title.
const TITLE: usize = 62;
/// What stands before a title: its number.
const MARGIN: usize = 4;
/// The least width for title and result on one line.
const WIDE: usize = 124;

pub(super) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let room = args.backstage.or_else(output::room).unwrap_or(UNLIMITED);
    match (args.keep, args.backstage) {
        (true, None) => backstage::watch(room),
        (true, Some(_)) => backstage::play(Narrator { room }),
        (false, _) => {
            let narrator = Narrator { room };
            narrator.opening();
            let ending = setup::block_on(async {
                let mut interrupts = Interrupts::listen()
                    .map_err(|error| Failure::of(format!("cannot listen to signals: {error}")))?;
                let show = |told: &Told<'_>| narrator.show(told);
                Ok(Box::pin(story::tell(Afterwards::CleanUp, &mut interrupts, show)).await?)
            })?;
            narrator.closing(&ending, Some("run with --keep to look around"));
            Ok(exit_of(&ending))
        }
    }
}

/// Returns how the command ends: with a failure where one scene was not seen.
pub(super) fn exit_of(ending: &Ending) -> Exit {
    if ending.is_as_promised() {
        Exit::Success
    } else {
        Exit::Failure
    }
}

/// Says the story on a terminal of some width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrator {
    room: usize,
}

impl Narrator {
    pub(super) fn opening(self) {
        let text = "the-loop demo: a real daemon, real tmux, a local GitHub, a scripted agent (nothing leaves this machine)";
        for line in wrap(text, self.room) {
            output::line(line);
        }
        output::line("");
    }

    pub(super) fn closing(self, ending: &Ending, hint: Option<&str>) {
        let took = ending.took.as_secs_f64();
        let mut text = format!(
            "{} of {} as promised in {took:.0} s",
            ending.kept, ending.scenes
        );
        if let Some(hint) = hint.filter(|_| ending.is_as_promised()) {
            text = format!("{text} · {hint}");
        }
        output::line("");
        for line in wrap(&text, self.room) {
            output::line(line);
        }
    }

    pub(super) fn show(self, told: &Told<'_>) {
        match *told {
            Told::Scene(number, title) => output::print(&self.scene(number, title)),
            Told::Seen(seen, took) => {
                let took = seconds(took.as_secs_f64());
                self.result(seen, &took, Paint::Good);
            }
            Told::Missed(missed) => self.result(&format!("NOT SEEN: {missed}"), "", Paint::Bad),
            Told::Screen(lines) => {
                for line in lines {
                    let line = clip(line, self.room.saturating_sub(MARGIN + 2));
                    output::line(paint(&format!("    │ {line}"), Paint::Dim));
                }
            }
            Told::Interrupted => {
                output::line("");
                output::line("interrupted: everything is being ended and removed");
            }
        }
    }

    /// The line that a scene begins with; its result follows on it, or on a narrow terminal below.
    fn scene(self, number: usize, title: &str) -> String {
        if self.room >= WIDE {
            return format!("{number:>2}  {}", pad(title, TITLE));
        }
        let lines = wrap(title, self.room.saturating_sub(MARGIN));
        format!("{number:>2}  {}", lines.join("\n    "))
    }

    fn result(self, text: &str, took: &str, colour: Paint) {
        let colour = if colours() { colour } else { Paint::Plain };
        let (before, left) = if self.room >= WIDE {
            ("", self.room.min(UNLIMITED) - MARGIN - TITLE)
        } else {
            ("\n    ", self.room.saturating_sub(MARGIN))
        };
        let reserved = if took.is_empty() { 0 } else { 8 };
        let mut lines = wrap(text, left.saturating_sub(2 + reserved)).into_iter();
        let first = lines.next().unwrap_or_default();
        let gap = left.saturating_sub(2 + width(&first) + width(took));
        let blanks = if took.is_empty() { 0 } else { gap };
        output::line(format!(
            "{before}{} {first}{}{took}",
            paint("→", colour),
            " ".repeat(blanks)
        ));
        let indent = if self.room >= WIDE {
            MARGIN + TITLE + 2
        } else {
            MARGIN + 2
        };
        for line in lines {
            output::line(format!("{}{line}", " ".repeat(indent)));
        }
    }
}

/// `6 ms`, `0.4 s`, `12 s`.
fn seconds(took: f64) -> String {
    if took < 0.1 {
        format!("{:.0} ms", took * 1000.0)
    } else if took < 10.0 {
        format!("{took:.1} s")
    } else {
        format!("{took:.0} s")
    }
}
