//! `sessions list` and `show`, `status`, `events`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::world::{World, short, spoil, stop};
use crate::support::{SOON, Scratch, wait_until};

#[test]
fn who_only_looks_makes_nothing_and_is_told_that_there_is_nothing_yet() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let made = || scratch.state_root().read_dir().unwrap().count();
    for (args, code, told) in [
        (&["sessions", "list"][..], 0, "no sessions"),
        (
            &["sessions", "show", "demo/app#7"],
            1,
            "no session is recorded",
        ),
        (
            &["sessions", "attach", "demo/app#7"],
            1,
            "no session is recorded",
        ),
        (
            &["sessions", "reset", "--all", "--dry-run"],
            1,
            "nothing is recorded",
        ),
        (&["events"], 0, "no matching events"),
        (&["status"], 0, "nothing seen yet"),
        (&["poll", "status"], 1, "not running"),
        (&["poll", "stop"], 1, "no poller runs"),
        (&["config", "show"], 0, "state.root"),
    ] {
        let ended = world.run(args);
        assert_eq!(ended.code(), code, "{args:?}: {ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(told), "{args:?}: {said}");
        assert_eq!(made(), 0, "{args:?}");
    }
    assert_eq!(world.json(&["sessions", "list", "--json"]), json!([]));
    assert_eq!(
        world.json(&["status", "--json"])["inbox"]["pending"],
        json!(0)
    );
    assert_eq!(made(), 0);
}

#[test]
fn sessions_are_listed_and_shown_as_table_and_as_json() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let empty = world.run(&["sessions", "list"]);
    assert_eq!((empty.code(), empty.stdout.as_str()), (0, ""));
    assert!(empty.stderr.contains("no sessions"), "{}", empty.stderr);
    assert_eq!(world.json(&["sessions", "list", "--json"]), json!([]));
    let number = world.started("Flaky login test");

    let table = world.run(&["sessions", "list"]).ok();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("WORK ITEM"), "{table}");
    for word in [
        &short(number),
        "Flaky login test",
        "agent",
        "running",
        &world.name(number),
    ] {
        assert!(lines[1].contains(word), "{word}: {table}");
    }
    let rows = world.json(&["sessions", "list", "--json"]);
    assert_eq!(rows[0]["state"], json!("running"));
    assert_eq!(rows[0]["tmux"], json!(world.name(number)));
    // The column's word is the filter's and that of JSON.
    let of_state = |word| world.json(&["sessions", "list", "--state", word, "--json"]);
    assert_eq!(of_state("running"), rows);
    assert_eq!(of_state("paused"), json!([]));
    // As scripts may know it.
    let as_before = ["sessions", "list", "--status", "active", "--json"];
    assert_eq!(world.json(&as_before), rows);
    assert_eq!(rows[0]["status"], json!(null));

    // However a person writes the work item.
    let url = format!("https://github.com/Demo/App/issues/{number}");
    for spelling in [&short(number), &format!("github:demo/app#{number}"), &url] {
        let shown = world.json(&["sessions", "show", spelling, "--json"]);
        assert_eq!(shown["tmux"], json!(world.name(number)), "{spelling}");
    }
    let shown = world.run(&["sessions", "show", &short(number)]).ok();
    assert!(shown.contains("conversation"), "{shown}");
    assert!(shown.contains("the-loop sessions attach"), "{shown}");
}

#[test]
fn a_session_that_cannot_be_read_is_named_and_hides_no_other() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let (good, bad) = (world.started("Good"), world.started("Bad"));
    spoil(&scratch, &world.session(bad));

    let listed = world.run(&["sessions", "list"]);
    assert_eq!(listed.code(), 1);
    assert!(listed.stdout.contains(&short(good)), "{}", listed.stdout);
    let warned = listed.stderr;
    assert!(warned.contains(&short(bad)), "{warned}");
    assert!(warned.contains("a newer the-loop"), "{warned}");

    let status = world.run(&["status"]).ok();
    assert!(status.contains("1 running"), "{status}");
    let named = format!("{} cannot be read", short(bad));
    assert!(status.contains(&named), "{status}");
}

