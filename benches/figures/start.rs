//! How long commands take that a person waits for.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use the_loop::clock::SystemClock;
use the_loop::store::Store;

use super::figure::{Figure, Other, Samples, progress};
use super::million::{Size, fill};
use super::usage::Usage;
use super::world::World;
use super::{PROGRAM, Result};

const RUNS: usize = 50;

pub(crate) async fn measure() -> Result<Vec<Figure>> {
    progress("start-up");
    let world = World::new("http://127.0.0.1:9", &["demo/app".to_owned()], 60)?;
    let mut figures = vec![
        Figure::new("`--version`")
            .spread(&runs(&world, &["--version"])?, Other::Best)
            .target(3.0)
            .python("120.6 ms"),
    ];
    // Makes the database, which is not what is measured.
    Usage::of(&world, &["sessions", "list"]).await?;
    for (sessions, python) in [(0, "120.6 ms"), (20, "122.6 ms")] {
        if sessions > 0 {
            add_sessions(&world, sessions).await?;
        }
        let peak = Usage::of(&world, &["sessions", "list"]).await?.peak_mb;
        figures.push(
            Figure::new(format!("`sessions list`, {sessions} sessions"))
                .spread(&runs(&world, &["sessions", "list"])?, Other::Best)
                .value("peak", peak, "MB")
                .target(10.0)
                .python(python),
        );
    }
    Ok(figures)
}

async fn add_sessions(world: &World, sessions: u32) -> Result<()> {
    let path = world.path("state/loop.db");
    let store = Store::open(&path, "bench", std::sync::Arc::new(SystemClock)).await?;
    let size = Size {
        sessions,
        deliveries: sessions,
    };
    fill(&store, size).await?;
    store.close().await;
    Ok(())
}

fn runs(world: &World, args: &[&str]) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..RUNS {
        let mut command = world.command(Path::new(PROGRAM));
        command
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let began = Instant::now();
        let status = command.status()?;
        samples.add(began.elapsed());
        if !status.success() {
            return Err(format!("the-loop {args:?}: {status}").into());
        }
    }
    Ok(samples)
}
