//! The life of `poll`: one at a time, once or for ever, in front or behind, to an orderly end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use the_loop::config::{Config, Environment};
use the_loop::daemon::{
    PollError, PollNews, PollObserver, PollOptions, Run, StandingNews, run_poll,
};
use the_loop::demo::github::Fault;

use super::rig::{LABEL, REPO};
use super::stage::{Hub, records, wait_for_records, wait_read};
use crate::support::{SOON, Scratch, eventually, wait_until};

#[test]
fn once_works_what_is_due_sums_up_and_exits_0() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    hub.started_issue();
    let said = program.run(&["poll", "--once"]).ok();
    assert!(said.contains("1 item,"), "{said}");
    assert!(said.contains("1 delivered"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(records(&scratch, "session.spawned").len(), 1);
    let idle = program.run(&["poll", "start", "--once"]).ok();
    assert!(idle.contains("0 delivered"), "{idle}");
}

#[test]
fn once_exits_1_when_something_failed_and_names_it() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    hub.github.fail(REPO, 1000, Fault::Status(404));
    let ended = program.run(&["poll", "--once"]);
    assert_eq!(ended.code(), 1);
    assert!(
        ended.stdout.contains("failed, will be tried again"),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("404"), "{ended:?}");
}

#[test]
fn once_asks_tmux_only_when_there_is_work_and_refuses_an_old_one() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let (old, asked) = (scratch.path("old-tmux"), scratch.path("asked"));
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>'{}'\necho tmux 3.1c\n",
        asked.display()
    );
    fs::write(&old, script).unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let program = hub.program(&scratch);
    let aged = hub.program(&scratch).set("routing.tmux.binary", json!(old));
    aged.run(&["poll", "--once"]).ok();
    assert!(!asked.exists());

    hub.started_issue();
    for run in [["poll", "--once"], ["poll", "start"]] {
        let refused = aged.run(&run);
        assert_eq!(refused.code(), 1, "{refused:?}");
        assert!(
            refused.stderr.contains("tmux 3.1 is too old"),
            "{refused:?}"
        );
    }
    assert_eq!(fs::read_to_string(&asked).unwrap(), "-V\n-V\n");

    let done = program.run(&["poll", "--once"]).ok();
    assert!(done.contains("1 delivered"), "{done}");
}

#[test]
fn once_exits_1_when_a_dispatch_failed() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch).set(
        "harnesses",
        json!({ "agent": { "command": "false", "sessionArgs": [] } }),
    );
    hub.started_issue();
    let ended = program.run(&["poll", "start", "--once", "--max-retries", "1"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.stdout.contains("0 delivered"), "{ended:?}");
    assert!(!records(&scratch, "poll.spawn_failed").is_empty());
}

#[test]
fn wrong_usage_and_a_wrong_configuration_exit_2() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    assert_eq!(program.run(&["poll", "--sometimes"]).code(), 2);
    assert_eq!(program.run(&["poll", "start", "--interval", "0"]).code(), 2);
    let empty = hub.program(&scratch).set("polling.sources", json!([]));
    assert_eq!(empty.run(&["poll", "--once"]).code(), 2);
    let wrong = hub
        .program(&scratch)
        .set("polling", json!({ "soruces": [] }));
    let ended = wrong.run(&["poll", "start", "--detach"]);
    assert_eq!(ended.code(), 2);
    assert!(ended.stderr.contains("soruces"), "{ended:?}");
    assert!(!scratch.state_root().join("poll.lock").exists());
}

