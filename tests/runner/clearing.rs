//! Freeing names.

use the_loop::model::{HostPaths, Phase};
use the_loop::runner::{Cleared, FenceLost, Probe, Remains, RunnerError, SpawnOutcome};

use crate::rig::{Rig, address, closed, open, respawning, spawned};

#[tokio::test]
async fn an_ended_session_is_cleared_and_the_clear_verified() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;

    assert_eq!(rig.runner.clear(&it, &open).await, Ok(Cleared::Free));

    assert_eq!(rig.runner.probe(&it).await, Probe::Dead(Remains::NameFree));
    assert_eq!(rig.runner.clear(&it, &open).await, Ok(Cleared::Free));
}

#[tokio::test]
async fn a_live_session_is_not_cleared() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;

    assert_eq!(
        rig.runner.clear(&it, &open).await,
        Ok(Cleared::LiveOccupant)
    );
    assert_eq!(
        rig.runner.clear(&address(1), &open).await,
        Ok(Cleared::LiveOccupant)
    );
    assert!(crate::rig::runs(&it));
}

#[tokio::test]
async fn clearing_item_1_leaves_item_15_alone() {
    let rig = Rig::new();
    let one = rig.start_and_end(1).await;
    let fifteen = rig.start_and_end(15).await;

    rig.runner.clear(&one, &open).await.unwrap();

    assert_eq!(rig.tmux.sessions(), [fifteen.name.as_str()]);
}

#[tokio::test]
async fn a_persons_pane_beside_an_ended_agent_is_renamed_aside() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;
    rig.persons_pane(&format!("={}:", it.name));
    assert_eq!(rig.runner.probe(&it).await, Probe::Dead(Remains::Retained));
    let mut plan = rig.plan(1, "exec sleep 600");
    plan.address = it.clone();

    let renamed = std::sync::Mutex::new(Vec::new());
    let hear = |to: &str| renamed.lock().unwrap().push(to.to_owned());
    spawned(rig.runner.spawn(&plan, &open, &hear).await.unwrap());

    assert_eq!(
        renamed.into_inner().unwrap(),
        [format!("{}+kept1", it.name)]
    );
    let mut sessions = rig.tmux.sessions();
    sessions.sort();
    assert_eq!(
        sessions,
        [it.name.to_string(), format!("{}+kept1", it.name)]
    );
    rig.tmux.wait_for("the person's program", |tmux| {
        let commands = tmux.ok(&["list-panes", "-a", "-F", "#{pane_current_command}"]);
        commands.lines().any(|line| line == "sleep")
    });
}

#[tokio::test]
async fn a_person_who_stays_after_the_agents_pane_is_gone_is_renamed_aside() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;
    let session = format!("={}:", it.name);
    rig.persons_pane(&session);
    let pane = it.target.as_ref().unwrap().pane.to_string();
    rig.tmux.ok(&["kill-pane", "-t", &pane]);

    let cleared = rig.runner.clear(&it, &open).await;

    assert_eq!(cleared, Ok(Cleared::SetAside(format!("{}+kept1", it.name))));
    // Without the record it is a stranger's, and stays where it is.
    rig.persons_session(address(2).name.as_str());
    assert_eq!(
        rig.runner.clear(&address(2), &open).await,
        Ok(Cleared::LiveOccupant)
    );
}

#[tokio::test]
async fn an_end_that_only_the_record_knows_is_told_to_tmux_first() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;
    let pane = it.target.as_ref().unwrap().pane.to_string();
    rig.tmux
        .ok(&["set-option", "-p", "-u", "-t", &pane, "@loop_exit"]);

    assert_eq!(rig.runner.probe(&it).await, Probe::Dead(Remains::Retained));
    assert_eq!(rig.runner.clear(&it, &open).await, Ok(Cleared::Free));
}

#[tokio::test]
async fn an_end_that_only_tmux_knows_is_enough() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;
    let paths: HostPaths = rig.paths(it.owner.as_ref().unwrap());
    let mut record = the_loop::process::ticket::record(&paths).unwrap().unwrap();
    let harness = record.phase.harness().unwrap();
    record.phase = Phase::Running { harness };
    std::fs::write(paths.record(), serde_json::to_vec(&record).unwrap()).unwrap();

    assert_eq!(rig.runner.clear(&it, &open).await, Ok(Cleared::Free));
}

#[tokio::test]
async fn work_that_was_taken_over_clears_nothing() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;

    let error = rig.runner.clear(&it, &closed).await.unwrap_err();

    assert_eq!(error, RunnerError::FenceLost(FenceLost::Taken));
    assert_eq!(rig.session_count(), 1);
}

#[tokio::test]
async fn an_agent_that_came_alive_between_look_and_kill_is_refused_by_tmux_itself() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;
    let fence = respawning(&rig, &it);

    let cleared = rig.runner.clear(&it, &fence).await;

    // The person's program runs on; the record proves that it is not the agent.
    assert!(
        matches!(cleared, Ok(Cleared::Unclearable(_))),
        "{cleared:?}"
    );
    assert_eq!(rig.session_count(), 1);
    let plan = rig.plan(1, "exec sleep 600");
    let outcome = rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap();
    assert_eq!(outcome, SpawnOutcome::LiveOccupant);
}
