//! The story of `the-loop demo`: six things that the program promises, seen to happen.
//!
//! Everything is real but GitHub and the agent: the daemon is this program, started as a user would,
//! with its own state root and a private tmux server in a folder that is thrown away.

mod folder;
mod interrupts;
mod scenes;
mod screen;
mod stage;

use std::time::{Duration, Instant};

pub use interrupts::Interrupts;
use stage::Stage;
pub use stage::{LookAround, StageError};

/// What the story tells, as it happens.
#[derive(Debug)]
pub enum Told<'a> {
    /// A scene begins: its number and what people do in it.
    Scene(usize, &'a str),
    /// It ended as promised: what was seen, and how long it took.
    Seen(&'a str, Duration),
    /// It did not.
    Missed(&'a str),
    /// What the agent's screen shows of it.
    Screen(&'a [String]),
    /// Somebody interrupts; everything is being ended.
    Interrupted,
}

/// How the story went.
#[derive(Debug)]
pub struct Ending {
    /// Scenes there are.
    pub scenes: usize,
    /// Scenes that went as promised.
    pub kept: usize,
    /// How long all of it took.
    pub took: Duration,
    /// What was left running, where that was wanted.
    pub left: Option<Left>,
}

impl Ending {
    /// Tells whether every scene was seen to go as promised.
    #[must_use]
    pub fn is_as_promised(&self) -> bool {
        self.kept == self.scenes
    }
}

/// A stage that still stands; [`strike`](Self::strike) ends it.
#[derive(Debug)]
pub struct Left {
    stage: Stage,
}

impl Left {
    /// Says how to look around on it.
    #[must_use]
    pub fn look_around(&self) -> LookAround {
        self.stage.look_around()
    }

    /// Ends and removes everything.
    pub async fn strike(self) {
        self.stage.strike().await;
    }
}

/// What becomes of everything at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It is ended and removed.
    CleanUp,
    /// It keeps running.
    Keep,
}

/// Tells the story from beginning to end; the first scene that fails ends it, and so does an
/// interrupt, after which nothing is left.
///
/// # Errors
/// When the stage cannot be set: no tmux, no room for a folder, no port.
pub async fn tell(
    afterwards: Afterwards,
    interrupts: &mut Interrupts,
    teller: impl Fn(&Told<'_>),
) -> Result<Ending, StageError> {
    let began = Instant::now();
    let mut stage = Stage::set().await?;
    let mut kept = 0;
    let interrupted = tokio::select! {
        () = play(&mut stage, &mut kept, &teller) => false,
        () = interrupts.next() => true,
    };
    let took = began.elapsed();
    let left = if interrupted {
        teller(&Told::Interrupted);
        stage.strike().await;
        None
    } else if afterwards == Afterwards::Keep {
        Some(Left { stage })
    } else {
        stage.strike().await;
        None
    };
    Ok(Ending {
        scenes: scenes::SCENES.len(),
        kept,
        took,
        left,
    })
}

async fn play(stage: &mut Stage, kept: &mut usize, teller: &impl Fn(&Told<'_>)) {
    for (at, scene) in scenes::SCENES.iter().enumerate() {
        teller(&Told::Scene(at + 1, scene.title));
        let began = Instant::now();
        match scenes::play(scene.act, stage).await {
            Ok(seen) => teller(&Told::Seen(&seen, began.elapsed())),
            Err(missed) => {
                let missed = stage.explain(&missed);
                return teller(&Told::Missed(&missed));
            }
        }
        *kept += 1;
        if scene.shows_screen {
            teller(&Told::Screen(&stage.latest_on_screen().await));
        }
    }
}
