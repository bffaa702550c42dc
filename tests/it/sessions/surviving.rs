//! Daemons that are killed at any moment, and several processes at once.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::world::{World, short, stop};
use crate::support::{Scratch, poll};

/// `kill -9` of the daemon in the middle of two dozen deliveries, again and again: each text is read
/// exactly once, in order.
#[test]
fn a_daemon_that_is_killed_again_and_again_says_everything_once() {
    const TEXTS: usize = 24;
    let scratch = Scratch::new();
    let world = World::with(&scratch, |the_loop| {
        the_loop.set("harnesses.agent.submitGapMilliseconds", json!(20))
    });
    let number = world.started("Killed");
    for text in 0..TEXTS {
        world.comment(number, &format!("text number {text}."));
    }
    let heard = || -> Vec<usize> {
        let texts = world.agents().messages();
        texts
            .iter()
            .map(|text| {
                let after = text.split("text number ").nth(1).unwrap();
                after.split('.').next().unwrap().parse().unwrap()
            })
            .collect()
    };
    let mut rounds = 0;
    let began = Instant::now();
    while heard().len() < TEXTS && began.elapsed() < Duration::from_secs(25) {
        let daemon = world.the_loop.start(&["poll", "start", "-q"]);
        // Killed a little later after its start each time, so that every stage is met.
        let before = heard().len();
        let pause = Duration::from_millis(37 * (rounds % 11));
        poll(Duration::from_secs(3), || {
            (heard().len() > before).then_some(())
        });
        std::thread::sleep(pause);
        daemon.signal(Signal::KILL);
        drop(daemon);
        rounds += 1;
    }
    let daemon = world.daemon();
    poll(Duration::from_secs(20), || {
        (heard().len() >= TEXTS).then_some(())
    });
    stop(daemon);

    assert!(rounds >= 2, "it was never killed");
    assert_eq!(
        heard(),
        (0..TEXTS).collect::<Vec<_>>(),
        "after {rounds} rounds"
    );
    assert_eq!(world.agents().starts().len(), 1);
}

/// A daemon, a one-shot run and a person start the same item at the same time: one agent.
#[test]
fn processes_that_race_to_start_an_item_start_one_agent() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.issue("Raced");
    let daemon = world.daemon();
    for round in 0..3 {
        let item = short(number);
        let racers: Vec<_> = (0..3)
            .map(|_| world.the_loop.start(&["sessions", "start", &item]))
            .collect();
        let once = world.the_loop.start(&["poll", "--once"]);
        for racer in racers {
            racer.wait(Duration::from_secs(30)).ok();
        }
        assert_eq!(once.wait(Duration::from_secs(30)).code(), 0);
        assert_eq!(world.agents().starts().len(), round + 1);
        world.run(&["sessions", "close", &item, "--kill-tmux"]).ok();
    }
    assert_eq!(stop(daemon).code(), 0);
}
