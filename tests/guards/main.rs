//! Guards of the shape: what must hold for the sources themselves.
//!
//! Each guard has self-tests with planted violations, so that a guard that sees nothing is noticed.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails its test")]

mod arrows;
mod dependencies;
mod documents;
mod fuzz;
mod prerequisites;
mod processes;
mod reach;
mod specs;
mod sql;
mod text;
mod tokens;
mod tree;

use std::path::Path;

/// The folder of the package.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Fails with every problem at once.
fn none(rule: &str, problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{rule}:\n  {}\n",
        problems.join("\n  ")
    );
}
