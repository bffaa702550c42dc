//! The runner's promise of one Enter per text, whatever people do in between.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use the_loop::model::{BootId, DeliveryId, OwnerId, ProcessId, Record, TmuxTarget};
use the_loop::process::identity::Life;
use the_loop::process::signal::{Signal, SignalError};
use the_loop::runner::{Address, BoxFuture, FenceLost, Limits, Machine, Message, TmuxRunner};

use crate::fake::FakeStage;
use crate::fake_tmux::FakeTmux;
use crate::stage::{Made, Manners, Stage, make_recorder, name};

const GAP: Duration = Duration::from_millis(150);

/// A machine on which every process runs that tmux shows.
struct Everything;

impl Machine for Everything {
    fn identify(&self, pid: i32) -> Option<ProcessId> {
        Some(ProcessId { pid, start: 1 })
    }

    fn life(&self, _: &BootId, _: &ProcessId) -> Life {
        Life::Running
    }

    fn boot(&self) -> BootId {
        BootId("boot".to_owned())
    }

    fn signal(&self, _: &ProcessId, _: Signal) -> Result<(), SignalError> {
        Ok(())
    }

    async fn exited(&self, _: &ProcessId) {}

    fn record(&self, _: &OwnerId) -> Option<Record> {
        None
    }

    fn is_given_up(&self, _: &OwnerId) -> bool {
        false
    }
}

fn free() -> BoxFuture<Result<(), FenceLost>> {
    Box::pin(std::future::ready(Ok(())))
}

/// A row of numbers that a seed fixes.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        // The constants of Knuth's MMIX generator; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

struct Story {
    stage: FakeStage,
    made: Made,
    runner: TmuxRunner<FakeTmux, Everything>,
    address: Address,
    texts: i64,
}

impl Story {
    async fn new() -> Self {
        let stage = FakeStage::new();
        let made = make_recorder(&stage, 1, Manners::Brackets).await;
        let owner = OwnerId::mint();
        stage.set_owner(&made, &owner);
        let pid = |pid| ProcessId { pid, start: 1 };
        let target = TmuxTarget {
            socket: stage.socket(),
            server: pid(stage.tmux().world().servers[0].pid),
            session_id: made.session.clone(),
            pane: made.pane.clone(),
            host: pid(made.pid),
            harness: pid(1),
            boot: BootId("boot".to_owned()),
        };
        let (tmux, socket) = (stage.tmux().clone(), stage.socket());
        Self {
            runner: TmuxRunner::new(tmux, Everything, socket, Limits::default()),
            address: Address {
                name: name(1),
                owner: Some(owner),
                target: Some(target),
            },
            stage,
            made,
            texts: 0,
        }
    }

    async fn paste(&mut self) {
        let message = Message {
            delivery: DeliveryId(self.texts + 1),
            attempt: 1,
            text: "text".to_owned(),
            submit_gap: GAP,
            expires_at: Utc::now() + TimeDelta::minutes(5),
        };
        let before = self.stage.so_far("r1").len();
        // Held, refused or lost: what was typed tells.
        self.runner
            .deliver(&self.address, &message, &free)
            .await
            .ok();
        if self.stage.so_far("r1").len() > before {
            self.texts += 1;
        }
    }

    /// Presses the Enter of one of the texts, if it is still to come.
    async fn press(&self, text: u64) {
        let due = DeliveryId(1 + i64::try_from(text).unwrap());
        self.runner
            .settle_enter(&self.address, due, &free)
            .await
            .ok();
    }

    /// Every text has at most one Enter, which comes before the next text.
    fn check(&self, seed: u64) {
        let typed = self.stage.so_far("r1");
        let text = "\u{1b}[200~text\u{1b}[201~";
        let mut rest = typed.split(text);
        assert_eq!(rest.next(), Some(""), "seed {seed}: {typed:?}");
        let enters: Vec<&str> = rest.collect();
        let (last, earlier) = enters.split_last().map_or((&"", &[][..]), |(l, e)| (l, e));
        let each = earlier.iter().all(|enter| *enter == "\r");
        assert!(each && ["", "\r"].contains(last), "seed {seed}: {typed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_text_gets_two_enters_and_a_gone_pane_none() {
    let mut pressed = 0;
    for seed in 0..300 {
        let mut numbers = Numbers(seed);
        let mut story = Story::new().await;
        let mut at_the_end = None;
        for _ in 0..40 {
            match numbers.below(16) {
                0..4 => story.paste().await,
                4..6 => story.stage.copy_mode(&story.made),
                6 => story.stage.leave_mode(&story.made),
                7 => story.stage.attach(&story.made, false).await,
                8 => story.stage.detach(&story.made),
                9..14 => {
                    let texts = story.texts.unsigned_abs();
                    story.press(numbers.below(texts + 1)).await;
                }
                14 if numbers.below(8) == 0 => {
                    story.stage.note_end(&story.made);
                    at_the_end.get_or_insert_with(|| story.stage.so_far("r1"));
                }
                _ => tokio::time::sleep(GAP).await,
            }
            story.check(seed);
        }
        tokio::time::sleep(GAP * 2).await;
        story.check(seed);
        if let Some(before) = at_the_end {
            assert_eq!(story.stage.so_far("r1"), before, "seed {seed}");
        }
        pressed += story.stage.so_far("r1").matches('\r').count();
    }
    assert!(pressed > 300, "the stories tell of too little: {pressed}");
}
