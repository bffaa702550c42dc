//! What goes wrong, by chance from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use the_loop::demo::github::{Fault, LocalGitHub};

use crate::REPO;
use crate::support::{Found, Running, Scratch, TheLoop};

const LABEL: &str = "the-loop: auto-execute";

/// A small generator: the same seed makes the same storm.
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pause(&mut self, from: u64, to: u64) {
        std::thread::sleep(Duration::from_millis(from + self.roll(to - from)));
    }
}

/// The storm, and what it did.
pub(crate) struct Storm<'a> {
    dice: Dice,
    scratch: &'a Scratch,
    the_loop: &'a TheLoop<'a>,
    github: &'a LocalGitHub,
    items: Vec<u64>,
    daemon: Option<Running>,
    written: BTreeMap<u64, u64>,
    killed: BTreeSet<i32>,
    deeds: BTreeMap<&'static str, u64>,
}

impl<'a> Storm<'a> {
    pub(crate) fn new(
        seed: u64,
        scratch: &'a Scratch,
        the_loop: &'a TheLoop<'a>,
        github: &'a LocalGitHub,
    ) -> Self {
        Self {
            // Zero would stay zero.
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            scratch,
            the_loop,
            github,
            items: Vec::new(),
            daemon: None,
            written: BTreeMap::new(),
            killed: BTreeSet::new(),
            deeds: BTreeMap::new(),
        }
    }

    /// How many texts were written for each item.
    pub(crate) fn written(&self) -> &BTreeMap<u64, u64> {
        &self.written
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

    /// Makes the items, each labelled and started.
    pub(crate) fn begin(&mut self, items: u64) {
        for item in 0..items {
            let number = self
                .github
                .open_issue(REPO, "ada", &format!("Item {item}"), "");
            self.github.label(REPO, number, "ada", LABEL).unwrap();
            self.github
                .comment(REPO, number, "ada", "the-loop start")
                .unwrap();
            self.items.push(number);
        }
        self.daemon = Some(self.start());
    }

    fn start(&self) -> Running {
        self.the_loop.start(&["-q", "poll", "start"])
    }

    /// Writes all texts while it does harm in between.
    pub(crate) fn rage(&mut self, events: u64) {
        for event in 0..events {
            let place = self.dice.roll(self.items.len() as u64);
            // In turn, so that no item gets more than its share.
            let number = self.items[usize::try_from(event).unwrap() % self.items.len()];
            let nth = self.written.entry(number).or_default();
            *nth += 1;
            let text = format!("<{number}:{nth}>");
            self.github.comment(REPO, number, "ada", &text).unwrap();
            self.dice.pause(5, 60);
            if event % 4 == 0 {
                self.harm(place);
            }
        }
    }

    fn harm(&mut self, place: u64) {
        let deed = match self.dice.roll(10) {
            0..=2 => {
                let daemon = self.daemon.take().expect("it runs");
                daemon.signal(Signal::KILL);
                drop(daemon);
                self.dice.pause(1, 300);
                self.daemon = Some(self.start());
                "daemons killed"
            }
            3 => {
                // Beside the daemon, as cron would.
                drop(self.the_loop.start(&["-q", "poll", "--once"]));
                "one-shot runs killed"
            }
            4..=5 => {
                let servers: Vec<Found> = self.servers();
                for server in &servers {
                    server.signal(Signal::STOP);
                }
                self.dice.pause(20, 1500);
                for server in &servers {
                    server.signal(Signal::CONT);
                }
                "tmux stopped"
            }
            6..=7 => {
                let agents = self.scratch.processes("demo-agent");
                let harnesses: Vec<&Found> = agents
                    .iter()
                    .filter(|found| !found.command.contains(" host"))
                    .collect();
                if harnesses.is_empty() {
                    return;
                }
                let chosen = usize::try_from(place).unwrap() % harnesses.len();
                harnesses[chosen].signal(Signal::KILL);
                self.killed.insert(harnesses[chosen].pid);
                "agents killed"
            }
            8 => {
                let part =
                    ["/issues?", "/issues/comments", "/pulls"][usize::try_from(place).unwrap() % 3];
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

    fn servers(&self) -> Vec<Found> {
        let output = self
            .scratch
            .tmux_output(&["display-message", "-p", "#{pid}"]);
        let pid = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
        let found = pid.map(|pid| Found {
            pid,
            command: "tmux".to_owned(),
        });
        found.into_iter().collect()
    }

    /// Ends the storm: from here on nothing fails, and one daemon works.
    pub(crate) fn calm(&mut self) -> Running {
        self.github.heal();
        for server in self.servers() {
            server.signal(Signal::CONT);
        }
        let daemon = self.daemon.take().expect("it runs");
        daemon.signal(Signal::KILL);
        drop(daemon);
        self.start()
    }
}
