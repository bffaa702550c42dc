//! What happens in a story: people write, and things break.

use std::time::Duration;

use the_loop::demo::github::Fault;
use the_loop::model::WorkItemRef;
use the_loop::store::{QueueFilter, QueueRow};

use crate::act::{Act, Command, perform};
use crate::fake_tmux::Client;
use crate::numbers::Numbers;
use crate::pulse::KilledAt;
use crate::said::Said;
use crate::world::{Ingress, World};

/// How long things happen, in milliseconds.
const LENGTH: u64 = 60_000;
/// How long a story goes on after the last of them, in milliseconds.
const AFTER: i64 = 5_000;
/// How long it may take until everything has come to rest.
const REST: i64 = 40 * 60_000;
/// How many items a story has at most.
pub(crate) const ITEMS: u64 = 2;

pub(crate) fn item(number: u64) -> WorkItemRef {
    format!("github:demo/app#{number}").parse().unwrap()
}

/// What is to happen, in order.
fn plan(numbers: &mut Numbers, ingress: Ingress) -> Vec<(u64, Act)> {
    let mut acts = Vec::new();
    for item in 1..=numbers.between(1, ITEMS) {
        let start = numbers.below(5_000);
        acts.push((start, Act::Start(item)));
        for number in 1..=numbers.between(1, 5) {
            let at = numbers.between(start + 1, LENGTH);
            acts.push((at, Act::Comment(item, number)));
            if numbers.percent(10) {
                acts.push((at + 700, afterthought(numbers, ingress, item, number)));
            }
        }
        if ingress == Ingress::Poll && numbers.percent(30) {
            acts.push((numbers.below(LENGTH), Act::Stranger(item)));
        }
    }
    for item in 1..=ITEMS {
        if numbers.percent(10) {
            let at = numbers.below(LENGTH);
            acts.push((at, Act::Command(item, Command::Stop)));
            if numbers.percent(60) {
                let again = at + numbers.between(1, 20_000);
                acts.push((again, Act::Command(item, Command::Start)));
            }
        }
    }
    for _ in 0..numbers.below(5) {
        let at = numbers.below(LENGTH);
        trouble(numbers, at, &mut acts);
    }
    if ingress == Ingress::Poll {
        for _ in 0..numbers.below(4) {
            acts.push((numbers.below(LENGTH), Act::GitHubFails(fault(numbers))));
        }
    }
    acts.sort_by_key(|(at, _)| *at);
    acts
}

/// What becomes of a comment a moment later.
fn afterthought(numbers: &mut Numbers, ingress: Ingress, item: u64, number: u64) -> Act {
    match ingress {
        Ingress::Push => Act::Comment(item, number),
        Ingress::Poll if numbers.percent(70) => Act::Edit(item, number),
        Ingress::Poll => Act::Delete(item, number),
    }
}

fn trouble(numbers: &mut Numbers, at: u64, acts: &mut Vec<(u64, Act)>) {
    let act = match numbers.below(20) {
        0..3 => {
            acts.push((at + numbers.between(500, 25_000), Act::ThawTmux));
            Act::FreezeTmux
        }
        3 => Act::KillTmux,
        4 => {
            if numbers.percent(50) {
                acts.push((at + 1, Act::AnotherTmux));
                acts.push((at + numbers.between(500, 25_000), Act::EndOtherTmux));
            }
            Act::RemoveSocket
        }
        5 | 6 => Act::EndAgent([0, 1, 130][usize::try_from(numbers.below(3)).unwrap()]),
        7 => Act::KillHost,
        8 => Act::KillDaemon,
        9 | 10 => {
            acts.push((at + numbers.between(500, 25_000), Act::Unscroll));
            Act::Scroll
        }
        11 => {
            acts.push((at + numbers.between(500, 10_000), Act::ClearDisk));
            Act::FillDisk
        }
        16 | 17 => {
            if numbers.percent(50) {
                acts.push((at + 1, Act::Scroll));
                acts.push((at + numbers.between(500, 25_000), Act::Unscroll));
            }
            acts.push((at + numbers.between(500, 25_000), Act::LookAway));
            Act::LookOn(Client {
                read_only: numbers.percent(50),
            })
        }
        18 => Act::Split,
        12 => Act::Reboot,
        14 => Act::EndAtPaste,
        13 | 15 => {
            acts.push((at + 1, Act::EndAgent(1)));
            acts.push((at + numbers.between(10_000, 60_000), Act::MendStarts));
            Act::BreakStarts
        }
        _ => Act::Jump(i64::try_from(numbers.below(240_000)).unwrap() - 120_000),
    };
    acts.push((at, act));
}

