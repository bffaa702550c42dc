//! What a poller holds and does while nothing happens.

use std::fs;
use std::time::Duration;

use the_loop::demo::github::LocalGitHub;

use super::Result;
use super::figure::{Figure, progress};
use super::usage::to_f64;
use super::world::{ADA, LABEL, World, wait_for};

const WATCHED: Duration = Duration::from_secs(20);
const REPO: &str = "demo/app";

pub(crate) async fn measure() -> Result<Vec<Figure>> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    progress("an idle poller");
    let github = LocalGitHub::start().await?;
    github.without_budget();
    github.repo(REPO);
    for number in 0..10 {
        let issue = github.open_issue(REPO, ADA, &format!("Work {number}"), "What to do.");
        github.label(REPO, issue, ADA, LABEL)?;
    }
    let world = World::new(&github.url(), &[REPO.to_owned()], 60)?;
    let daemon = world.run(&["poll", "start", "-q"])?;
    wait_for("the first cycle", || {
        world.path("state/poll-status.json").exists().then_some(())
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = Load::of(daemon.pid())?;
    tokio::time::sleep(WATCHED).await;
    let after = Load::of(daemon.pid())?;
    let pid = daemon.pid();
    let resident = number(&format!("/proc/{pid}/smaps_rollup"), "Rss:")?;
    let share = number(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?;
    let anonymous = number(&format!("/proc/{pid}/smaps_rollup"), "Anonymous:")?;
    Ok(vec![
        Figure::new("idle `poll start`, memory")
            .value("RSS", resident / 1024.0, "MB")
            .value("PSS", share / 1024.0, "MB")
            .value("of its own", anonymous / 1024.0, "MB")
            .target(15.0)
            .python("27.0 MB"),
        Figure::new(format!("idle `poll start`, {} s", WATCHED.as_secs()))
            .value("CPU", after.cpu_ms - before.cpu_ms, "ms")
            .value("wake-ups", after.wakeups - before.wakeups, "")
            .value("threads", after.threads, "")
            .python("no CPU to speak of, 39 wake-ups (its receiver)"),
    ])
}

/// What a process has done so far, all its threads together.
#[derive(Debug, Default)]
struct Load {
    cpu_ms: f64,
    wakeups: f64,
    threads: f64,
}

impl Load {
    fn of(pid: u32) -> Result<Self> {
        let mut load = Self::default();
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?.path();
            let on_cpu = fs::read_to_string(thread.join("schedstat"))?;
            let nanoseconds: i64 = on_cpu.split(' ').next().unwrap_or_default().parse()?;
            load.cpu_ms += to_f64(nanoseconds) / 1e6;
            let status = thread.join("status");
            load.wakeups += number(&status.display().to_string(), "voluntary_ctxt_switches:")?;
            load.threads += 1.0;
        }
        Ok(load)
    }
}

fn number(file: &str, name: &str) -> Result<f64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    Ok(word
        .ok_or_else(|| format!("{file} has no {name}"))?
        .parse()?)
}
