//! What is left behind by a process that ended in the middle.

use std::os::unix::fs::DirBuilderExt;

use super::*;
use crate::model::{AfterEnd, Ending, HostPaths, PaneId, Phase, PromptPassing, Record, Ticket};
use crate::store::NewAttempt;

fn boot(name: &str) -> BootId {
    BootId(name.to_owned())
}

/// Leaves the files of a host that took its ticket and was cut off.
pub(super) fn taken(world: &World, owner: &OwnerId, boot: &BootId, phase: Phase) {
    taken_by(gone(), world, owner, boot, phase);
}

/// Leaves those of this host.
pub(super) fn taken_by(
    host: ProcessId,
    world: &World,
    owner: &OwnerId,
    boot: &BootId,
    phase: Phase,
) {
    let paths = HostPaths::new(world.folder.path(), owner);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(paths.dir())
        .unwrap();
    fs::write(paths.taken(), "{}").unwrap();
    let pane: PaneId = "%5".parse().unwrap();
    let record = Record {
        v: Record::VERSION,
        owner: owner.clone(),
        host,
        boot: boot.clone(),
        pane,
        started_ms: Some(start().timestamp_millis()),
        phase,
    };
    fs::write(paths.record(), serde_json::to_vec(&record).unwrap()).unwrap();
}

/// Puts the ticket of a spawn on this server where its host has taken it.
fn take_ticket(world: &World, session: &Session, socket: &TmuxSocket) {
    let ticket = Ticket {
        v: Ticket::VERSION,
        owner: session.owner.clone(),
        work_item: session.minted_ref.clone(),
        socket: socket.clone(),
        tmux: "/usr/bin/tmux".into(),
        cwd: session.cwd.clone(),
        argv: vec!["/bin/true".to_owned()],
        env: std::collections::BTreeMap::new(),
        prompt: PromptPassing::None,
        not_after_ms: 0,
        grace_ms: 1,
        after_end: AfterEnd::KeepScreen,
    };
    let paths = HostPaths::new(world.folder.path(), &session.owner);
    fs::write(paths.taken(), serde_json::to_vec(&ticket).unwrap()).unwrap();
}

#[tokio::test]
async fn a_spawn_that_went_down_with_its_machine_is_made_again_and_marked() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    let harness = ProcessId { pid: 99, start: 9 };
    taken(
        &world,
        &session.owner,
        &boot("an earlier boot"),
        Phase::Running { harness },
    );

    world.work().await;

    assert_eq!(
        world.session().await,
        None,
        "nothing stays under way for ever"
    );
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.pass(60);
    world.work().await;
    let prompt = newest_prompt(&world, &session.owner);
    assert!(prompt.contains("This may be a repeat"), "{prompt}");
}

/// The end of a harness that failed so long after its start.
pub(super) fn failed_after(time: TimeDelta) -> Phase {
    Phase::Ended {
        harness: Some(gone()),
        ending: Ending::Code(1),
        at_ms: (start() + time).timestamp_millis(),
    }
}

#[tokio::test]
async fn an_agent_that_failed_after_its_window_while_nobody_looked_had_its_first_message() {
    for (ran, state) in [
        (TimeDelta::seconds(1), DeliveryState::Pending),
        (TimeDelta::seconds(3), DeliveryState::Delivered),
    ] {
        let world = World::new().await;
        let delivery = world.comment(ITEM, 1).await;
        let claim = world.claim_and_die().await;
        let session = world.begin_spawn(&claim).await;
        taken(&world, &session.owner, &boot_id(), failed_after(ran));

        world.work().await;

        assert_eq!(world.state(delivery).await, state, "{ran}");
        let open = world.session().await.map(|open| open.id);
        let survived = state == DeliveryState::Delivered;
        assert_eq!(open, survived.then_some(session.id));
    }
}

