//! `events --explain`: why something happened, or did not.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::world::{World, short};
use crate::support::Scratch;

/// The key of the newest record of a type whose text field has this value, without host and version.
fn object(world: &World<'_>, event: &str, field: &str, value: &str) -> String {
    let records = world.events(event);
    let found = records.iter().rev().find(|one| one[field] == json!(value));
    let key = found.expect("a record")["key"].as_str().unwrap();
    let (object, _) = key.rsplit_once('@').unwrap();
    // The host may have a port.
    let at = object.find("issue_comment:").unwrap();
    object[at..].to_owned()
}

fn explain(world: &World<'_>, what: &str) -> String {
    world.run(&["events", "--explain", what]).ok()
}

/// Checks that the parts stand in the text in this order.
fn told_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else {
            panic!("{part:?} is not told (in this place):\n{text}");
        };
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn a_delivered_comment_and_one_that_was_not_are_explained() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Watched");
    world.comment(number, "hello there");
    world
        .github
        .comment("demo/app", number, "mallory", "psst")
        .unwrap();
    world.run(&["poll", "--once"]).ok();
    world.wait_heard("hello there");

    let delivered = object(&world, "dispatch.succeeded", "kind", "issue_comment");
    told_in_order(
        &explain(&world, &delivered),
        &[
            "comment on ",
            "demo/app#1, by @ada",
            "seen by poll and stored",
            "typed into loop-github-",
            "Result: delivered",
        ],
    );
    let refused = object(&world, "routing.dropped", "actor", "mallory");
    told_in_order(
        &explain(&world, &refused),
        &[
            "comment on ",
            "demo/app#1, by @mallory",
            "decided against: not in routing.authorizedUsers",
            "Result: not delivered",
            "To do:  Add the login",
        ],
    );
    world.run(&["sessions", "pause", &short(number)]).ok();
    world.comment(number, "while paused");
    world.run(&["poll", "--once"]).ok();
    let dropped = object(&world, "dispatch.dropped", "reason", "session-paused");
    told_in_order(
        &explain(&world, &dropped),
        &[
            "decided against: session is paused",
            "Result: not delivered: session is paused",
            "To do:  Resume",
        ],
    );

    let item = explain(&world, &short(number));
    told_in_order(
        &item,
        &[
            "demo/app#1\n",
            "agent started in loop-",
            "by @mallory: seen by poll, and decided against",
            "Session: loop-",
            "is paused",
            "To do:  Comment `the-loop resume`",
        ],
    );
    assert!(!item.contains("stored already"), "{item}");
    // The story names a comment by its number, a browser by its address.
    let (_, id) = delivered.rsplit_once(':').unwrap();
    let page = format!("https://github.com/demo/app/issues/{number}#issuecomment-{id}");
    for named in [id, page.as_str()] {
        told_in_order(&explain(&world, named), &["by @ada", "Result: delivered"]);
    }
    let short_story = world
        .run(&["events", "--explain", &short(number), "--limit", "2"])
        .ok();
    told_in_order(&short_story, &["earlier steps; --limit 0 tells all"]);
    let json: Value = world.json(&["events", "--explain", &dropped, "--json"]);
    assert_eq!(json["deliveries"][0]["reason"], json!("session-paused"));
    assert_eq!(json["steps"][0]["event"], json!("inbox.accepted"));

    // The log was rotated away: the store still knows.
    std::fs::remove_file(scratch.state_root().join("logs/events.jsonl")).unwrap();
    told_in_order(&explain(&world, &delivered), &["Result: delivered"]);
    told_in_order(&explain(&world, &short(number)), &["Session: loop-"]);
}

#[test]
fn a_start_that_was_given_up_is_explained_with_its_remedy() {
    let scratch = Scratch::new();
    let world = World::with(&scratch, |program| {
        program
            .set(
                "harnesses",
                json!({ "agent": { "command": "false", "sessionArgs": [] } }),
            )
            .set("polling.maxRetries", json!(1))
    });
    let number = world.issue("Broken");
    world.run(&["poll", "--once"]).ok();
    told_in_order(
        &explain(&world, &short(number)),
        &[
            "no agent is started yet",
            "Session: there is none",
            "To do:  Comment `the-loop start`",
        ],
    );
    world.comment(number, "the-loop start");
    assert_eq!(world.run(&["poll", "--once"]).code(), 1);

    let start = world.events("poll.spawn_failed");
    let delivery = start[0]["delivery"].to_string();

    told_in_order(
        &explain(&world, &delivery),
        &[
            "comment on ",
            "demo/app#1, by @ada",
            "the agent ended at once",
            "given up after 1 attempt",
            "Result: given up after 1 attempt; the last error: ",
            "To do:  Start it by hand in the same directory",
        ],
    );
}

#[test]
fn what_was_given_up_asks_for_no_start_once_there_is_one() {
    let scratch = Scratch::new();
    let agent = scratch.path("late-agent");
    let world = World::with(&scratch, |program| {
        program
            .set(
                "harnesses",
                json!({ "agent": { "command": agent, "sessionArgs": [] } }),
            )
            .set("polling.maxRetries", json!(1))
    });
    let number = world.issue("Late");
    world.comment(number, "the-loop start");
    assert_eq!(world.run(&["poll", "--once"]).code(), 1);
    let given_up = world.events("poll.spawn_failed")[0]["delivery"].to_string();
    told_in_order(&explain(&world, &given_up), &["To do:  Put right"]);

    std::fs::write(&agent, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.run(&["sessions", "start", &short(number)]).ok();
    told_in_order(
        &explain(&world, &given_up),
        &["Result: given up", "To do:  A session was started since"],
    );
}

#[test]
fn what_nobody_knows_is_said_to_be_unknown() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);

    let ended = world.run(&["events", "--explain", "issue_comment:404"]);

    assert_eq!(ended.code(), 1);
    assert!(
        ended
            .stderr
            .contains("nothing is known of issue_comment:404"),
        "{}",
        ended.stderr
    );
    let both = world.run(&["events", "--explain", "1", "--follow"]);
    assert_eq!(both.code(), 2);
}
