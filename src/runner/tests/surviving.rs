use super::*;
use crate::clock::ManualClock;
use chrono::DateTime;

const WINDOW: Duration = Duration::from_secs(10);

fn pane() -> SpawnedPane {
    SpawnedPane {
        socket: "/tmp/tmux/s".into(),
        server: process(SERVER),
        session_id: "$1".parse().unwrap(),
        pane: "%2".parse().unwrap(),
        host: Some(process(HOST)),
    }
}

async fn survives(table: Table) -> Survival {
    let clock = ManualClock::starting_at(DateTime::UNIX_EPOCH);
    let runner = runner([said("")], table);
    runner.survives(&owner(), &pane(), WINDOW, &clock).await
}

fn ended_at(at_ms: i64) -> Phase {
    Phase::Ended {
        harness: Some(process(HARNESS)),
        ending: Ending::Code(1),
        at_ms,
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_starts_nothing_is_waited_for_and_not_for_ever() {
    let table = Table::default().with(HOST, Life::Running);

    let survival = survives(table.recording([Phase::Starting])).await;

    let host = process(HOST);
    let why = format!("its host (process {host}) did not start it in time");
    assert_eq!(survival, Survival::Unknown(why));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_recorded_a_moment_later_is_waited_for() {
    let ends = |phases: Vec<Phase>| {
        let table = Table {
            ends_after: Some(Duration::ZERO),
            ..Table::default()
        };
        survives(table.recording(phases))
    };

    let ended = ends(vec![running(), running(), running(), ended()]).await;
    assert!(matches!(ended, Survival::EndedClean(_)), "{ended:?}");

    let silent = ends(vec![running()]).await;
    let why = "it ended, and its host recorded no end".to_owned();
    assert_eq!(silent, Survival::Unknown(why));
}

#[tokio::test]
async fn an_end_behind_the_window_is_no_failed_start() {
    let survived = survives(Table::default().recording([ended_at(10_000)])).await;
    assert!(matches!(survived, Survival::Survived(_)), "{survived:?}");

    let failed = survives(Table::default().recording([ended_at(9_999)])).await;
    assert!(matches!(failed, Survival::Failed { .. }), "{failed:?}");
}
