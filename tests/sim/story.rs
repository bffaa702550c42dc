//! What happens in a story: people write, and things break.

use chrono::DateTime;
use the_loop::clock::Clock as _;
use the_loop::model::{
    Class, DeliveryId, Detail, Edit, Ending, Event, EventKey, EventKind, ItemKind, Login, Source,
    WorkItemRef,
};
use the_loop::store::{
    Acceptance, Arming, Arrival, ArrivalOutcome, Disposition, ItemSighting, QueueFilter, Track,
};

use crate::numbers::Numbers;
use crate::pulse::KilledAt;
use crate::world::World;

/// How long things happen, in milliseconds.
const LENGTH: u64 = 60_000;
/// How long it may take until everything has come to rest.
const REST: i64 = 30 * 60_000;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// An item is armed and started.
    Start(u64),
    /// Somebody writes; the same comment may be seen twice.
    Comment(u64, u64),
    FreezeTmux,
    ThawTmux,
    KillTmux,
    RemoveSocket,
    EndAgent(i32),
    KillHost,
    KillDaemon,
    Jump(i64),
}

/// A text that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) item: u64,
    pub(crate) number: u64,
    pub(crate) delivery: DeliveryId,
}

impl Said {
    /// What marks the text, wherever it appears.
    pub(crate) fn mark(&self) -> String {
        mark(self.item, self.number)
    }
}

fn mark(item: u64, number: u64) -> String {
    format!("<text {number} for {item}>")
}

pub(crate) fn item(number: u64) -> WorkItemRef {
    format!("github:demo/app#{number}").parse().unwrap()
}

/// What is to happen, in order.
fn plan(numbers: &mut Numbers) -> Vec<(u64, Act)> {
    let mut acts = Vec::new();
    for item in 1..=numbers.between(1, 2) {
        let start = numbers.below(5_000);
        acts.push((start, Act::Start(item)));
        for number in 1..=numbers.between(1, 5) {
            let at = numbers.between(start + 1, LENGTH);
            acts.push((at, Act::Comment(item, number)));
            if numbers.percent(10) {
                acts.push((at + 700, Act::Comment(item, number)));
            }
        }
    }
    for _ in 0..numbers.below(5) {
        let at = numbers.below(LENGTH);
        let act = match numbers.below(10) {
            0..3 => {
                acts.push((at + numbers.between(500, 25_000), Act::ThawTmux));
                Act::FreezeTmux
            }
            3 => Act::KillTmux,
            4 => Act::RemoveSocket,
            5 | 6 => Act::EndAgent([0, 1, 130][usize::try_from(numbers.below(3)).unwrap()]),
            7 => Act::KillHost,
            8 => Act::KillDaemon,
            _ => Act::Jump(i64::try_from(numbers.below(240_000)).unwrap() - 120_000),
        };
        acts.push((at, act));
    }
    acts.sort_by_key(|(at, _)| *at);
    acts
}

