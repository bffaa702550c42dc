//! The promises, checked over a whole story.

use std::collections::BTreeMap;

use the_loop::model::DeliveryState;

use crate::story::{Said, item};
use crate::table::{Cause, Heard};
use crate::world::World;

/// What a text that may have been said before says of itself.
const REPEAT: &str = "may be a repeat";

/// Returns every promise that was broken.
pub(crate) async fn broken(world: &World, said: &[Said]) -> Vec<String> {
    let mut broken = world.broken.clone();
    let heard = world.machine.heard();
    for one in said {
        fate(world, one, &heard, &mut broken).await;
    }
    order(said, &heard, &mut broken);
    one_agent_per_item(world, &mut broken);
    broken
}

async fn fate(world: &World, one: &Said, heard: &[Heard], broken: &mut Vec<String>) {
    let mark = one.mark();
    let readings: Vec<&Heard> = heard.iter().filter(|it| it.text.contains(&mark)).collect();
    let state = world.store.queue().get(one.delivery).await.unwrap();
    let row = state.unwrap();
    match row.state {
        DeliveryState::Delivered if readings.is_empty() => {
            broken.push(format!(
                "lost: {mark} counts as delivered and nobody read it"
            ));
        }
        DeliveryState::Delivered => {}
        DeliveryState::Abandoned => {
            let id = one.delivery.0;
            let given_up = world.records().iter().any(|record| {
                let is_end =
                    record.event == "poll.comment_failed" || record.event == "poll.spawn_failed";
                is_end && record.fields["delivery"] == id
            });
            if !given_up {
                broken.push(format!("silent: {mark} was given up and no event says so"));
            }
        }
        _ if world.is_cut_off(&item(one.item)).await => {}
        other => broken.push(format!(
            "unaccounted: {mark} is {other}: {:?} {:?}",
            row.reason, row.error
        )),
    }
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
    for one in said {
        let mark = one.mark();
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

fn one_agent_per_item(world: &World, broken: &mut Vec<String>) {
    let agents = world.machine.agents();
    for (pid, agent) in &agents {
        if matches!(agent.ended, Some((_, Cause::Asked))) {
            broken.push(format!(
                "agent {pid} was ended, and nobody had asked for that"
            ));
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
