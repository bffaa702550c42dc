//! What goes wrong, by chance from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use the_loop::demo::github::{Fault, LocalGitHub};

use crate::dice::Dice;
use crate::people::People;
use crate::program::{Daemon, Program, is_at_rest};
use crate::support::poll;

/// How long it may take until the agent of another item starts.
const STARTING: Duration = Duration::from_secs(20);

/// The storm, and what it did.
pub(crate) struct Storm<'a> {
    dice: Dice,
    program: &'a Program,
    github: &'a LocalGitHub,
    daemon: Option<Daemon>,
    killed: BTreeSet<i32>,
    deeds: BTreeMap<&'static str, u64>,
}

impl<'a> Storm<'a> {
    pub(crate) fn new(seed: u64, program: &'a Program, github: &'a LocalGitHub) -> Self {
        Self {
            dice: Dice::new(seed),
            program,
            github,
            daemon: None,
            killed: BTreeSet::new(),
            deeds: BTreeMap::new(),
        }
    }

    /// The agents that the storm killed.
    pub(crate) fn killed(&self) -> &BTreeSet<i32> {
        &self.killed
    }

    pub(crate) fn deeds(&self) -> String {
        let deeds = self.deeds.iter();
        let deeds: Vec<String> = deeds
            .map(|(what, times)| format!("{what} {times}"))
            .collect();
        deeds.join(", ")
    }

    /// Starts the daemon, and waits until every item has been seen: what its thread holds before that
    /// is never told. Where no further agent starts, what is written for its item counts as lost.
    pub(crate) fn gather(&mut self, people: &People<'_>) {
        self.daemon = Some(self.program.start());
        let wanted = people.items().len();
        let mut started = 0;
        while started < wanted {
            let more = || Some(self.program.items().len()).filter(|now| *now > started);
            let Some(now) = poll(STARTING, more) else {
                let name = self.program.name;
                println!("{name}: no agent for {} of the items", wanted - started);
                return;
            };
            started = now;
        }
    }

    /// Lets people write so many texts while it does harm in between.
    pub(crate) fn rage(&mut self, people: &mut People<'_>, texts: u64) {
        let mut written = 0;
        while written < texts {
            for _ in 0..people.write(&mut self.dice, texts - written) {
                written += 1;
                self.dice.pause(5, 60);
                if written.is_multiple_of(4) {
                    self.harm();
                }
            }
        }
    }

    fn harm(&mut self) {
        let place = usize::try_from(self.dice.roll(1000)).unwrap();
        let deed = match self.dice.roll(10) {
            0..=2 => {
                drop(self.daemon.take());
                self.dice.pause(1, 300);
                self.daemon = Some(self.program.start());
                "daemons killed"
            }
            3 => {
                let run = self.program.start_once();
                self.dice.pause(1, 600);
                drop(run);
                "one-shot runs killed"
            }
            4..=5 => {
                let server = self.program.server();
                if let Some(server) = &server {
                    server.signal(Signal::STOP);
                }
                self.dice.pause(20, 1500);
                if let Some(server) = &server {
                    server.signal(Signal::CONT);
                }
                "tmux stopped"
            }
            6..=7 => {
                let mut agents = self.program.agents();
                if agents.is_empty() {
                    return;
                }
                let first = place % agents.len();
                agents.rotate_left(first);
                // One that has a text in its hands, sent and not yet noted, would take it along: who
                // kills such an agent cannot tell whether it read that.
                let Some(chosen) = agents.iter().find(|agent| is_at_rest(agent)) else {
                    return;
                };
                chosen.signal(Signal::KILL);
                self.killed.insert(chosen.pid);
                "agents killed"
            }
            8 => {
                let part = ["/issues?", "comments", "/pulls"][place % 3];
                let fault = match self.dice.roll(3) {
                    0 => Fault::Status(502),
                    1 => Fault::Truncated,
                    _ => Fault::Slow(Duration::from_millis(700)),
                };
                self.github.fail(part, 2, fault);
                "API faults"
            }
            _ => {
                let daemon = self.daemon.as_ref().expect("it runs");
                daemon.signal(Signal::STOP);
                self.dice.pause(20, 900);
                daemon.signal(Signal::CONT);
                "daemons stopped"
            }
        };
        *self.deeds.entry(deed).or_default() += 1;
    }

    /// Ends the storm: from here on nothing fails, and one daemon works.
    pub(crate) fn calm(&mut self) {
        self.github.heal();
        drop(self.daemon.take());
        self.daemon = Some(self.program.start());
    }
}