/// Plays a story to its end, and returns what was said in it.
pub(crate) async fn play(world: &mut World, numbers: &mut Numbers) -> Vec<Said> {
    let mut acts = plan(numbers).into_iter().peekable();
    let mut said = Vec::new();
    let wanted = if numbers.percent(30) { 2 } else { 1 };
    let end = i64::try_from(LENGTH).unwrap() + 30_000;
    while world.clock.elapsed_ms() < end {
        start_daemons(world, numbers, wanted);
        world.settle().await;
        let now = u64::try_from(world.clock.elapsed_ms()).unwrap();
        while let Some((_, act)) = acts.next_if(|(at, _)| *at <= now) {
            perform(world, act, &mut said).await;
            world.settle().await;
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

async fn come_to_rest(world: &mut World, numbers: &mut Numbers, wanted: usize) {
    world.machine.note("from here on nothing breaks");
    world.machine.heal();
    perform(world, Act::ThawTmux, &mut Vec::new()).await;
    let until = world.clock.elapsed_ms() + REST;
    loop {
        while world.daemons() < wanted {
            let own = Numbers::of(numbers.below(u64::MAX));
            world.start_daemon(None, own);
        }
        world.settle().await;
        let mut left = world
            .store
            .queue()
            .list(QueueFilter::Open, 100)
            .await
            .unwrap();
        for number in 1..=2 {
            let item = item(number);
            if world.is_cut_off(&item).await {
                left.retain(|row| row.item != item);
            }
        }
        if left.is_empty() {
            break;
        }
        if world.clock.elapsed_ms() > until {
            for row in left {
                world.broken.push(format!(
                    "no rest: delivery {} of {} is {} {:?} {:?}, due {}",
                    row.delivery, row.item, row.state, row.reason, row.error, row.next_at
                ));
            }
            return;
        }
        world.pass(numbers.between(100, 1_500)).await;
    }
    // The last Enter.
    for _ in 0..40 {
        world.pass(1_000).await;
    }
}

async fn perform(world: &mut World, act: Act, said: &mut Vec<Said>) {
    let socket = world.socket();
    let listens = world.tmux.listens(&socket);
    match act {
        Act::Start(item) => {
            world.machine.note(format!("item {item} is started"));
            let sighting = sighting(world, item);
            accept_item(world, sighting).await;
            accept(world, item, 0, "the-loop start", Class::Control).await;
        }
        Act::Comment(item, number) => {
            let text = mark(item, number);
            world.machine.note(format!("somebody writes {text}"));
            let outcome = accept(world, item, number, &text, Class::Event).await;
            if let ArrivalOutcome::New { delivery, .. } = outcome {
                said.push(Said {
                    item,
                    number,
                    delivery,
                });
            }
        }
        Act::FreezeTmux if listens => {
            world.machine.note("tmux is stopped");
            world.tmux.freeze(&socket);
        }
        Act::ThawTmux => {
            world.machine.note("tmux goes on");
            world.tmux.thaw_all();
        }
        Act::KillTmux if listens => {
            world.machine.note("tmux is killed");
            world.tmux.kill_server(&socket);
        }
        Act::RemoveSocket if listens => {
            world.machine.note("the socket is removed");
            world.tmux.remove_socket(&socket);
        }
        Act::FreezeTmux | Act::KillTmux | Act::RemoveSocket => {}
        Act::EndAgent(code) => world.machine.end_an_agent(Ending::Code(code)),
        Act::KillHost => world.machine.kill_a_host(&world.tmux),
        Act::KillDaemon => world.kill_daemon(0),
        Act::Jump(ms) => {
            world.machine.note(format!("the clock jumps by {ms} ms"));
            world.clock.jump(ms);
        }
    }
}

fn sighting(world: &World, number: u64) -> ItemSighting {
    let now = world.clock.now();
    ItemSighting {
        item: item(number),
        repo_id: Some(77),
        kind: ItemKind::Issue,
        title: format!("Title {number}"),
        url: format!("https://github.com/demo/app/issues/{number}"),
        author: Some(Login::new("ada")),
        open: true,
        closed_at: None,
        merged: false,
        updated_at: now,
        arming: Arming::ByAct(Some(Login::new("ada"))),
        pull: None,
        seen_at: now,
        baseline_at: DateTime::UNIX_EPOCH,
        source: Source::Poll,
        track: Track::Always,
    }
}

async fn accept_item(world: &World, seen: ItemSighting) {
    let acceptance = Acceptance {
        items: vec![seen],
        ..Acceptance::default()
    };
    world.store.inbox().accept(&acceptance).await.unwrap();
    world.wake.notify_one();
}

async fn accept(world: &World, number: u64, id: u64, text: &str, class: Class) -> ArrivalOutcome {
    let item = item(number);
    let key_id = format!("{number}-{id}");
    let event = Event {
        key: EventKey::new(item.repo().host(), EventKind::IssueComment, &key_id, "1"),
        kind: EventKind::IssueComment,
        repo: item.repo().clone(),
        repo_id: Some(77),
        number,
        on: ItemKind::Issue,
        actor: Some(Login::new("ada")),
        edit: Edit::Never,
        title: format!("Title {number}"),
        body: text.to_owned(),
        url: String::new(),
        occurred_at: world.clock.now(),
        detail: Detail::None,
    };
    let acceptance = Acceptance {
        arrivals: vec![Arrival {
            version_at: event.occurred_at,
            event,
            source: Source::Poll,
            guid: None,
            disposition: Disposition::Deliver { class },
        }],
        ..Acceptance::default()
    };
    let mut accepted = world.store.inbox().accept(&acceptance).await.unwrap();
    world.wake.notify_one();
    accepted.arrivals.remove(0)
}
