//! What a defect of this program may do: cost attempts, and never the daemon.

use super::*;

/// What the event log says of a delivery that keeps breaking down, as (type, is tried again).
const BROKEN: [&str; 3] = ["dispatch.error", "dispatch.failed", "poll.comment_failed"];

fn breaks_down(_: &Invocation) -> Result<Answer, Unanswered> {
    panic!("a defect")
}

fn silent() -> Unanswered {
    Unanswered::Silent {
        next: Duration::from_secs(1),
    }
}

fn retried(record: &Record) -> bool {
    record.fields.get("will_retry") == Some(&json!(true))
}

#[tokio::test]
async fn work_that_breaks_down_is_said_retried_and_given_up_on_its_budget() {
    let world = World::new().await;
    world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    world.tmux(breaks_down);

    for attempt in 1..=2 {
        world.work().await;
        assert_eq!(world.state(delivery).await, DeliveryState::Pending);
        assert_eq!(world.attempts(delivery).await, attempt);
        world.pass(60);
    }
    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Abandoned);
    assert_eq!(world.attempts(delivery).await, 2);
    let said = world.records(&BROKEN);
    let names: Vec<_> = said.iter().map(|record| record.event.as_str()).collect();
    assert_eq!(names[..3], ["dispatch.error"; 3]);
    assert_eq!(names[3..], ["poll.comment_failed"]);
    assert_eq!(
        said[..3].iter().map(retried).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert!(
        said.iter()
            .all(|record| record.text("error").unwrap().contains("a defect"))
    );
}

#[tokio::test]
async fn work_that_broke_down_once_is_taken_up_again_and_stops_no_other() {
    let world = World::new().await;
    world.know("github:o/r#2").await;
    let broken = world.comment(ITEM, 1).await;
    let other = world.comment("github:o/r#2", 2).await;
    world.tmux({
        let mut calls = 0;
        move |call| {
            calls += 1;
            if calls == 1 {
                breaks_down(call)
            } else {
                no_server(call)
            }
        }
    });

    world.work().await;

    assert_eq!(world.records(&["dispatch.error"]).len(), 1);
    assert_eq!(world.attempts(other).await, 1);
    world.pass(60);
    world.work().await;
    assert_eq!(world.attempts(broken).await, 2);
    assert_eq!(world.records(&["dispatch.error"]).len(), 1);
}

#[tokio::test]
async fn a_spawn_that_breaks_down_is_given_up_without_a_session_in_the_way() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    world.tmux(breaks_down);
    for _ in 0..3 {
        world.work().await;
        world.pass(60);
    }

    assert_eq!(world.state(delivery).await, DeliveryState::Abandoned);
    assert!(world.session().await.is_none());
    assert_eq!(world.records(&["dispatch.error"]).len(), 2, "two attempts");
    assert_eq!(world.attempts(delivery).await, 2);
    assert_eq!(world.records(&["poll.spawn_failed"]).len(), 1);
}

#[tokio::test]
async fn nothing_is_settled_or_given_back_before_its_line_is_in_the_event_log() {
    for (line, state) in [
        ("dispatch.dropped", DeliveryState::Dropped),
        ("dispatch.held", DeliveryState::Held),
        ("poll.comment_failed", DeliveryState::Abandoned),
    ] {
        let world = World::new().await;
        match state {
            DeliveryState::Dropped => world.configure(&json!({ "routing.authorizedUsers": [] })),
            DeliveryState::Held => world.tmux(|_| Err(silent())),
            _ => world.configure(&json!({
                "polling.maxRetries": 1,
                "harnesses": { "agent": { "command": "/nowhere/agent" } },
            })),
        }
        world.active_session(Agent::Runs).await;
        let delivery = world.comment(ITEM, 1).await;
        world.break_at(line);

        world.work().await;
        assert_eq!(
            world.state(delivery).await,
            DeliveryState::Pending,
            "{line}"
        );
        world.pass(60);
        world.work().await;

        assert_eq!(world.state(delivery).await, state);
        assert_eq!(world.records(&[line]).len(), 2, "{line}");
    }
}

#[tokio::test]
async fn what_goes_wrong_names_the_session_that_it_is_about() {
    for line in ["dispatch.held", "dispatch.dropped", "dispatch.failed"] {
        let world = World::new().await;
        let session = world.active_session(Agent::Runs).await;
        world.comment(ITEM, 1).await;
        match line {
            "dispatch.dropped" => world.configure(&json!({ "routing.authorizedUsers": [] })),
            "dispatch.failed" => world
                .configure(&json!({ "harnesses": { "agent": { "command": "/nowhere/agent" } } })),
            // The server has no session any more, and the agent still runs.
            _ => world.tmux(|call| match is_paste(call) {
                true => no_server(call),
                false => said(format!("loop-server|{}||/nowhere/socket\n", own().pid)),
            }),
        }

        world.work().await;

        let records = world.records(&[line]);
        let [record] = &records[..] else {
            panic!("{line}: {records:?}");
        };
        let name = session.minted_ref.session_name().unwrap();
        assert_eq!(record.text("tmux_target"), Some(name.as_str()), "{line}");
        if line == "dispatch.held" {
            let which = format!("process {}", own());
            assert!(
                record.text("detail").unwrap().contains(&which),
                "{record:?}"
            );
        } else {
            assert_eq!(record.text("harness"), Some("agent"), "{line}");
        }
    }
}