/// Leaves a respawn for the claim's message under way, as one that was killed in it.
pub(super) async fn begin_respawn(
    world: &World,
    claim: &Claim,
    session: &Session,
    conversation: HarnessSessionId,
) -> NewAttempt {
    world.store.deduper().begin_attempt(claim).await.unwrap();
    let attempt = NewAttempt {
        owner: OwnerId::mint(),
        harness_session_id: conversation,
        boot_delivery: claim.message(),
    };
    let registry = world.store.registry();
    registry
        .begin_respawn(claim, session.id, &attempt)
        .await
        .unwrap();
    attempt
}

#[tokio::test]
async fn a_respawned_agent_that_failed_after_its_window_while_nobody_looked_had_its_message() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let attempt = begin_respawn(&world, &claim, &session, HarnessSessionId::mint()).await;
    let late = failed_after(TimeDelta::seconds(3));
    taken(&world, &attempt.owner, &boot_id(), late);

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    let open = world.session().await.unwrap();
    assert_eq!(open.owner, attempt.owner);
    assert_eq!(open.harness_session_id, attempt.harness_session_id);
    assert_eq!(open.attempt, None);
}

#[tokio::test]
async fn an_agent_that_exited_with_0_while_nobody_looked_was_told_only_where_it_began_afresh() {
    for (resumed, state) in [
        (true, DeliveryState::Pending),
        (false, DeliveryState::Delivered),
    ] {
        let world = World::new().await;
        let session = world.active_session(Agent::Gone).await;
        let delivery = world.comment(ITEM, 1).await;
        let claim = world.claim_and_die().await;
        let conversation = match resumed {
            true => session.harness_session_id.clone(),
            false => HarnessSessionId::mint(),
        };
        let attempt = begin_respawn(&world, &claim, &session, conversation).await;
        let at_once = Phase::Ended {
            harness: Some(gone()),
            ending: Ending::Code(0),
            at_ms: start().timestamp_millis(),
        };
        taken(&world, &attempt.owner, &boot_id(), at_once);

        world.work().await;

        assert_eq!(world.state(delivery).await, state, "resumed: {resumed}");
    }
}

#[tokio::test]
async fn a_host_that_was_killed_before_it_started_its_agent_said_nothing() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    taken(&world, &session.owner, &boot_id(), Phase::Starting);

    world.work().await;

    assert_eq!(world.session().await, None);
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.pass(60);
    world.work().await;
    let prompt = newest_prompt(&world, &session.owner);
    assert!(!prompt.contains("This may be a repeat"), "{prompt}");
}

#[tokio::test]
async fn a_last_attempt_that_a_killed_process_had_begun_is_still_made() {
    let world = World::new().await;
    world.configure(&json!({ "polling.maxRetries": 1 }));
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;

    world.work().await;

    newest_prompt(&world, &session.owner);
    assert_eq!(world.attempts(delivery).await, 1);
}

#[tokio::test]
async fn a_spawn_that_failed_after_it_was_waited_for_is_said_with_its_number() {
    let world = World::new().await;
    world.configure(&json!({ "polling.maxRetries": 1 }));
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    let running = Phase::Running { harness: own() };
    taken(&world, &session.owner, &boot_id(), running);
    world.work().await;
    taken(&world, &session.owner, &boot_id(), Phase::Starting);
    world.pass(60);

    world.work().await;

    let said = world.records(&["session.spawn_failed"]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].fields.get("attempt"), Some(&json!(1)));
    assert_eq!(said[0].fields.get("will_retry"), Some(&json!(false)));
}

#[tokio::test]
async fn an_agent_that_runs_without_its_session_is_waited_for() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    taken(
        &world,
        &session.owner,
        &boot_id(),
        Phase::Running { harness: own() },
    );

    world.work().await;

    assert_eq!(world.session().await.map(|open| open.id), Some(session.id));
    waits_because(&world, delivery, "agent-outlives-session", &own_process()).await;
}

fn own_process() -> String {
    format!("process {}", own())
}