#[test]
fn quiet_says_nothing() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    hub.started_issue();
    let ended = program.run(&["-q", "poll", "--once"]);
    assert_eq!(ended.code(), 0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    let running = program.start(&["-q", "poll", "start"]);
    wait_for_records(&scratch, "poller.started", 2);
    hub.comment(1, "hello");
    wait_read(&program, "hello");
    running.signal(Signal::TERM);
    let ended = running.wait(SOON);
    assert_eq!(ended.code(), 0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

/// A terminal that is stopped with Ctrl-S, or a `| less` that nobody scrolls.
#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_takes_nothing_holds_up_nothing() {
    use std::io::Write as _;

    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    hub.started_issue();
    let (_unread, mut full) = std::io::pipe().unwrap();
    // The size of a pipe on Linux, pipe(7): the next byte waits for a reader.
    full.write_all(&[b'\n'; 65_536]).unwrap();

    let running = program.start_into(&["-v", "poll", "start"], full.try_clone().unwrap(), full);
    wait_for_records(&scratch, "session.spawned", 1);
    hub.comment(1, "hello");
    wait_read(&program, "hello");
    let stopped = program.run(&["poll", "stop", "--timeout", "10"]);

    assert_eq!(stopped.code(), 0, "{stopped:?}");
    assert_eq!(running.wait(SOON).code(), 0);
}

#[test]
fn a_second_poller_is_told_who_runs_and_cron_has_nothing_to_do() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    let running = program.start(&["poll", "start"]);
    wait_for_records(&scratch, "poller.started", 1);
    let holder = scratch.processes("poll start")[0].pid.to_string();

    let second = program.run(&["poll", "start"]);
    assert_eq!(second.code(), 1);
    assert!(second.stderr.contains(&holder), "{second:?}");
    let cron = program.run(&["poll", "--once"]);
    assert_eq!(cron.code(), 0);
    assert_eq!(cron.stdout.lines().count(), 1, "{cron:?}");
    assert!(cron.stdout.contains(&holder), "{cron:?}");
    assert_eq!(cron.stderr, "");
    let detached = program.run(&["poll", "start", "--detach"]);
    assert_eq!(detached.code(), 1);
    assert!(detached.stderr.contains(&holder), "{detached:?}");

    let status = program.run(&["poll", "status"]);
    assert_eq!(status.code(), 0);
    assert!(status.stdout.contains(&holder), "{status:?}");
    drop(running);
}

#[test]
fn stop_ends_the_one_that_runs_and_says_so() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    let none = program.run(&["poll", "stop"]);
    assert_eq!(none.code(), 1);
    assert!(none.stderr.contains("no poller runs"), "{none:?}");
    let status = program.run(&["poll", "status"]);
    assert_eq!(status.code(), 1);
    assert!(status.stdout.contains("not running"), "{status:?}");

    let log = scratch.state_root().join("logs/poll.out");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, vec![b'x'; 6 << 20]).unwrap();
    let started = program.run(&["poll", "start", "--detach"]).ok();
    assert!(started.contains("in the background"), "{started}");
    assert!(log.with_extension("out.1").exists());
    assert!(fs::metadata(&log).unwrap().len() < 1 << 20);
    let pid = scratch.processes("--detached")[0].pid.to_string();
    assert!(started.contains(&pid), "{started}");
    eventually("a cycle is over", || {
        let status = program.run(&["poll", "status", "--json"]);
        let shown: Value = serde_json::from_str(&status.stdout).unwrap();
        let cycle = &shown["heartbeat"]["lastCycle"];
        (shown["running"] == true && cycle["requests"].as_u64() >= Some(4)).then_some(())
    });
    let stopped = program.run(&["poll", "stop"]);
    assert_eq!(stopped.code(), 0);
    assert!(stopped.stdout.contains(&pid), "{stopped:?}");
    assert!(scratch.processes("--detached").is_empty());
    assert_eq!(records(&scratch, "poller.stopped").len(), 1);
}

#[test]
fn a_poller_whose_work_folder_is_gone_can_be_seen_and_stopped() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let folder = scratch.path("checkout");
    fs::create_dir(&folder).unwrap();
    let program = hub
        .program(&scratch)
        .set("routing.spawnWorkdir", json!(folder));
    let running = program.start(&["poll", "start"]);
    wait_for_records(&scratch, "poller.started", 1);
    fs::remove_dir(&folder).unwrap();

    for looks in [
        &["poll", "status"][..],
        &["status"],
        &["events"],
        &["sessions", "list"],
    ] {
        program.run(looks).ok();
    }
    let start = program.run(&["sessions", "start", "demo/app#1"]);
    assert_eq!(start.code(), 2, "{start:?}");
    program.run(&["poll", "stop"]).ok();
    assert_eq!(running.wait(SOON).code(), 0);
    assert_eq!(program.run(&["poll", "start"]).code(), 2);
}

