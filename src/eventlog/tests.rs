use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::ManualClock;
use crate::model::{
    DeliveryId, DropReason, EventKey, EventKind, HarnessName, Login, Repeat, Source,
};

/// The keys of the envelope; no field of an event can have one of these names.
const ENVELOPE: [&str; 6] = ["ts", "source", "event", "level", "pid", "host"];

fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

fn about() -> About {
    About {
        work_item: "github:octo/app#15".parse().unwrap(),
        delivery: DeliveryId(12),
        key: EventKey::from_stored("github.com:issue_comment:2451@00aa".into()),
        kind: EventKind::IssueComment,
        actor: Some(Login::new("octocat")),
    }
}

fn succeeded(chars: u64) -> Decision {
    Decision::DispatchSucceeded {
        about: about(),
        harness: HarnessName("claude".into()),
        tmux_target: about().work_item.session_name().unwrap(),
        attempt: 1,
        chars,
        held_ms: None,
        possible_repeat: Repeat::No,
    }
}

fn log_at(path: &Path, rotation: Rotation) -> EventLog {
    let clock = ManualClock::starting_at(at("2026-11-30T14:05:41.007Z"));
    EventLog::open(path, Source::Poll, rotation).with_clock(Arc::new(clock))
}

fn place() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("logs/events.jsonl");
    (dir, path)
}

fn small(max_bytes: u64, keep_files: usize) -> Rotation {
    Rotation {
        max_bytes,
        keep_files,
    }
}

fn chars(records: &[Record]) -> Vec<u64> {
    records
        .iter()
        .map(|record| record.number("chars").unwrap())
        .collect()
}

fn all(path: &Path) -> Tail {
    tail(path, Filter::default(), usize::MAX).unwrap()
}

#[test]
fn a_record_is_one_line_with_the_envelope_first_and_absent_fields_left_out() {
    let (_dir, path) = place();

    log_at(&path, Rotation::default()).emit(&succeeded(312));

    let text = fs::read_to_string(&path).unwrap();
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    assert_eq!(
        text,
        format!(
            "{{\"ts\":\"2026-11-30T14:05:41.007Z\",\"source\":\"poll\",\"event\":\"dispatch.succeeded\",\
             \"level\":\"info\",\"pid\":{},\"host\":\"{host}\",\"work_item\":\"github:octo/app#15\",\"delivery\":12,\
             \"key\":\"github.com:issue_comment:2451@00aa\",\"kind\":\"issue_comment\",\"actor\":\"octocat\",\
             \"harness\":\"claude\",\"tmux_target\":\"loop-github-octo--app-15\",\"attempt\":1,\"chars\":312,\
             \"possible_repeat\":\"no\"}}\n",
            std::process::id()
        )
    );
    let record = &all(&path).records[0];
    assert_eq!(record.to_json().len() + 1, text.len());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn no_field_can_take_the_place_of_the_envelope_and_every_field_is_explained() {
    let explained: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    assert!(explained.is_sorted());
    for kind in TYPES {
        assert!(kind.name.contains('.') && !kind.description.is_empty());
        for field in kind.all_fields() {
            assert!(
                !ENVELOPE.contains(&field),
                "{} has the field {field}",
                kind.name
            );
            assert!(
                explained.contains(&field),
                "{} has the unexplained field {field}",
                kind.name
            );
        }
    }
    for field in explained {
        assert!(
            TYPES
                .iter()
                .any(|kind| kind.all_fields().any(|used| used == field)),
            "{field} is unused"
        );
    }
}

#[test]
fn every_type_has_a_name_of_its_own() {
    let mut names: Vec<&str> = TYPES.iter().map(|kind| kind.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TYPES.len());
}

#[test]
fn what_somebody_should_know_is_louder() {
    let dropped = |reason| Decision::RoutingDropped {
        reason,
        key: about().key,
        kind: EventKind::IssueComment,
        work_items: vec![],
        actor: None,
        url: None,
    };
    assert_eq!(
        dropped(DropReason::UnauthorizedActor).level(),
        Level::Warning
    );
    assert_eq!(dropped(DropReason::SelfAuthored).level(), Level::Debug);
    assert_eq!(succeeded(1).level(), Level::Info);
}

#[test]
fn an_endless_error_is_cut_and_what_names_the_delivery_stays() {
    let (_dir, path) = place();
    log_at(&path, Rotation::default()).emit(&Decision::DispatchFailed {
        about: about(),
        harness: None,
        tmux_target: None,
        error: "é".repeat(1_000_000),
        attempt: 1,
        max_attempts: 3,
        will_retry: true,
    });

    assert!(fs::metadata(&path).unwrap().len() < 16 * 1024);
    let record = &all(&path).records[0];
    assert_eq!(record.number("delivery"), Some(12));
    assert!(
        record
            .text("error")
            .unwrap()
            .ends_with("… (cut, 1024 of 1000000 characters)")
    );
}

#[test]
fn a_full_file_is_rotated_and_the_oldest_go() {
    let (_dir, path) = place();
    let log = log_at(&path, small(1000, 2));

    (0..30).for_each(|n| log.emit(&succeeded(n)));

    let mut names: Vec<String> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "events.jsonl",
            "events.jsonl.8",
            "events.jsonl.9",
            "events.jsonl.lock"
        ]
    );
    assert_eq!(chars(&all(&path).records), (21..30).collect::<Vec<_>>());
}

