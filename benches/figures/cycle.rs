//! What a cycle costs: the first over a repository, and one in which nothing has happened.

use chrono::{TimeDelta, Utc};
use the_loop::demo::github::LocalGitHub;

use super::Result;
use super::figure::{Figure, Samples, progress};
use super::usage::{Usage, to_f64};
use super::world::{ADA, LABEL, World};

const COMMENTS: u32 = 3;
const IDLE_RUNS: usize = 7;

struct Case {
    repos: u32,
    items_each: u32,
    /// Most milliseconds of CPU, and requests, of an idle cycle.
    idle: Option<(f64, f64)>,
    python: [&'static str; 2],
}

const CASES: [Case; 3] = [
    Case {
        repos: 1,
        items_each: 10,
        idle: None,
        python: [
            "0.22 s, 0.18 s CPU, 12 requests",
            "0.18 s, 0.18 s CPU, 12 requests",
        ],
    },
    Case {
        repos: 1,
        items_each: 100,
        idle: Some((20.0, 4.0)),
        python: [
            "1.03 s, 0.64 s CPU, 102 requests",
            "0.94 s, 0.60 s CPU, 102 requests",
        ],
    },
    Case {
        repos: 5,
        items_each: 200,
        idle: Some((100.0, 20.0)),
        python: [
            "16.6 s, 14.2 s CPU, 1010 requests",
            "31.1 s, 27.0 s CPU, 1010 requests",
        ],
    },
];

pub(crate) async fn measure() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for case in &CASES {
        figures.extend(one(case).await?);
    }
    Ok(figures)
}

async fn one(case: &Case) -> Result<[Figure; 2]> {
    let items = case.repos * case.items_each;
    progress(&format!("cycles over {items} items"));
    let github = LocalGitHub::start().await?;
    github.without_budget();
    let repos = populate(&github, case)?;
    let world = World::new(&github.url(), &repos, 60)?;

    let first = Usage::of(&world, &["poll", "--once", "-q"]).await?;
    let first_requests = take_requests(&github);
    // Whatever the first one left to be asked again.
    Usage::of(&world, &["poll", "--once", "-q"]).await?;
    take_requests(&github);

    let (mut wall, mut cpu) = (Samples::default(), Samples::default());
    let (mut peak, mut requests) = (0_f64, 0_f64);
    for _ in 0..IDLE_RUNS {
        let idle = Usage::of(&world, &["poll", "--once", "-q"]).await?;
        wall.add_ms(idle.wall_ms);
        cpu.add_ms(idle.cpu_ms);
        peak = peak.max(idle.peak_mb);
        requests = requests.max(take_requests(&github));
    }
    let place = match case.repos {
        1 => format!("{items} items"),
        repos => format!("{items} items in {repos} repositories"),
    };
    let [python_first, python_idle] = case.python;
    let mut idle = Figure::new(format!("idle cycle, {place}"))
        .value("CPU", cpu.at(0.5), "ms")
        .value("requests", requests, "")
        .value("wall", wall.at(0.5), "ms")
        .value("peak", peak, "MB")
        .python(python_idle);
    if let Some((most_cpu, most_requests)) = case.idle {
        idle = idle.target(most_cpu).target_of(1, most_requests);
    }
    Ok([
        Figure::new(format!("first cycle, {place}"))
            .value("CPU", first.cpu_ms, "ms")
            .value("requests", first_requests, "")
            .value("wall", first.wall_ms, "ms")
            .value("peak", first.peak_mb, "MB")
            .python(python_first),
        idle,
    ])
}

/// Opens the items an hour ago, each with some comments, and returns the repositories.
fn populate(github: &LocalGitHub, case: &Case) -> Result<Vec<String>> {
    github.set_clock(Utc::now() - TimeDelta::hours(1));
    let mut repos = Vec::new();
    for repo in 0..case.repos {
        let repo = format!("demo/app{repo}");
        github.repo(&repo);
        for item in 0..case.items_each {
            let issue = github.open_issue(&repo, ADA, &format!("Work {item}"), "What to do.");
            github.label(&repo, issue, ADA, LABEL)?;
            for comment in 0..COMMENTS {
                github.comment(&repo, issue, "eve", &format!("Remark {comment}"))?;
            }
        }
        repos.push(repo);
    }
    github.set_clock(Utc::now());
    Ok(repos)
}

fn take_requests(github: &LocalGitHub) -> f64 {
    let count = github.requests().len();
    github.forget_requests();
    to_f64(i64::try_from(count).unwrap_or(i64::MAX))
}