#[test]
fn a_paused_session_whose_agent_ended_is_said_to_wait_for_its_resume() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let item = short(world.started("Paused"));
    world.run(&["sessions", "pause", &item]).ok();
    let none = world.run(&["sessions", "list", "--state", "running"]);
    assert!(none.stderr.contains("no session in this state"), "{none:?}");
    scratch.kill("demo-agent");
    let told = format!("{item}: paused, and its agent has ended → the-loop sessions resume ");
    wait_until("the advice", SOON, || {
        world.run(&["status"]).ok().contains(&told)
    });
}

#[test]
fn exit_codes_tell_a_no_from_a_wrong_question() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    for (code, args) in [
        (1, vec!["sessions", "show", "demo/app#9"]),
        (1, vec!["sessions", "attach", "demo/app#9"]),
        (1, vec!["sessions", "pause", "demo/app#9"]),
        (1, vec!["sessions", "stop", "demo/app#9"]),
        (1, vec!["sessions", "resume", "demo/app#9"]),
        (1, vec!["sessions", "close", "demo/app#9"]),
        (1, vec!["sessions", "reset", "demo/app#9"]),
        (1, vec!["sessions", "reset", "--all"]),
        (2, vec!["sessions", "show", "not a ref"]),
        (2, vec!["sessions", "list", "--state", "asleep"]),
        (
            2,
            vec![
                "sessions",
                "close",
                "demo/app#9",
                "--keep-tmux",
                "--kill-tmux",
            ],
        ),
        (2, vec!["sessions", "reset"]),
        (2, vec!["events", "--source", "nowhere"]),
        (2, vec!["events", "--since", "whenever"]),
        (2, vec!["events", "--level", "loud"]),
    ] {
        let ended = world.run(&args);
        assert_eq!(ended.code(), code, "{args:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{args:?}");
        assert!(
            ended.stderr.starts_with("error:"),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
    }
}

#[test]
fn events_are_filtered_followed_and_catalogued() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Watched");
    world
        .github
        .comment("demo/app", number, "mallory", "psst")
        .unwrap();
    world.run(&["poll", "--once"]).ok();

    let spawned = world.events("session.*");
    assert_eq!(spawned.len(), 1, "{spawned:?}");
    assert_eq!(spawned[0]["event"], json!("session.spawned"));
    assert_eq!(spawned[0]["source"], json!("cli"));
    let of = |args: &[&str]| {
        let mut all = vec!["events", "--json", "--limit", "0"];
        all.extend(args);
        let text = world.run(&all).ok();
        let records: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        records
    };
    let of_item = of(&["--work-item", &short(number), "--source", "poll"]);
    assert!(
        of_item
            .iter()
            .any(|one| one["reason"] == json!("unauthorized-actor"))
    );
    assert!(of(&["--work-item", "demo/app#999"]).is_empty());
    assert!(of(&["--level", "error"]).is_empty());
    assert!(of(&["--since", "2999-01-01T00:00:00Z"]).is_empty());
    assert!(!of(&["--since", "10m"]).is_empty());
    let delivery = spawned[0]["delivery"].to_string();
    assert!(!of(&["--delivery", &delivery]).is_empty());

    let types = world.run(&["events", "--types"]).ok();
    for kind in [
        "session.respawn_averted",
        "dispatch.dropped",
        "session.resume_failed",
    ] {
        assert!(types.contains(kind), "{types}");
    }

    let catalogue = world.json(&["events", "--types", "--json"]);
    let known = catalogue.as_array().unwrap().iter();
    let known: Vec<_> = known.map(|kind| &kind["name"]).collect();
    assert!(known.contains(&&json!("dispatch.dropped")), "{known:?}");
    let filtered = world.run(&["events", "--types", "--level", "error"]);
    assert_eq!(filtered.code(), 2, "{filtered:?}");

    let following = world
        .the_loop
        .start(&["events", "--follow", "--limit", "1"]);
    wait_until("the tail", SOON, || !following.stdout().is_empty());
    world.run(&["sessions", "pause", &short(number)]).ok();
    wait_until("the pause is followed", SOON, || {
        following.stdout().contains("pause")
    });
    following.signal(rustix::process::Signal::INT);
    assert_eq!(following.wait(SOON).code(), 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    world.the_loop.config_file();
    let shell = "\"$0\" events --types | head -n 1; \"$0\" sessions list --json | head -c 1; \
                 \"$0\" events --types | :";
    let output = scratch
        .command("sh")
        .env("THE_LOOP_CLI_CONFIG", scratch.path("cli-config.yaml"))
        .args(["-c", shell, env!("CARGO_BIN_EXE_the-loop")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_follower_ends_with_its_reader_and_a_poller_goes_on() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Watched for one line");
    let read_one = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        let running = world.the_loop.start_into(args, writer, Stdio::null());
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).unwrap();
        (running, line)
    };

    for format in [&[][..], &["--json"]] {
        let (following, line) = read_one(&[&["events", "--follow"][..], format].concat());
        assert_ne!(line, "");
        assert_eq!(following.wait(SOON).code(), 0, "{format:?}");
    }

    let (daemon, _) = read_one(&["-v", "poll", "start"]);
    for text in ["after its reader", "went away"] {
        world.comment(number, text);
        world.wait_heard(text);
    }
    assert_eq!(stop(daemon).code(), 0);
}