#[test]
fn writers_that_share_a_log_lose_and_mix_no_line_over_rotations() {
    let (_dir, path) = place();
    let threads: Vec<_> = (0..4)
        .map(|writer| {
            // A handle of its own, as another process has.
            let log = log_at(&path, small(4000, 1000));
            thread::spawn(move || (0..200).for_each(|n| log.emit(&succeeded(writer * 1000 + n))))
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());

    let tail = all(&path);
    assert_eq!(tail.skipped, 0);
    let mut seen = chars(&tail.records);
    for writer in 0..4 {
        let own: Vec<u64> = seen
            .iter()
            .copied()
            .filter(|n| n / 1000 == writer)
            .collect();
        assert_eq!(own, (0..200).map(|n| writer * 1000 + n).collect::<Vec<_>>());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 800);
}

#[test]
fn a_follower_loses_no_record_over_rotations() {
    let (_dir, path) = place();
    let mut follower = Follower::open(&path, Filter::default(), Beginning::End).unwrap();
    let log = log_at(&path, small(3000, 1000));
    let writer = thread::spawn(move || (0..500).for_each(|n| log.emit(&succeeded(n))));

    let mut seen = Vec::new();
    loop {
        let finished = writer.is_finished();
        match follower.try_next().unwrap() {
            Some(record) => seen.push(record.number("chars").unwrap()),
            None if finished => break,
            None => thread::yield_now(),
        }
    }

    writer.join().unwrap();
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
    assert_eq!(follower.skipped(), 0);
}

#[test]
fn a_follower_begins_at_the_end_and_waits_for_the_rest_of_a_half_line() {
    let (_dir, path) = place();
    let log = log_at(&path, Rotation::default());
    log.emit(&succeeded(1));
    let mut follower = Follower::open(&path, Filter::default(), Beginning::End).unwrap();
    assert_eq!(follower.try_next().unwrap(), None);

    let line = all(&path).records[0].to_json();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&line.as_bytes()[..50]).unwrap();
    assert_eq!(follower.try_next().unwrap(), None);
    file.write_all(&line.as_bytes()[50..]).unwrap();
    file.write_all(b"\n").unwrap();
    assert!(follower.try_next().unwrap().is_some());
}

#[test]
fn a_follower_goes_on_when_the_file_is_emptied() {
    let (_dir, path) = place();
    let log = log_at(&path, Rotation::default());
    (0..5).for_each(|n| log.emit(&succeeded(n)));
    let mut follower = Follower::open(&path, Filter::default(), Beginning::CurrentFile).unwrap();
    while follower.try_next().unwrap().is_some() {}

    fs::write(&path, "").unwrap();
    log.emit(&succeeded(9));

    assert_eq!(
        follower.try_next().unwrap().unwrap().number("chars"),
        Some(9)
    );
}

#[tokio::test(start_paused = true)]
async fn following_ends_when_it_is_told_to() {
    let (_dir, path) = place();
    let mut follower = Follower::open(&path, Filter::default(), Beginning::End).unwrap();
    let stop = CancellationToken::new();
    let later = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        later.cancel();
    });
    assert!(follower.next(&stop).await.is_none());
}

#[test]
fn a_torn_line_costs_only_itself() {
    let (_dir, path) = place();
    log_at(&path, Rotation::default()).emit(&succeeded(1));
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"ts\":\"2026").unwrap();

    log_at(&path, Rotation::default()).emit(&succeeded(2));

    let tail = all(&path);
    assert_eq!(chars(&tail.records), [1, 2]);
    assert_eq!(tail.skipped, 1);
}

#[test]
fn the_tail_is_the_last_records_that_the_filter_takes() {
    let (_dir, path) = place();
    let log = log_at(&path, small(2000, 100));
    (0..50).for_each(|n| log.emit(&succeeded(n)));
    let filter = Filter {
        types: vec!["dispatch.*".into()],
        since: Some(at("2026-11-30T14:00:00Z")),
        ..Filter::default()
    };
    assert_eq!(
        chars(&tail(&path, filter, 3).unwrap().records),
        [47, 48, 49]
    );
}

#[test]
fn a_log_that_does_not_exist_yet_is_empty() {
    let (_dir, path) = place();
    assert_eq!(all(&path).records, []);
}

#[test]
fn a_log_that_cannot_be_written_changes_nothing_and_comes_back() {
    let (dir, path) = place();
    let folder = dir.path().join("logs");
    fs::write(&folder, "a file where the folder should be").unwrap();
    let log = log_at(&path, Rotation::default());
    log.emit(&succeeded(1));

    fs::remove_file(&folder).unwrap();
    log.emit(&succeeded(2));

    assert_eq!(chars(&all(&path).records), [2]);
}

#[test]
fn a_deleted_file_is_made_anew() {
    let (_dir, path) = place();
    let log = log_at(&path, Rotation::default());
    log.emit(&succeeded(1));
    fs::remove_file(&path).unwrap();
    log.emit(&succeeded(2));
    assert_eq!(chars(&all(&path).records), [2]);
}

#[test]
fn observers_see_what_is_written_also_where_nothing_is_kept() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let log = EventLog::disabled(Source::Cli)
        .observed_by(move |record| kept.lock().unwrap().push(record.event.clone()));
    log.clone().emit(&succeeded(1));
    assert_eq!(*seen.lock().unwrap(), ["dispatch.succeeded"]);
}

#[test]
fn generated_references_are_up_to_date() {
    crate::references::assert_up_to_date("event-types.md", &reference());
}