/// Asserts why a delivery is held, and what the event log says of it.
async fn waits_because(world: &World, delivery: DeliveryId, reason: &str, detail: &str) {
    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.state, DeliveryState::Held);
    assert_eq!(row.reason.as_deref(), Some(reason));
    let held = world.records(&["dispatch.held"]);
    let why = held[0].text("detail").unwrap();
    assert!(why.contains(detail), "{why}");
}

#[tokio::test]
async fn a_spawn_that_cannot_be_looked_up_waits_under_the_reason_for_it() {
    let after = Duration::from_secs(2);
    let silent = Err(Unanswered::TimedOut { after });
    let somebody_elses = one_pane("/nowhere/socket", &OwnerId::mint());
    for (answer, reason, detail) in [
        (silent, "tmux-silent", "did not answer within".to_owned()),
        (somebody_elses, "start-unresolved", own_process()),
    ] {
        let world = World::new().await;
        let delivery = world.comment(ITEM, 1).await;
        let claim = world.claim_and_die().await;
        let session = world.begin_spawn(&claim).await;
        let running = Phase::Running { harness: own() };
        taken(&world, &session.owner, &boot_id(), running);
        world.tmux(move |_| answer.clone());

        world.work().await;

        waits_because(&world, delivery, reason, &detail).await;
    }
}

#[tokio::test]
async fn a_spawn_is_looked_for_on_the_server_that_its_ticket_names() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    let running = Phase::Running { harness: own() };
    taken(&world, &session.owner, &boot_id(), running);
    let then = TmuxSocket::Path("/then/socket".into());
    take_ticket(&world, &session, &then);
    world.configure(&json!({ "routing.tmux.resumeProbeSeconds": 0.01 }));
    let shown = session.clone();
    world.tmux(move |call| {
        if call.socket == then {
            one_pane("/then/socket", &shown.owner)
        } else {
            no_server(call)
        }
    });

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    let registered = world.session().await.unwrap().target.unwrap();
    assert_eq!(
        registered.socket,
        TmuxSocket::Path("/then/socket".into()),
        "where it was started, whatever is configured now"
    );
}

#[tokio::test]
async fn a_login_that_was_removed_in_the_middle_of_its_spawn_leaves_no_spawn_behind() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    world.begin_spawn(&claim).await;
    world.configure(&json!({ "routing.authorizedUsers": ["grace"] }));

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Dropped);
    assert_eq!(world.session().await, None);
}

#[tokio::test]
async fn a_spawn_that_never_ran_is_not_made_again_for_a_closed_item() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    world.begin_spawn(&claim).await;
    let closed = ItemSighting {
        open: false,
        updated_at: start() + TimeDelta::seconds(1),
        ..sighting(ITEM)
    };
    world
        .accept(Acceptance {
            items: vec![closed],
            ..Acceptance::default()
        })
        .await;

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Dropped);
    assert_eq!(world.session().await, None);
}

#[tokio::test]
async fn a_message_whose_agent_ended_before_it_was_confirmed_is_said_again_and_marked() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let deduper = world.store.deduper();
    deduper.begin_attempt(&claim).await.unwrap();
    let intent = crate::store::Intent {
        owner: session.owner.clone(),
        expires_at: start(),
    };
    deduper.store_intent(&claim, &intent).await.unwrap();
    let shown = session.clone();
    world.tmux(move |call| match &call.commands[..] {
        [TmuxCommand::DisplayMessage { .. }] => token(&shown, "1"),
        _ => no_server(call),
    });

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    let prompt = newest_prompt(&world, &session.owner);
    assert!(prompt.contains("This may be a repeat"), "{prompt}");
}

/// Returns the prompt of a ticket that is not this spawn's.
pub(super) fn newest_prompt(world: &World, not: &OwnerId) -> String {
    let run = world.folder.path().join("run");
    let mut prompts: Vec<String> = fs::read_dir(run)
        .unwrap()
        .flatten()
        .filter(|folder| folder.file_name() != not.as_str())
        .filter_map(|folder| fs::read_to_string(folder.path().join("prompt")).ok())
        .collect();
    prompts.pop().expect("another spawn was tried")
}
