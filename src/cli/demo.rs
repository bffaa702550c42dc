//! `the-loop demo`: tells the story, scene by scene.

use super::args::DemoArgs;
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::demo::story::{self, Afterwards, Told};

pub(super) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    output::line(
        "the-loop demo: a real daemon, real tmux, a local GitHub, a scripted agent (nothing leaves this machine)",
    );
    output::line("");
    let afterwards = if args.keep {
        Afterwards::Keep
    } else {
        Afterwards::CleanUp
    };
    let ending = setup::block_on(async { Ok(story::tell(afterwards, show).await?) })?;
    let promised = if ending.kept == ending.scenes {
        "as promised"
    } else {
        "as promised; the rest was not seen"
    };
    output::line(format!(
        "{} of {} {promised}, in {:.0} s",
        ending.kept,
        ending.scenes,
        ending.took.as_secs_f64()
    ));
    for line in ending.look_around.iter().flatten() {
        output::line(line);
    }
    if ending.look_around.is_none() && ending.kept == ending.scenes {
        output::line("run with --keep to look around");
    }
    Ok(if ending.kept == ending.scenes {
        Exit::Success
    } else {
        Exit::Failure
    })
}

fn show(told: &Told<'_>) {
    match *told {
        Told::Scene(number, title) => output::print(&format!(" {number}  {title:<68}")),
        Told::Seen(seen, took) => output::line(format!("→ {seen}  {:.1} s", took.as_secs_f64())),
        Told::Missed(missed) => output::line(format!("→ NOT SEEN: {missed}")),
        Told::Screen(lines) => {
            output::line(
                "    ┌─ the agent's screen ───────────────────────────────────────────────",
            );
            for line in lines.iter().rev().take(6).rev() {
                output::line(format!(
                    "    │ {}",
                    line.chars().take(96).collect::<String>()
                ));
            }
            output::line(
                "    └────────────────────────────────────────────────────────────────────",
            );
        }
    }
}
