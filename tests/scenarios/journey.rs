//! The three ways of an event: it starts an agent, it reaches one, or it starts a dead one again.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::checks::{agents_alive, signal, wait_gone};
use crate::gate::Gate;
use crate::support::{Running, SOON, Scratch, TheLoop, poll, wait_until};
use crate::trap::Database;
use crate::world::World;

/// The session of a person on the same server, which nobody may touch.
pub(crate) const MINE: &str = "mine";

/// The words of the event.
pub(crate) const TEXT: &str = "please mind the gap";

/// The words of the event that follows, to see that the item is not stuck.
const AFTERWARDS: &str = "and afterwards this";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journey {
    /// The first agent of an item, started by a comment.
    Start,
    /// A comment for an agent that runs.
    Message,
    /// A comment for an agent that died and left its session.
    Respawn,
    /// A comment for an agent that a person started under the name, which is looked at each time.
    Adopted,
}

impl Journey {
    /// How many agents there are, dead ones included, when it is over.
    fn agents(self) -> usize {
        match self {
            Self::Start | Self::Message => 1,
            Self::Respawn | Self::Adopted => 2,
        }
    }
}

/// One world in which one journey is made.
pub(crate) struct Stage<'a> {
    pub(crate) world: World<'a>,
    pub(crate) gate: Gate,
    pub(crate) database: Database,
    pub(crate) number: u64,
    /// How many deliveries there were before the event.
    accepted: i64,
    journey: Journey,
    /// What the agents had been told before.
    told: Vec<String>,
    /// The sessions that are to be there in the end, beside that of the item.
    pub(crate) sessions: Vec<String>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(scratch: &'a Scratch, journey: Journey) -> Self {
        Self::with(scratch, journey, |the_loop| the_loop)
    }

    /// Makes all ready for the event.
    pub(crate) fn with(
        scratch: &'a Scratch,
        journey: Journey,
        configure: impl FnOnce(TheLoop<'a>) -> TheLoop<'a>,
    ) -> Self {
        Self::configured(scratch, journey, None, configure)
    }

    /// The same, with a configuration for tmux.
    pub(crate) fn configured(
        scratch: &'a Scratch,
        journey: Journey,
        tmux: Option<&Path>,
        configure: impl FnOnce(TheLoop<'a>) -> TheLoop<'a>,
    ) -> Self {
        let gate = Gate::new(scratch);
        let world = World::with(scratch, |the_loop| {
            configure(
                the_loop
                    .set("routing.tmux.binary", json!(gate.program()))
                    .set("harnesses.agent.readyDelaySeconds", json!(0)),
            )
        });
        scratch.tmux(&["new-session", "-d", "-s", MINE, "sleep 1000"]);
        if let Some(tmux) = tmux {
            scratch.tmux(&["source-file", &tmux.display().to_string()]);
        }
        let number = match journey {
            Journey::Start => {
                let number = world.issue("Traffic");
                world.run(&["poll", "--once"]).ok();
                number
            }
            Journey::Message | Journey::Respawn | Journey::Adopted => world.started("Traffic"),
        };
        if journey == Journey::Respawn {
            end_agents(&world);
        }
        if journey == Journey::Adopted {
            let name = world.name(number);
            scratch.tmux(&["kill-session", "-t", &format!("={name}")]);
            end_agents(&world);
            by_hand(&world, &name);
            world.comment(number, "welcome");
            world.run(&["poll", "--once"]).ok();
            world.wait_heard("welcome");
        }
        let told = world.agents().heard();
        let mut database = Database::of(scratch);
        let accepted = database.number("SELECT count(*) FROM deliveries");
        Self {
            accepted,
            world,
            gate,
            database,
            number,
            journey,
            told,
            sessions: vec![MINE.to_owned()],
        }
    }

    /// Writes the event on GitHub.
    pub(crate) fn write_event(&self) {
        let text = match self.journey {
            Journey::Start => "the-loop start",
            Journey::Message | Journey::Respawn | Journey::Adopted => TEXT,
        };
        self.world.comment(self.number, text);
    }

    pub(crate) fn daemon(&self) -> Running {
        self.world.the_loop.start(&["-q", "poll", "start"])
    }

    /// The tmux server.
    pub(crate) fn server(&self) -> i32 {
        let shown = self
            .world
            .scratch
            .tmux(&["display-message", "-p", "#{pid}"]);
        shown.trim().parse().unwrap()
    }

    /// Waits until nothing is left to do, and something was done.
    pub(crate) fn wait_settled(&mut self) {
        let before = self.told.len();
        let agents = self.world.agents();
        wait_until("an agent is told", SOON, || agents.heard().len() > before);
        self.wait_idle();
    }

    /// Waits until the event counts as delivered.
    pub(crate) fn wait_delivered(&mut self) {
        let done = "SELECT count(*) FROM deliveries WHERE state <> 'delivered' AND class = 'event' \
                    AND id = (SELECT max(id) FROM deliveries)";
        let all = "SELECT count(*) FROM deliveries";
        let before = self.accepted;
        wait_until("the event is delivered", SOON, || {
            self.database.number(all) > before && self.database.number(done) == 0
        });
    }

    fn wait_idle(&mut self) {
        let open = "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'held', 'claimed')";
        wait_until("every delivery is settled", SOON, || {
            self.database.number(open) == 0
        });
    }

    /// Sees that the event was told once, to the one agent of the item, and that the item goes on.
    pub(crate) fn check(&mut self) {
        self.wait_settled();
        let world = &self.world;
        let name = world.name(self.number);
        let on_screen = || {
            let screen = world.scratch.screen(&format!("={name}:"));
            screen.matches(TEXT).count()
        };
        if self.journey != Journey::Start {
            wait_until("the text is on the screen", SOON, || on_screen() > 0);
            assert_eq!(on_screen(), 1, "on the agent's screen");
        }
        world.comment(self.number, AFTERWARDS);
        world.wait_heard(AFTERWARDS);
        self.wait_idle();
        self.check_telling();
        let world = &self.world;
        assert_eq!(
            world.agents().starts().len(),
            self.journey.agents(),
            "agents were started"
        );
        assert_eq!(agents_alive(world.scratch), 1, "agents run");
        let mut expected = [&self.sessions[..], &[name]].concat();
        expected.sort();
        let mut sessions = Vec::new();
        let left = poll(SOON, || {
            sessions = world.tmux_sessions();
            sessions.sort();
            (sessions == expected).then_some(())
        });
        assert!(
            left.is_some(),
            "{sessions:?} are there instead of {expected:?}"
        );
        let bad = "SELECT count(*) FROM deliveries WHERE state IN ('abandoned', 'skipped')";
        assert_eq!(self.database.number(bad), 0, "deliveries were given up");
    }

    fn check_telling(&self) {
        let heard = self.world.agents().heard();
        let news = heard
            .strip_prefix(&self.told[..])
            .expect("a log only grows");
        let [first, second] = news else {
            panic!("told {} texts instead of two: {news:#?}", news.len());
        };
        if self.journey != Journey::Start {
            assert!(first.contains(TEXT), "{first}");
        }
        assert!(second.contains(AFTERWARDS), "{second}");
        // A successor cannot know whether an agent that has died had read it before.
        let may_repeat = |text: &str| text.contains("may be a repeat");
        assert!(
            self.journey == Journey::Respawn || !may_repeat(first),
            "{first}"
        );
        assert!(!may_repeat(second), "{second}");
    }
}

/// Kills every agent, and waits until nothing is left of them.
fn end_agents(world: &World<'_>) {
    for start in world.agents().starts() {
        let pid = start.pid.cast_signed();
        signal(pid, Signal::KILL);
        wait_gone(pid);
    }
}

/// A person starts an agent in a session of this name.
pub(crate) fn by_hand(world: &World<'_>, name: &str) {
    let agents = world.agents();
    let ready = agents.starts().len() + 1;
    let log = world.scratch.path("agent.jsonl").display().to_string();
    let program = env!("CARGO_BIN_EXE_the-loop");
    let words = [
        "new-session",
        "-d",
        "-s",
        name,
        "-x",
        "200",
        "-y",
        "50",
        "--",
    ];
    let agent = [program, "demo-agent", "--log", &log];
    world.scratch.tmux(&[&words[..], &agent[..]].concat());
    agents.wait_ready(ready);
}
