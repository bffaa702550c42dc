use std::time::Instant;

use super::*;
use crate::process::identity::{Life, identify, life};

fn sh(script: &str) -> Command {
    Command::new("/bin/sh").args(["-c", script])
}

async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn runs(pid: &str) -> bool {
    identify(pid.trim().parse().unwrap()).is_some_and(|process| life(&process) == Life::Running)
}

#[tokio::test]
async fn status_and_both_outputs_come_back() {
    let output = run(&sh("echo out; echo err >&2; exit 7")).await.unwrap();

    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    assert_eq!(output.completeness, Completeness::Whole);
}

#[tokio::test]
async fn input_larger_than_a_pipe_is_written_while_output_is_read() {
    let text = vec![b'x'; 1 << 20];
    let mut command = sh("cat");
    command.stdin = Some(text.clone());

    assert_eq!(run(&command).await.unwrap().stdout, text);
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_error() {
    let mut command = sh("exit 0");
    command.stdin = Some(vec![b'x'; 1 << 20]);

    assert!(run(&command).await.unwrap().status.success());
}

#[tokio::test]
async fn output_beyond_the_limit_is_thrown_away_and_said_to_be() {
    let mut command = sh("head -c 300000 /dev/zero");
    command.output_limit = 1000;

    let output = run(&command).await.unwrap();

    assert_eq!(output.stdout.len(), 1000);
    assert_eq!(output.completeness, Completeness::Cut);
}

#[tokio::test]
async fn at_the_deadline_the_whole_group_is_killed_and_its_pipe_is_not_awaited() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let mut command = sh(&format!(
        "trap '' TERM HUP; sleep 600 & echo $! >{}; wait; sleep 600",
        pid.display()
    ));
    command.deadline = Duration::from_millis(300);

    let started = Instant::now();
    let error = run(&command).await.unwrap_err();

    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3));
    let grandchild = std::fs::read_to_string(&pid).unwrap();
    eventually("the grandchild is gone", || !runs(&grandchild)).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_the_pipe_does_not_delay_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let started = Instant::now();

    let output = run(&sh(&format!(
        "sleep 600 & echo $! >{}; echo done",
        pid.display()
    )))
    .await
    .unwrap();

    assert_eq!(output.stdout, b"done\n");
    assert!(started.elapsed() < Duration::from_secs(5));
    let left: i32 = std::fs::read_to_string(&pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    rustix::process::kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn dropping_the_future_kills_the_group() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let command = sh(&format!(
        "echo $$ >{0}.tmp; mv {0}.tmp {0}; sleep 600",
        pid.display()
    ));
    let task = tokio::spawn(async move { run(&command).await });
    eventually("it runs", || pid.exists()).await;

    task.abort();

    let child = std::fs::read_to_string(&pid).unwrap();
    eventually("the child is gone", || !runs(&child)).await;
}

#[tokio::test]
async fn a_missing_program_is_a_start_error_that_names_it() {
    let error = run(&Command::new("/no/such/program")).await.unwrap_err();

    assert!(matches!(error, Error::Start { .. }));
    assert_eq!(error.to_string(), "starting /no/such/program");
}

#[tokio::test]
async fn the_environment_is_the_one_that_was_named() {
    let mut command = Command::new("/usr/bin/env");
    command.env = Environment::Exactly(BTreeMap::from([("A".into(), "b c".into())]));
    assert_eq!(run(&command).await.unwrap().stdout, b"A=b c\n");

    command.env = Environment::Inherit {
        set: BTreeMap::from([("A".into(), "b".into())]),
        remove: vec!["PATH".into()],
    };
    let text = String::from_utf8(run(&command).await.unwrap().stdout).unwrap();
    assert!(text.lines().any(|line| line == "A=b"));
    assert!(!text.lines().any(|line| line.starts_with("PATH=")));
}

#[test]
fn secrets_of_the_environment_are_not_shown() {
    let mut command = Command::new("/bin/x").args(["a b", "it's", "=loop:"]);
    command.env = Environment::Exactly(BTreeMap::from([("TOKEN".into(), "hunter2".into())]));

    assert_eq!(command.to_string(), r"/bin/x 'a b' 'it'\''s' '=loop:'");
    assert!(!format!("{command:?}").contains("hunter2"));
    assert!(format!("{command:?}").contains("TOKEN"));
}

#[test]
fn programs_are_found_in_absolute_folders_only() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plain"), "").unwrap();
    let path = std::env::join_paths([Path::new("."), dir.path(), Path::new("/bin")]).unwrap();

    assert_eq!(
        find_program("sh", Some(&path)),
        Some(PathBuf::from("/bin/sh"))
    );
    assert_eq!(find_program("plain", Some(&path)), None);
    assert_eq!(find_program("no-such-program", Some(&path)), None);
    assert_eq!(
        find_program("/bin/sh", None),
        Some(PathBuf::from("/bin/sh"))
    );
}