fn fault(numbers: &mut Numbers) -> Fault {
    let wait = Duration::from_secs(numbers.between(1, 40));
    match numbers.below(11) {
        0 => Fault::Status(502),
        1 => Fault::Status(503),
        2 => Fault::HourlyLimit(wait),
        3 => Fault::SecondaryLimit(Some(wait)),
        4 => Fault::TooManyRequests(None),
        5 => Fault::Truncated,
        6 => Fault::Doubled,
        7 => Fault::Reversed,
        8 => Fault::Slow(wait),
        9 => Fault::Hang,
        _ => Fault::Status(404),
    }
}

/// Plays a story to its end, and returns what was said in it.
pub(crate) async fn play(world: &mut World, numbers: &mut Numbers) -> Vec<Said> {
    let mut acts = plan(numbers, world.ingress).into_iter().peekable();
    let mut said = Vec::new();
    let wanted = if numbers.percent(30) { 2 } else { 1 };
    let mut end = 0;
    while acts.peek().is_some() || world.clock.elapsed_ms() < end {
        start_daemons(world, numbers, wanted);
        world.settle().await;
        let now = u64::try_from(world.clock.elapsed_ms()).unwrap();
        while let Some((_, act)) = acts.next_if(|(at, _)| *at <= now) {
            perform(world, act, &mut said).await;
            world.settle().await;
            end = world.clock.elapsed_ms() + AFTER;
        }
        let next = acts
            .peek()
            .map_or(5_000, |(at, _)| at.saturating_sub(now).max(1));
        world.pass(numbers.between(10, 700).min(next)).await;
    }
    come_to_rest(world, numbers, wanted).await;
    said
}

/// Whoever watches over daemons starts one again, and it may be killed again.
fn start_daemons(world: &mut World, numbers: &mut Numbers, wanted: usize) {
    while world.daemons() < wanted && numbers.percent(40) {
        let call = numbers.below(12);
        let killed_at = match numbers.below(10) {
            0 => Some(KilledAt::Before(call)),
            1 => Some(KilledAt::Under(call)),
            2 => Some(KilledAt::After(call)),
            3 | 4 => Some(KilledAt::Store(numbers.below(80))),
            _ => None,
        };
        let own = Numbers::of(numbers.below(u64::MAX));
        world.start_daemon(killed_at, own);
    }
}

/// The deliveries that still wait for more than a person.
async fn left(world: &World) -> Vec<QueueRow> {
    let queue = world.store.queue();
    let mut left = queue.list(QueueFilter::Open, 100).await.unwrap();
    for number in 1..=ITEMS {
        let item = item(number);
        if left.iter().any(|row| row.item == item) && world.is_cut_off(&item).await {
            left.retain(|row| row.item != item);
        }
    }
    left
}

async fn come_to_rest(world: &mut World, numbers: &mut Numbers, wanted: usize) {
    world.machine.note("from here on nothing breaks");
    world.machine.heal();
    world.github.heal();
    for healed in [
        Act::ThawTmux,
        Act::EndOtherTmux,
        Act::Unscroll,
        Act::LookAway,
        Act::ClearDisk,
        Act::MendStarts,
    ] {
        perform(world, healed, &mut Vec::new()).await;
    }
    let until = world.clock.elapsed_ms() + REST;
    world.forget_cycles();
    loop {
        while world.daemons() < wanted {
            let own = Numbers::of(numbers.below(u64::MAX));
            world.start_daemon(None, own);
        }
        world.settle().await;
        let is_late = world.clock.elapsed_ms() > until;
        let is_read = world.has_read_everything();
        if is_read && left(world).await.is_empty() {
            break;
        }
        if is_late {
            if !is_read {
                world
                    .broken
                    .push("GitHub was not read to its end".to_owned());
            }
            for row in left(world).await {
                world.broken.push(format!(
                    "no rest: delivery {} of {} is {} {:?} {:?}, due {}",
                    row.delivery, row.item, row.state, row.reason, row.error, row.next_at
                ));
            }
            return;
        }
        world.pass(numbers.between(100, 1_500)).await;
    }
    // What nobody waits for.
    for _ in 0..5 {
        world.pass(2_000).await;
    }
}
