//! Texts into running agents: in order, each into its own, once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use the_loop::demo::agent::Entry;
use the_loop::model::DeliveryState;

use super::stage::{Stage, item, quick};
use super::touchy::{Fate, is_paste, refusal};
use crate::support::{SOON, Scratch, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn an_items_messages_keep_their_order_when_one_has_to_be_retried() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let mut pastes = 0;
    stage.fate(move |call| {
        if !is_paste(call) {
            return Fate::Served;
        }
        pastes += 1;
        // The second message fails twice.
        match pastes {
            2 | 3 => refusal("no buffer"),
            _ => Fate::Served,
        }
    });
    for number in 0..5 {
        stage.comment(1, &format!("message {number}")).await;
    }
    stage.drain().await;

    wait_until("all are read", SOON, || stage.agents.messages().len() >= 5);
    let read = stage.agents.messages();
    let order: Vec<_> = read
        .iter()
        .map(|text| {
            text.split("message ")
                .nth(1)
                .unwrap()
                .chars()
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(order, ['0', '1', '2', '3', '4']);
    assert_eq!(stage.events("dispatch.failed").len(), 2);
}

/// The texts of several items go in at the same time and never into the wrong agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_items_never_mix_their_texts() {
    const ITEMS: u64 = 4;
    const TEXTS: u64 = 25;
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("harnesses.agent.submitGapMilliseconds", json!(20));
    let stage = Stage::open(&scratch, &the_loop).await;
    for number in 1..=ITEMS {
        stage.start(number).await;
    }
    stage.agents.wait_ready(4);
    for text in 0..TEXTS {
        for number in 1..=ITEMS {
            stage
                .comment(number, &format!("text {text} for item {number}."))
                .await;
        }
    }
    let work = stage.run();
    let all = usize::try_from(ITEMS * TEXTS).unwrap();
    wait_until("all are read", SOON, || {
        stage.agents.messages().len() >= all
    });
    work.end().await;

    let mut of_pid = BTreeMap::new();
    let mut heard: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for record in stage.agents.records() {
        match record.entry {
            Entry::Start { env, .. } => {
                let item = env["THE_LOOP_WORK_ITEM"]
                    .rsplit('#')
                    .next()
                    .unwrap()
                    .to_owned();
                of_pid.insert(record.pid, item.parse().unwrap());
            }
            Entry::Message { text, .. } => {
                heard.entry(of_pid[&record.pid]).or_default().push(text);
            }
            _ => {}
        }
    }
    for number in 1..=ITEMS {
        let texts = &heard[&number];
        assert_eq!(texts.len(), usize::try_from(TEXTS).unwrap());
        for (place, text) in texts.iter().enumerate() {
            let expected = format!("text {place} for item {number}.");
            assert!(text.contains(&expected), "{number}, {place}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_items_are_worked_on_at_once_than_configured() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("routing.maxConcurrentDispatches", json!(2));
    let stage = Stage::open(&scratch, &the_loop).await;
    for number in 1..=4 {
        stage.start(number).await;
    }
    stage.agents.wait_ready(4);
    let most = Arc::new(AtomicUsize::new(0));
    for number in 1..=4 {
        stage.comment(number, "hello").await;
    }
    // A paste that hangs keeps its place; how many are at work is counted in the store.
    stage.fate(|call| match is_paste(call) {
        true => Fate::Hangs,
        false => Fate::Served,
    });
    let work = stage.run();
    for _ in 0..50 {
        let counts = stage.store.queue().counts().await.unwrap();
        most.fetch_max(usize::try_from(counts.claimed).unwrap(), Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    stage.heal();
    wait_until("all are read", SOON, || stage.agents.messages().len() == 4);
    work.end().await;
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

/// Nothing is pasted into an agent that is still starting; the messages wait and cost no attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_starting_agent_is_left_alone_until_it_is_ready() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch)
        .set("harnesses.agent.readyDelaySeconds", json!(2))
        .agent_args(&["--boot-delay", "600"]);
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;

    let delivery = stage.comment(1, "first\nsecond").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!((row.state, row.attempts), (DeliveryState::Delivered, 1));
    let message = stage.agents.wait_for_message("second");
    let Entry::Message {
        bracketed, text, ..
    } = message.entry
    else {
        panic!("{message:?}")
    };
    assert!(bracketed && text.contains("first\nsecond"), "{text}");
    let held = stage.events("dispatch.held");
    assert_eq!(held.len(), 1, "{held:#?}");
    assert_eq!(held[0].text("reason"), Some("starting"));
    assert_eq!(
        held[0].text("work_item"),
        Some(item(1).to_string().as_str())
    );
}