#[test]
fn status_shows_what_was_given_up_and_why() {
    let scratch = Scratch::new();
    let world = World::with(&scratch, |the_loop| {
        the_loop
            .set("polling.maxRetries", json!(1))
            .set("harnesses.agent.command", json!("no-such-agent"))
    });
    let number = world.issue("Hopeless");
    world.run(&["poll", "--once"]).ok();
    let start = world.run(&["sessions", "start", &short(number)]);
    assert_eq!(start.code(), 1);
    assert!(start.stderr.contains("no-such-agent"), "{}", start.stderr);

    let table = world.run(&["status"]).ok();
    assert!(table.contains("not running"), "{table}");
    assert!(table.contains("1 abandoned"), "{table}");
    let attention = table
        .lines()
        .find(|line| line.starts_with("attention"))
        .unwrap();
    assert!(attention.contains(&short(number)), "{attention}");
    assert!(attention.contains("no-such-agent"), "{attention}");
    assert!(attention.contains("events --explain"), "{attention}");
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["pollerRunning"], json!(false));
    assert_eq!(status["inbox"]["abandoned"], json!(1));
    assert!(
        status["abandoned"][0]["error"]
            .as_str()
            .unwrap()
            .contains("no-such-agent")
    );
}

/// On a terminal too, `NO_COLOR` means none.
#[test]
fn no_colour_is_used_where_it_is_not_wanted() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    world.the_loop.config_file();
    let binary = env!("CARGO_BIN_EXE_the-loop");
    let shown = |session: &str, variable: &str| {
        let config = format!(
            "THE_LOOP_CLI_CONFIG={}",
            scratch.path("cli-config.yaml").display()
        );
        let out = scratch.path(session);
        let pipe = format!("cat > {}", out.display());
        scratch.tmux(&["new-session", "-d", "-s", session, "sleep 1000"]);
        scratch.tmux(&["pipe-pane", "-t", session, &pipe]);
        let line = format!(
            "env {config} {variable} {binary} sessions show demo/app#9; echo ended; exec sleep 1000"
        );
        scratch.tmux(&["respawn-pane", "-k", "-t", session, &line]);
        let read = || std::fs::read_to_string(&out).unwrap_or_default();
        wait_until("its end", SOON, || read().contains("ended"));
        read()
    };
    let plain = shown("plain", "NO_COLOR=1");
    assert!(plain.contains("error: no session"), "{plain:?}");
    assert!(!plain.contains("\u{1b}[31m"), "{plain:?}");
    let coloured = shown("coloured", "A=1");
    assert!(coloured.contains("\u{1b}[31m"), "{coloured:?}");
}
