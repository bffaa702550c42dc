//! How long a comment takes from the inbox to the agent's terminal.

use std::time::Duration;

use chrono::DateTime;
use the_loop::demo::github::LocalGitHub;

use super::Result;
use super::figure::{Figure, Other, Samples, progress};
use super::reader::{self, read_at};
use super::usage::to_f64;
use super::world::{ADA, LABEL, World, wait_for};

const COMMENTS: u64 = 50;
/// One agent alone is not told so many texts within half an hour.
const ISSUES: u64 = 3;
const REPO: &str = "demo/app";

pub(crate) async fn measure() -> Result<Vec<Figure>> {
    progress("comment to screen");
    let github = LocalGitHub::start().await?;
    github.without_budget();
    github.repo(REPO);
    let world = World::new(&github.url(), &[REPO.to_owned()], 1)?;
    let _daemon = world.run(&["poll", "start", "-q"])?;
    let mut issues = Vec::new();
    for _ in 0..ISSUES {
        let issue = github.open_issue(REPO, ADA, "Work", "What to do.");
        github.label(REPO, issue, ADA, LABEL)?;
        github.comment(REPO, issue, ADA, "the-loop start")?;
        issues.push(issue);
    }
    wait_for("the sessions", || {
        let events = world.events();
        let spawned = events.matches("\"session.spawned\"").count();
        (spawned == issues.len()).then_some(())
    })
    .await?;

    let mut samples = Samples::default();
    for (number, &issue) in (0..COMMENTS).zip(issues.iter().cycle()) {
        let text = format!("Remark {number:03} of many.");
        let comment = github.comment(REPO, issue, ADA, &text)?;
        let read = wait_for("the comment on the terminal", || {
            read_at(&world.path("read.jsonl"), &text)
        })
        .await?;
        let accepted = wait_for("its acceptance in the log", || {
            accepted_at(&world.log(), comment)
        })
        .await?;
        samples.add_ms(to_f64(i64::try_from(read)? - accepted) / 1e3);
        // The cycles keep their pace; the comments must not keep theirs.
        let pause = 100 + reader::now() % 400;
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    Ok(vec![
        Figure::new("comment accepted → text on the agent's terminal")
            .spread(&samples, Other::Worst)
            .target(8.0)
            .python("11.5 ms (from its receipt; p99 16.2)"),
    ])
}

/// Returns when a comment was stored, its commit done, in microseconds since the epoch.
fn accepted_at(log: &str, comment: u64) -> Option<i64> {
    let key = format!(":issue_comment:{comment}@");
    let line = log
        .lines()
        .rfind(|line| line.contains("stored") && line.contains(&key))?;
    let at = DateTime::parse_from_rfc3339(line.split_whitespace().next()?).ok()?;
    Some(at.timestamp_micros())
}