#[test]
fn a_daemon_that_breaks_down_ends_with_an_error_and_a_line_in_the_log() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let path = hub.program(&scratch).config_file();
    let loaded = Config::load(Some(&path), &Environment::of_this_process()).unwrap();
    let options = PollOptions {
        run: Run::Forever,
        interval: None,
        max_retries: None,
        standing: StandingNews::EverySecond,
    };
    let breaks: PollObserver = Arc::new(|news| {
        assert!(!matches!(news, PollNews::Standing(_)), "a defect");
    });
    let daemon = run_poll(loaded.config, &options, breaks);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = runtime.unwrap().block_on(daemon);
    assert!(matches!(ended, Err(PollError::BrokeDown(_))), "{ended:?}");
    let stopped = records(&scratch, "poller.stopped");
    assert_eq!(stopped.len(), 1);
    assert_eq!(stopped[0]["level"], "error");
    assert!(stopped[0]["error"].to_string().contains("a defect"));
}

#[test]
fn stop_does_not_wait_for_a_github_that_hangs() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    let running = program.start(&["poll", "start"]);
    wait_for_records(&scratch, "poller.started", 1);
    hub.github.fail("/issues?", 100, Fault::Hang);
    hub.github.forget_requests();
    wait_until("a request hangs", SOON, || {
        hub.github.count("GET", "/issues?") > 0
    });
    let stopped = program.run(&["poll", "stop", "--timeout", "5"]);
    assert_eq!(stopped.code(), 0, "{stopped:?}");
    assert_eq!(running.wait(SOON).code(), 0);
}

#[test]
fn a_second_signal_ends_it_at_once_and_says_so() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    let running = program.start(&["poll", "start"]);
    wait_for_records(&scratch, "poller.started", 1);
    hub.started_issue();
    wait_for_records(&scratch, "session.spawned", 1);
    let server = scratch.tmux(&["display-message", "-p", "#{pid}"]);
    let server = Pid::from_raw(server.trim().parse().unwrap()).unwrap();
    // A delivery under way keeps a daemon that was asked once for as long as tmux may take.
    kill_process(server, Signal::STOP).unwrap();
    hub.comment(1, "hello");
    wait_until("a delivery under way", SOON, || {
        scratch.tmux_is_asked("load-buffer")
    });

    // Sent until it is answered: two that come at once are one to a process.
    wait_until("the last words", SOON, || {
        running.signal(Signal::TERM);
        running.stderr().contains("second signal: ending at once")
    });

    assert_eq!(running.wait(SOON).code(), 130);
}

#[test]
fn detach_comes_back_with_the_reason_why_not() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub
        .program(&scratch)
        .set("routing.tmux.binary", json!(scratch.path("no-tmux")));
    let ended = program.run(&["poll", "start", "--detach"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.stderr.contains("tmux"), "{ended:?}");
    assert!(scratch.processes("--detached").is_empty());
}

#[test]
fn overlapping_cron_runs_say_everything_once() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    hub.started_issue();
    hub.github.fail(
        "/issues/1/comments",
        1,
        Fault::Slow(Duration::from_millis(500)),
    );
    let runs: Vec<_> = (0..4).map(|_| program.start(&["poll", "--once"])).collect();
    for run in runs {
        assert_eq!(run.wait(SOON).code(), 0);
    }
    program.run(&["poll", "--once"]).ok();
    assert_eq!(records(&scratch, "session.spawned").len(), 1);
    assert_eq!(program.agents().starts().len(), 1);
}

#[test]
fn sigterm_stops_between_two_items() {
    let (hub, scratch) = (Hub::start(), Scratch::new());
    let program = hub.program(&scratch);
    for _ in 0..20 {
        let issue = hub.github.open_issue(REPO, "ada", "A title", "");
        hub.github.label(REPO, issue, "ada", LABEL).unwrap();
    }
    let slow = Fault::Slow(Duration::from_millis(300));
    hub.github.fail("/comments?per_page", 100, slow);
    let running = program.start(&["poll", "start"]);
    wait_until("some items are read", SOON, || {
        hub.github.count("GET", "/comments?per_page") >= 3
    });
    running.signal(Signal::TERM);
    assert_eq!(running.wait(Duration::from_secs(3)).code(), 0);
    let read = hub.github.count("GET", "/comments?per_page");
    assert!(read < 15, "{read}");
    let cycles = records(&scratch, "poll.cycle");
    assert_eq!(cycles[0]["interrupted"], true);
}
