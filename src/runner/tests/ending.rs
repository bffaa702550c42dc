use super::*;
use crate::runner::end::RECORDING;
use tokio::time::Instant;

const GRACE: Duration = Duration::from_secs(5);

async fn end(address: &Address, table: Table) -> (EndOutcome, Duration) {
    let runner = runner([], table);
    let began = Instant::now();
    let outcome = runner.end(address, GRACE, &open).await.unwrap();
    (outcome, began.elapsed())
}

fn alive() -> Table {
    Table::default()
        .with(HOST, Life::Running)
        .with(HARNESS, Life::Running)
}

#[tokio::test(start_paused = true)]
async fn an_end_counts_as_soon_as_it_is_recorded() {
    for began_as in [running(), Phase::Starting] {
        let table = Table {
            ends_after: Some(GRACE),
            ..alive().recording([began_as, ended()])
        };

        let (outcome, took) = end(&address(), table).await;

        assert_eq!(outcome, EndOutcome::Ended);
        assert!(took <= GRACE, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_host_records_no_end_has_ended() {
    let table = Table {
        ends_after: Some(GRACE + RECORDING - Duration::from_millis(1)),
        ..alive().recording([running()])
    };

    let (outcome, took) = end(&address(), table).await;

    assert_eq!(outcome, EndOutcome::Ended);
    // Its host is given a moment more than it needed to end.
    let moment = LIMITS.record - Duration::from_millis(1);
    assert!(took >= GRACE + RECORDING + moment, "{took:?}");
    assert!(took <= GRACE + RECORDING + LIMITS.record * 2, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_given_its_grace_to_end() {
    let harness = EndOutcome::StillRunning(process(HARNESS));
    let host = EndOutcome::StillRunning(process(HOST));
    for (phase, expected) in [(running(), harness), (Phase::Starting, host)] {
        let (outcome, took) = end(&address(), alive().recording([phase])).await;

        assert_eq!(outcome, expected);
        assert!(took >= GRACE + RECORDING, "{took:?}");
        assert!(took < (GRACE + RECORDING) * 2, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_outlives_its_host_still_runs() {
    let still = EndOutcome::StillRunning(process(HARNESS));
    let cases = [
        (Life::Running, still.clone()),
        (Life::Unknown, still),
        (Life::Gone, EndOutcome::Ended),
    ];
    for (life, expected) in cases {
        let table = Table::default().with(HARNESS, life).recording([running()]);
        assert_eq!(end(&address(), table).await.0, expected, "{life:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_record_is_ended_by_nobody() {
    let alive = || Table::default().with(HARNESS, Life::Running);
    let still = EndOutcome::StillRunning(process(HARNESS));
    assert_eq!(end(&address(), alive()).await.0, still);
    assert_eq!(end(&address(), Table::default()).await.0, EndOutcome::Ended);
    let adopted_one = Table::default().with(HOST, Life::Running);
    assert_eq!(end(&adopted(), adopted_one).await.0, EndOutcome::NotOurs);
}
