//! The promises, checked over a whole story.

use std::collections::BTreeMap;

use the_loop::model::{DeliveryState, DropReason};
use the_loop::store::{QueueFilter, QueueRow};

use crate::act::Command;
use crate::said::{STRANGER, Said};
use crate::story::item;
use crate::table::{Cause, Heard};
use crate::world::World;

/// What a text that may have been said before says of itself.
const REPEAT: &str = "may be a repeat";

/// How often something is tried, as the configuration has it.
const ATTEMPTS: usize = 3;

/// Returns every promise that was broken.
pub(crate) async fn broken(world: &World, said: &[Said]) -> Vec<String> {
    let mut broken = world.broken.clone();
    broken.extend(world.machine.wrongs());
    let heard = world.machine.heard();
    for one in said {
        fate(world, one, &heard, &mut broken).await;
        for mark in one.marks() {
            readings(one, &mark, &heard, &mut broken);
        }
    }
    order(said, &heard, &mut broken);
    budget(world, &mut broken);
    if heard.iter().any(|one| one.text.contains(STRANGER)) {
        broken.push("the words of a stranger were read".to_owned());
    }
    one_agent_per_item(world, &mut broken).await;
    broken
}

/// Every text that was accepted is read, or given up by an event.
async fn fate(world: &World, one: &Said, heard: &[Heard], broken: &mut Vec<String>) {
    let mark = one.last_mark();
    if world.is_cut_off(&item(one.item)).await {
        return;
    }
    let rows = world.store.queue();
    let rows = rows.list(QueueFilter::About(one.key.object()), 100).await;
    let rows = rows.unwrap();
    if rows.is_empty() && !one.deleted {
        broken.push(format!("never accepted: {mark}"));
    }
    let stopped = world.first_stop(one.item).is_some();
    let mut given_up = false;
    for row in &rows {
        match row.state {
            DeliveryState::Delivered => {
                if !one.marks().any(|mark| is_read(&mark, heard)) {
                    broken.push(format!(
                        "lost: {mark} counts as delivered and nobody read it"
                    ));
                }
            }
            DeliveryState::Dropped if is_superseded(row) && one.edits > 0 => {}
            // A stop takes with it what waits, and what comes while nobody is to work.
            DeliveryState::Dropped if stopped && row.reason.is_some() => given_up = true,
            // What was there before anybody watched is the thread's history.
            DeliveryState::Baselined if !world.is_watched(&item(one.item), one.at_ms) => return,
            DeliveryState::Abandoned => {
                given_up = true;
                if !is_given_up_aloud(world, row) {
                    broken.push(format!("silent: {mark} was given up and no event says so"));
                }
            }
            other => broken.push(format!(
                "unaccounted: {mark} is {other}: {:?} {:?}",
                row.reason, row.error
            )),
        }
    }
    let read = one.deleted || given_up || is_read(&mark, heard);
    if !read && !rows.is_empty() {
        broken.push(format!("unread: {mark} was read by nobody"));
    }
}

fn is_read(mark: &str, heard: &[Heard]) -> bool {
    heard.iter().any(|it| it.text.contains(mark))
}

fn is_superseded(row: &QueueRow) -> bool {
    row.reason.as_deref() == Some(DropReason::Superseded.as_str())
}

fn is_given_up_aloud(world: &World, row: &QueueRow) -> bool {
    world.records().iter().any(|record| {
        let is_end = record.event == "poll.comment_failed" || record.event == "poll.spawn_failed";
        is_end && record.fields["delivery"] == row.delivery.0
    })
}

/// Nothing is tried more often than the configuration says.
fn budget(world: &World, broken: &mut Vec<String>) {
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for record in world.records() {
        if record.event == "dispatch.failed" {
            let delivery = record.fields["delivery"].to_string();
            *failures.entry(delivery).or_default() += 1;
        }
    }
    for (delivery, count) in failures {
        // What is said just before a daemon is killed may not be committed, and is said again.
        if count > ATTEMPTS + world.starts {
            broken.push(format!(
                "over budget: delivery {delivery} failed {count} times"
            ));
        }
    }
}

/// A text is read by the agent of its item only, and by each but once.
fn readings(one: &Said, mark: &str, heard: &[Heard], broken: &mut Vec<String>) {
    let readings: Vec<&Heard> = heard.iter().filter(|it| it.text.contains(mark)).collect();
    let own = item(one.item).to_string();
    for reading in &readings {
        if reading.item != own {
            broken.push(format!(
                "wrong session: {mark} was read by the agent of {}",
                reading.item
            ));
        }
    }
    for (earlier, later) in readings.iter().zip(readings.iter().skip(1)) {
        if later.agent == earlier.agent {
            broken.push(format!("twice: agent {} read {mark} twice", later.agent));
        } else if !later.text.contains(REPEAT) {
            broken.push(format!("twice: {mark} was said again without saying so"));
        }
    }
}

/// Within one item texts are first read in the order in which they came.
fn order(said: &[Said], heard: &[Heard], broken: &mut Vec<String>) {
    let mut last: BTreeMap<u64, (i64, String)> = BTreeMap::new();
    for one in said.iter().filter(|one| one.is_as_written()) {
        let mark = one.last_mark();
        let Some(first) = heard.iter().find(|it| it.text.contains(&mark)) else {
            continue;
        };
        if let Some((at, before)) = last.get(&one.item)
            && *at > first.at_ms
        {
            broken.push(format!("out of order: {mark} was read before {before}"));
        }
        last.insert(one.item, (first.at_ms, mark));
    }
}

async fn one_agent_per_item(world: &World, broken: &mut Vec<String>) {
    let agents = world.machine.agents();
    for (pid, agent) in &agents {
        let number = agent.item.rsplit('#').next().unwrap().parse().unwrap();
        if let Some((at, Cause::Asked | Cause::SessionEnded)) = agent.ended
            && world.first_stop(number).is_none_or(|stop| stop > at)
        {
            broken.push(format!(
                "agent {pid} was ended, and nobody had asked for that"
            ));
        }
        if agent.ended.is_none()
            && world.last_command(number) == Some(Command::Stop)
            && !world.is_cut_off(&item(number)).await
        {
            broken.push(format!("agent {pid} still runs, and was to be stopped"));
        }
        let beside = agents.range(..pid).find(|(_, other)| {
            other.item == agent.item && other.ended.is_none_or(|(at, _)| at > agent.began_ms)
        });
        if let Some((other, _)) = beside {
            broken.push(format!(
                "agent {pid} of {} was started beside agent {other}",
                agent.item
            ));
        }
    }
}
