//! The story of `the-loop demo`: six things that the program promises, seen to happen.
//!
//! Everything is real but GitHub and the agent: the daemon is this program, started as a user would,
//! with its own state root and a private tmux server in a folder that is thrown away.

mod scenes;
mod stage;

use std::time::{Duration, Instant};

use stage::Stage;
pub use stage::StageError;

/// What the story tells, as it happens.
#[derive(Debug)]
pub enum Told<'a> {
    /// A scene begins: its number and what people do in it.
    Scene(usize, &'a str),
    /// It ended as promised: what was seen, and how long it took.
    Seen(&'a str, Duration),
    /// It did not.
    Missed(&'a str),
    /// The agent's screen after it.
    Screen(&'a [String]),
}

/// How the story went.
#[derive(Debug)]
pub struct Ending {
    /// Scenes told.
    pub scenes: usize,
    /// Scenes that went as promised.
    pub kept: usize,
    /// How long all of it took.
    pub took: Duration,
    /// How to look around, where everything was left running.
    pub look_around: Option<Vec<String>>,
}

/// What becomes of everything at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It is ended and removed.
    CleanUp,
    /// It keeps running.
    Keep,
}

/// Tells the story from beginning to end; the first scene that fails ends it.
///
/// # Errors
/// When the stage cannot be set: no tmux, no room for a folder, no port.
pub async fn tell(
    afterwards: Afterwards,
    teller: impl Fn(&Told<'_>),
) -> Result<Ending, StageError> {
    let began = Instant::now();
    let mut stage = Stage::set().await?;
    let mut kept = 0;
    for (at, scene) in scenes::SCENES.iter().enumerate() {
        teller(&Told::Scene(at + 1, scene.title));
        let scene_began = Instant::now();
        match scenes::play(scene.act, &mut stage).await {
            Ok(seen) => teller(&Told::Seen(&seen, scene_began.elapsed())),
            Err(missed) => {
                teller(&Told::Missed(&missed));
                break;
            }
        }
        kept += 1;
        if scene.shows_screen {
            teller(&Told::Screen(&stage.screen().await));
        }
    }
    let look_around = match afterwards {
        Afterwards::Keep => Some(stage.keep()),
        Afterwards::CleanUp => {
            stage.strike().await;
            None
        }
    };
    Ok(Ending {
        scenes: scenes::SCENES.len(),
        kept,
        took: began.elapsed(),
        look_around,
    })
}
