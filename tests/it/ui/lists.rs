//! `sessions list`, `sessions show`, `status`, `events`, and errors with a remedy.

use serde_json::{Value, json};

use super::World;

/// A world in which one item with a long, wide title has a session.
fn world_with_a_session() -> World {
    let world = World::new();
    let title = "ログイン画面のテストがときどき失敗する: flaky login test on Mondays and Tuesdays";
    let issue = world.start_item(title);
    let the_loop = world.the_loop();
    the_loop.run(&["poll", "--once"]).ok();
    world.say(issue, "ada", "please also update the docs");
    the_loop.run(&["poll", "--once"]).ok();
    world
}

#[test]
fn tables_fit_eighty_columns_and_keep_ids_whole() {
    let world = world_with_a_session();
    let the_loop = world.the_loop();

    world.terminal(&the_loop, (80, 24), "\"$loop\" sessions list");
    let screen = world.shown("[exit 0]");

    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[0].starts_with("WORK ITEM   TITLE "), "{screen}");
    assert!(lines[1].starts_with("demo/app#1  ログイン"), "{screen}");
    assert!(lines[1].contains("… "), "{screen}");
    assert!(lines[1].ends_with("comment @ada"), "{screen}");
    assert_eq!(lines[3], "attach: the-loop sessions attach demo/app#1");

    let piped = the_loop.run(&["sessions", "list"]).ok();
    assert!(piped.contains("loop-github-demo--app-1"), "{piped}");
    assert_eq!(piped.lines().count(), 2, "{piped}");
}

#[test]
fn one_session_is_shown_with_its_screen_and_a_dead_one_with_its_end() {
    let world = world_with_a_session();
    let the_loop = world.the_loop();
    let shown = the_loop.run(&["sessions", "show", "demo/app#1"]).ok();
    assert!(shown.contains("state         running"), "{shown}");
    assert!(shown.contains("│ please also update the docs"), "{shown}");

    world.scratch.kill("demo-agent");
    let ended = crate::support::eventually("the recorded end", || {
        let shown = the_loop.run(&["sessions", "show", "demo/app#1"]).ok();
        shown.contains("ended         by signal 9").then_some(shown)
    });
    assert!(ended.contains("state         ended"), "{ended}");
    let status = the_loop.run(&["status"]).ok();
    assert!(
        status.contains("attention  demo/app#1: its agent has ended; the next event starts it again → the-loop sessions show demo/app#1"),
        "{status}"
    );
    let json: Value = serde_json::from_str(
        &the_loop
            .run(&["sessions", "show", "demo/app#1", "--json"])
            .ok(),
    )
    .unwrap();
    assert_eq!(json["ended"]["how"], json!({ "signal": 9 }));
    assert_eq!(json["workItem"], json!("github:demo/app#1"));
    assert_eq!(json["lastEvent"]["actor"], json!("ada"));
}

#[test]
fn status_says_how_every_part_stands() {
    let world = world_with_a_session();
    let told = world.the_loop().run(&["status"]).ok();

    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].starts_with("daemons    poll  not running, last cycle "),
        "{told}"
    );
    assert!(lines[1].starts_with("sources    demo/app  1 item  1 session  unchanged since "));
    assert_eq!(lines[2], "sessions   1 running");
    assert_eq!(lines[3], "inbox      0 pending · 0 held · 0 abandoned");
    assert!(lines[4].starts_with("github     "), "{told}");
    assert!(lines[4].contains(" of 5,000 requests left"), "{told}");
    assert_eq!(lines.len(), 5, "{told}");
}

#[test]
fn events_leave_out_what_only_helps_a_search_unless_they_are_asked() {
    let world = world_with_a_session();
    let the_loop = world.the_loop();

    let usual = the_loop.run(&["events"]).ok();
    assert!(usual.contains("delivered  comment by @ada"), "{usual}");
    assert!(!usual.contains("stored"), "{usual}");
    let all = the_loop.run(&["events", "--level", "debug"]).ok();
    assert!(all.contains("stored     comment by @ada"), "{all}");
}

#[test]
fn an_error_in_the_configuration_says_that_nothing_was_started_and_what_to_do() {
    let world = World::new();
    let the_loop = world
        .the_loop()
        .set("routing.authorisedUsers", json!(["ada"]));

    let ended = the_loop.run(&["poll", "start"]);

    assert_eq!(ended.code(), 2);
    assert!(ended.stderr.contains("did you mean"), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("nothing was started. `the-loop config check`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_mistyped_command_is_answered_with_the_one_that_was_meant() {
    let world = World::new();
    let ended = world.the_loop().run(&["sesions", "list"]);
    assert_eq!(ended.code(), 2);
    assert!(ended.stderr.contains("'sessions'"), "{}", ended.stderr);
}
