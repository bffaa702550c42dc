//! Many scenarios at once: each mostly waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// How many scenarios of one test run at the same time.
const AT_ONCE: usize = 8;

/// Plays every row of a table, and fails with the names of all that failed.
pub(crate) fn play_all<R: Sync>(
    rows: &[R],
    name: impl Fn(&R) -> String + Sync,
    play: impl Fn(&R) + Sync,
) {
    play_at_once(AT_ONCE, rows, name, play);
}

/// The same with a number of its own.
pub(crate) fn play_at_once<R: Sync>(
    at_once: usize,
    rows: &[R],
    name: impl Fn(&R) -> String + Sync,
    play: impl Fn(&R) + Sync,
) {
    let next = Mutex::new(rows.iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..at_once {
            threads.spawn(|| {
                loop {
                    let row = next.lock().unwrap().next();
                    let Some(row) = row else { return };
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| play(row))) {
                        let why = panic
                            .downcast_ref::<String>()
                            .cloned()
                            .or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
                        let line = format!("{}: {}", name(row), why.unwrap_or_default());
                        failed.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "{} of {} scenarios failed:\n{}",
        failed.len(),
        rows.len(),
        failed.join("\n")
    );
}
