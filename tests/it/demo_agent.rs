//! The scripted agent in a real tmux pane.

use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;
use the_loop::demo::agent::{Entry, Record};

use crate::support::{AgentLog, Found, SOON, Scratch, TheLoop, eventually, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_the-loop");
const PANE: &str = "=agent:";

/// A scratch world with one agent in it.
struct Stage {
    scratch: Scratch,
    log: AgentLog,
}

impl Stage {
    /// Starts an agent in a session of its own; as `agent`.
    fn start(args: &[&str]) -> Self {
        let scratch = Scratch::new();
        let log = AgentLog::at(scratch.path("agent.jsonl"));
        let stage = Self { scratch, log };
        // The server stays when a session ends just before the next one is made.
        let stay = ["start-server", ";", "set-option", "-s", "exit-empty", "off"];
        stage.scratch.tmux(&stay);
        stage.spawn("agent", args);
        stage
    }

    /// Runs an agent in a new session, under a shell that writes down how it ended: what tmux
    /// knows of a pane's end is neither complete nor certain.
    fn spawn(&self, session: &str, args: &[&str]) {
        let path = |name: &str| self.scratch.path(name).display().to_string();
        let shell = r#""$@" 2>"$0.err"; echo $? >"$0.code""#;
        let (end, log) = (path(session), path("agent.jsonl"));
        let conversations = path("conversations");
        let mut command = vec![
            "new-session",
            "-d",
            "-s",
            session,
            "-x",
            "200",
            "-y",
            "50",
            "--",
        ];
        command.extend(["sh", "-c", shell, &end, BINARY, "demo-agent", "--log", &log]);
        command.extend(["--conversations", &conversations]);
        command.extend(args);
        self.scratch.tmux(&command);
    }

    fn paste(&self, text: &str) {
        let mut load = self
            .scratch
            .command("tmux")
            .args(["-L", self.scratch.tmux_socket(), "load-buffer", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        load.stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        assert!(load.wait().unwrap().success());
        self.scratch.tmux(&["paste-buffer", "-p", "-d", "-t", PANE]);
    }

    fn press(&self, key: &str) {
        self.scratch.tmux(&["send-keys", "-t", PANE, key]);
    }

    fn wait_shown(&self, part: &str) {
        let shown = || self.scratch.screen(PANE).contains(part);
        wait_until(&format!("{part:?} on the screen"), SOON, shown);
    }

    /// Waits until the agent of a session has ended; returns its exit code and its complaint.
    fn wait_end(&self, session: &str) -> (i32, String) {
        let read = |ending: &str| {
            std::fs::read_to_string(self.scratch.path(&format!("{session}.{ending}")))
        };
        let code = eventually("the agent's end", || read("code").ok()?.trim().parse().ok());
        (code, read("err").unwrap())
    }

    /// Returns the running agent itself, without the shell around it.
    fn agent(&self) -> Found {
        let is_agent = |process: &Found| process.command.starts_with(BINARY);
        let running = || {
            self.scratch
                .processes("demo-agent")
                .into_iter()
                .find(is_agent)
        };
        eventually("a running agent", running)
    }

    fn end(&self) -> (String, u8) {
        let record = self
            .log
            .wait_for("the end", |entry| matches!(entry, Entry::End { .. }));
        match record.entry {
            Entry::End { reason, code, .. } => (reason, code),
            _ => unreachable!(),
        }
    }
}

fn message(record: Record) -> (String, bool, u64) {
    match record.entry {
        Entry::Message {
            text,
            bracketed,
            counters,
        } => (text, bracketed, counters.enters),
        other => panic!("not a message: {other:?}"),
    }
}

#[test]
fn a_paste_of_many_lines_is_one_message() {
    let stage = Stage::start(&[]);
    stage.log.wait_ready(1);

    let text = "first\nsecond, with ünïcode 漢字 \u{1f642}\n\n$HOME; `third`";
    stage.paste(text);
    stage.wait_shown("`third`");
    assert_eq!(stage.log.messages(), Vec::<String>::new());
    stage.press("Enter");

    let record = stage.log.wait_for_message("third");
    assert_eq!(message(record), (text.to_owned(), true, 1));
    stage.wait_shown("› first");
}

#[test]
fn a_paste_of_200_kilobytes_arrives_whole() {
    let stage = Stage::start(&[]);
    stage.log.wait_ready(1);

    let text: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    stage.paste(&text);
    stage.press("Enter");

    let record = stage.log.wait_for_message("line 19999");
    assert_eq!(message(record).0, text);
}

#[test]
fn text_for_an_agent_that_still_boots_arrives_line_by_line() {
    let stage = Stage::start(&["--boot-delay", "700"]);
    stage
        .log
        .wait_for("the start", |entry| matches!(entry, Entry::Start { .. }));

    stage.paste("one\ntwo\n");

    stage.log.wait_for_message("two");
    assert_eq!(stage.log.messages(), ["one", "two"]);
    assert!(!message(stage.log.wait_for_message("one")).1);
}

#[test]
fn a_conversation_is_resumed_and_only_a_known_one() {
    let stage = Stage::start(&["--session", "c-1", "the first prompt"]);
    stage.log.wait_ready(1);
    stage.press("C-c");
    assert_eq!(stage.wait_end("agent").0, 0);

    stage.spawn("again", &["--resume", "c-1", "the second prompt"]);
    stage.log.wait_ready(2);
    let shown = || {
        let screen = stage.scratch.screen("=again:");
        screen.contains("the first prompt") && screen.contains("the second prompt")
    };
    wait_until("both prompts on the screen", SOON, shown);
    assert!(matches!(
        &stage.log.starts()[1].entry,
        Entry::Start { session: Some(id), resumed: true, .. } if id == "c-1"
    ));

    stage.spawn("unknown", &["--resume", "c-2"]);
    let (code, complaint) = stage.wait_end("unknown");
    assert_eq!(code, 1);
    assert!(complaint.contains("No conversation found"), "{complaint}");
    stage.spawn("double", &["--session", "c-1"]);
    let (code, complaint) = stage.wait_end("double");
    assert_eq!(code, 1);
    assert!(complaint.contains("already in use"), "{complaint}");
}

#[test]
fn the_script_decides_when_and_how_it_ends() {
    let stage = Stage::start(&["--exit-after", "2", "--exit-code", "7", "boot"]);
    stage.log.wait_ready(1);
    stage.paste("last");
    stage.press("Enter");
    assert_eq!(stage.wait_end("agent").0, 7);
    assert_eq!(stage.end(), ("script".to_owned(), 7));

    stage.spawn("timed", &["--exit-after", "50ms", "--exit-code", "3"]);
    assert_eq!(stage.wait_end("timed").0, 3);
}

#[test]
fn a_person_can_type_correct_and_leave() {
    let stage = Stage::start(&[]);
    stage.log.wait_ready(1);
    for key in ["hellp", "BSpace", "o", "Enter"] {
        stage.press(key);
    }
    let record = stage.log.wait_for_message("hello");
    assert_eq!(message(record), ("hello".to_owned(), false, 1));

    stage.press("/exit");
    stage.press("Enter");
    assert_eq!(stage.wait_end("agent").0, 0);
    assert_eq!(stage.end(), ("asked".to_owned(), 0));
}

#[test]
fn a_question_swallows_what_is_pasted_until_it_is_answered() {
    let stage = Stage::start(&["--dialog"]);
    stage.log.wait_ready(1);
    stage.wait_shown("Do you trust");
    stage.paste("lost");
    stage.press("Enter");
    let record = stage.log.wait_for("the answer", |entry| {
        matches!(entry, Entry::Answered { .. })
    });
    assert!(matches!(record.entry, Entry::Answered { counters } if counters.swallowed == 1));

    stage.paste("kept");
    stage.press("Enter");
    stage.log.wait_for_message("kept");
    assert_eq!(stage.log.messages(), ["kept"]);
}

#[test]
fn the_screen_fits_whatever_size_the_terminal_has() {
    let stage = Stage::start(&["a prompt that says something"]);
    stage.log.wait_ready(1);
    stage.wait_shown("a prompt that says something");
    for (columns, rows) in [("20", "8"), ("12", "3"), ("200", "50")] {
        stage
            .scratch
            .tmux(&["resize-window", "-t", PANE, "-x", columns, "-y", rows]);
        stage.paste("x");
        wait_until("the composer in sight", SOON, || {
            let screen = stage.scratch.screen(PANE);
            screen.lines().any(|line| line.starts_with("> x"))
                && screen.lines().count() <= rows.parse().unwrap()
        });
    }
    stage.wait_shown("› a prompt that says something");
}

#[test]
fn the_terminal_is_given_back_as_it_was() {
    let scratch = Scratch::new();
    let state = scratch.path("state");
    let script = format!(
        "stty -g > {0}/before; {BINARY} demo-agent --exit-after 50ms; stty -g > {0}/after; sleep 1000",
        state.display()
    );
    scratch.tmux(&["new-session", "-d", "-s", "agent", &script]);
    let read = |name: &str| {
        eventually(name, || {
            std::fs::read_to_string(state.join(name))
                .ok()
                .filter(|text| text.ends_with('\n'))
        })
    };
    assert_eq!(read("before"), read("after"));
}

#[test]
fn it_ends_with_its_terminal_unless_told_to_stay() {
    let stage = Stage::start(&[]);
    stage.log.wait_ready(1);
    stage.scratch.tmux(&["kill-session", "-t", "=agent"]);
    assert_eq!(stage.end(), ("hangup".to_owned(), 129));

    stage.spawn("agent", &["--ignore-hup"]);
    stage.log.wait_ready(2);
    stage.scratch.tmux(&["kill-session", "-t", "=agent"]);
    stage.agent().signal(Signal::TERM);
    let ends = || {
        let ends = stage.log.records();
        ends.iter()
            .filter(|record| matches!(record.entry, Entry::End { .. }))
            .count()
    };
    wait_until("the second end", SOON, || ends() == 2);
}

#[test]
fn a_stubborn_agent_is_left_for_the_test_to_kill() {
    let stage = Stage::start(&["--ignore-hup", "--ignore-term"]);
    stage.log.wait_ready(1);
    stage.agent().signal(Signal::TERM);
    stage.press("x");
    stage.wait_shown("> x");
    stage.scratch.kill("--ignore-term");
    let gone = || stage.scratch.processes("--ignore-term").is_empty();
    wait_until("the killed agent is gone", SOON, gone);
}

#[test]
fn wrong_arguments_end_with_2_and_no_terminal_with_1() {
    let scratch = Scratch::new();
    let the_loop = TheLoop::new(&scratch);

    let wrong = the_loop.run(&["demo-agent", "--exit-after", "soon"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("neither a time"), "{}", wrong.stderr);

    let blind = the_loop.run(&["demo-agent"]);
    assert_eq!(blind.code(), 1);
    assert!(blind.stderr.contains("not a terminal"), "{}", blind.stderr);
    assert!(
        the_loop
            .run(&["demo-agent", "--help"])
            .ok()
            .contains("--boot-delay")
    );
}
