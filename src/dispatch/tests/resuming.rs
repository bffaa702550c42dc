//! What a resumed agent that failed says about its conversation.

use super::after_a_crash::{begin_respawn, failed_after, taken};
use super::*;
use crate::model::{Ending, HostPaths, Phase, Record, Ticket};
use crate::process::ticket;
use crate::store::{Intent, Release};

/// Lets tmux make every session, and its host record this end of the agent at once.
fn every_agent_ends(world: &World, ending: Ending) -> Arc<Mutex<Vec<OwnerId>>> {
    every_agent_ends_beside(world, ending, no_server)
}

/// The same, where tmux says this about everything else.
fn every_agent_ends_beside(
    world: &World,
    ending: Ending,
    otherwise: impl Fn(&Invocation) -> Result<Answer, Unanswered> + Send + 'static,
) -> Arc<Mutex<Vec<OwnerId>>> {
    let owners = Arc::new(Mutex::new(Vec::new()));
    let (made, root) = (Arc::clone(&owners), world.folder.path().to_owned());
    world.tmux(move |call| {
        let Some(TmuxCommand::NewSession { name, program, .. }) = call.commands.first() else {
            return otherwise(call);
        };
        let ticket = std::path::Path::new(&program[2]);
        let folder = ticket.parent().unwrap().file_name().unwrap();
        let owner: OwnerId = folder.to_str().unwrap().parse().unwrap();
        let paths = HostPaths::new(&root, &owner);
        fs::rename(paths.ticket(), paths.taken()).unwrap();
        let record = Record {
            v: Record::VERSION,
            owner: owner.clone(),
            host: gone(),
            boot: boot_id(),
            pane: "%5".parse().unwrap(),
            started_ms: None,
            phase: Phase::Ended {
                harness: Some(gone()),
                ending: ending.clone(),
                at_ms: 0,
            },
        };
        fs::write(paths.record(), serde_json::to_vec(&record).unwrap()).unwrap();
        made.lock().unwrap().push(owner.clone());
        let pid = own().pid;
        said(format!(
            "loop-made|{pid}|$3|%5|{pid}|/nowhere/socket\nloop-ready|{owner}|{name}\n"
        ))
    });
    owners
}

#[tokio::test]
async fn only_an_agent_that_gave_up_by_itself_loses_its_conversation() {
    for (ending, attempts) in [
        (Ending::Failed("no such program".to_owned()), 1),
        (Ending::Signal(9), 1),
        (Ending::Signal(15), 1),
        (Ending::Signal(6), 2),
        (Ending::Code(1), 2),
    ] {
        let world = World::new().await;
        world.configure(&json!({
            "harnesses": { "agent": { "command": "/bin/true", "resumeArgs": ["{sessionId}"] } },
        }));
        let before = world.active_session(Agent::Gone).await;
        let delivery = world.comment(ITEM, 1).await;
        let owners = every_agent_ends(&world, ending.clone());

        world.work().await;

        assert_eq!(owners.lock().unwrap().len(), attempts, "{ending:?}");
        assert_eq!(world.state(delivery).await, DeliveryState::Pending);
        assert_eq!(world.attempts(delivery).await, 1);
        let after = world.session().await.unwrap();
        assert_eq!(after.harness_session_id, before.harness_session_id);
        assert_eq!(after.attempt, None);
    }
}

#[tokio::test]
async fn an_agent_that_exits_with_0_instead_of_resuming_begins_afresh() {
    let world = World::new().await;
    world.configure(&json!({
        "harnesses": { "agent": { "command": "/bin/true", "resumeArgs": ["{sessionId}"] } },
    }));
    let before = world.active_session(Agent::Gone).await;
    let crashed = Phase::Ended {
        harness: Some(gone()),
        ending: Ending::Signal(11),
        at_ms: 0,
    };
    taken(&world, &before.owner, &boot_id(), crashed);
    let delivery = world.comment(ITEM, 1).await;
    let owners = every_agent_ends(&world, Ending::Code(0));

    world.work().await;

    assert_eq!(owners.lock().unwrap().len(), 2);
    assert_eq!(world.records(&["session.resume_failed"]).len(), 1);
    let respawned = world.records(&["session.respawned"]);
    assert_eq!(respawned.len(), 1);
    assert_eq!(respawned[0].fields.get("resumed"), Some(&json!(false)));
    assert_eq!(respawned[0].text("ended"), Some("signal:11"));
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    let told = world.records(&["dispatch.succeeded"]);
    let repeat = told[0].fields.get("possible_repeat");
    assert_eq!(
        repeat,
        Some(&json!("possible")),
        "it may have read it as it ended"
    );
    let after = world.session().await.unwrap();
    assert_ne!(after.harness_session_id, before.harness_session_id);
}

