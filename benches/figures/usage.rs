//! What a program used from its start to its end.
//!
//! The system keeps these figures for all ended children of a process together. So this program runs
//! itself once more in between, as the parent of the one child that is measured.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::Result;
use super::world::{World, start};

pub(crate) const VERB: &str = "--usage-of";

/// What a program used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) peak_mb: f64,
}

impl Usage {
    /// Runs the measured program in a world and returns what it used; it must succeed.
    pub(crate) async fn of(world: &World, args: &[&str]) -> Result<Self> {
        let report = world.path("usage.json");
        let mut command = world.command(&std::env::current_exe()?);
        command
            .arg(VERB)
            .arg(&report)
            .arg(super::PROGRAM)
            .args(args);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the-loop {args:?}: {words}").into());
        }
        Ok(serde_json::from_slice(&std::fs::read(report)?)?)
    }
}

/// Runs `program args…` as the only child and writes what it used to the file `report`.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let [report, program, args @ ..] = args else {
        return Err("expected a file, a program and its arguments".into());
    };
    let began = Instant::now();
    let status = start(Path::new(program))
        .args(args)
        .stdout(Stdio::null())
        .status()?;
    let wall_ms = began.elapsed().as_secs_f64() * 1e3;
    if !status.success() {
        return Err(status.to_string().into());
    }
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = used.user_time().num_microseconds() + used.system_time().num_microseconds();
    let usage = Usage {
        wall_ms,
        cpu_ms: to_f64(cpu) / 1e3,
        peak_mb: to_f64(used.max_rss()) / PEAK_PER_MB,
    };
    std::fs::write(report, serde_json::to_vec(&usage)?)?;
    Ok(())
}

/// The system counts the peak in bytes here.
#[cfg(target_os = "macos")]
const PEAK_PER_MB: f64 = 1024.0 * 1024.0;
/// The system counts the peak in kilobytes here.
#[cfg(not(target_os = "macos"))]
const PEAK_PER_MB: f64 = 1024.0;

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn to_f64(number: i64) -> f64 {
    number as f64
}