impl World {
    /// Tells what the database keeps about a message that is told.
    pub(super) async fn is_possible_repeat(&self, delivery: DeliveryId) -> bool {
        let file =
            sqlx::sqlite::SqliteConnectOptions::new().filename(self.folder.path().join("loop.db"));
        let pool = sqlx::SqlitePool::connect_with(file).await.unwrap();
        let kept = sqlx::query_scalar("SELECT possible_repeat FROM deliveries WHERE id = $1")
            .bind(delivery.0)
            .fetch_one(&pool)
            .await
            .unwrap();
        pool.close().await;
        kept
    }
}

#[tokio::test]
async fn a_message_that_a_respawned_agent_may_have_read_as_it_ended_may_be_a_repeat() {
    let world = World::new().await;
    world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let owners = every_agent_ends(&world, Ending::Code(0));

    world.work().await;

    assert_eq!(owners.lock().unwrap().len(), 1);
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    let told = world.records(&["dispatch.succeeded"]);
    assert_eq!(told[0].text("possible_repeat"), Some("possible"));
    assert!(world.is_possible_repeat(delivery).await);
}

#[tokio::test]
async fn a_text_that_went_with_its_agent_is_told_by_another_attempt() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let intent = Intent {
        owner: session.owner.clone(),
        expires_at: start(),
    };
    let deduper = world.store.deduper();
    deduper.store_intent(&claim, &intent).await.unwrap();
    let release = Release::Retry { at: start() };
    deduper.release(&claim, release).await.unwrap();
    every_agent_ends_beside(&world, Ending::Code(0), move |call| {
        match &call.commands[..] {
            [TmuxCommand::DisplayMessage { .. }] => token(&session, "1"),
            _ => no_server(call),
        }
    });

    world.work().await;

    let told = world.records(&["dispatch.succeeded"]);
    assert_eq!(told[0].fields.get("attempt"), Some(&json!(2)));
}

#[tokio::test]
async fn a_respawn_that_another_message_finds_done_is_said() {
    let world = World::new().await;
    let before = world.active_session(Agent::Gone).await;
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let fresh = HarnessSessionId::mint();
    let attempt = begin_respawn(&world, &claim, &before, fresh.clone()).await;
    let late = failed_after(TimeDelta::seconds(3));
    taken(&world, &attempt.owner, &boot_id(), late);
    let given_up = Settlement::Abandoned {
        version: "1.0.0",
        rearm: crate::store::Rearm::ByAnotherVersion,
    };
    let deduper = world.store.deduper();
    deduper.settle(&claim, given_up, None).await.unwrap();
    world.comment(ITEM, 2).await;

    world.work().await;

    assert_eq!(world.session().await.unwrap().owner, attempt.owner);
    let said = world.records(&["session.respawned"]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].fields.get("resumed"), Some(&json!(false)));
    assert_eq!(said[0].text("harness_session_id"), Some(fresh.as_str()));
}

#[tokio::test]
async fn an_agent_is_told_to_resume_the_recorded_conversation_where_it_may() {
    for (may, resume, resumes) in [
        (true, json!(["--resume", "{sessionId}"]), true),
        (false, json!(["--resume", "{sessionId}"]), false),
        (true, serde_json::Value::Null, false),
    ] {
        let world = World::new().await;
        world.configure(&json!({
            "routing.tmux": { "resumeOnRespawn": may },
            "harnesses": { "agent": { "command": "/bin/true", "resumeArgs": resume } },
        }));
        let before = world.active_session(Agent::Gone).await;
        world.comment(ITEM, 1).await;
        let owners = every_agent_ends(&world, Ending::Signal(9));

        world.work().await;

        let first = owners.lock().unwrap()[0].clone();
        let paths = HostPaths::new(world.folder.path(), &first);
        let Ticket {
            argv, not_after_ms, ..
        } = ticket::taken(&paths).unwrap().unwrap();
        assert!(not_after_ms > start().timestamp_millis(), "it can be taken");
        let conversation = before.harness_session_id.to_string();
        assert_eq!(
            argv.ends_with(&["--resume".to_owned(), conversation]),
            resumes,
            "{argv:?}"
        );
        let said = world.records(&["session.resume_failed"]);
        assert_eq!(said.is_empty(), !may || resumes, "{said:?}");
    }
}
