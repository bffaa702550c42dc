//! Work that waits for files, beside the runtime.

use std::cell::Cell;
use std::io;

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Runs work on a thread of its own, so that a slow disk holds nothing else up.
///
/// # Errors
/// Those of the work, and one where it broke down.
pub async fn blocking<R, E>(work: impl FnOnce() -> Result<R, E> + Send + 'static) -> Result<R, E>
where
    R: Send + 'static,
    E: From<io::Error> + Send + 'static,
{
    if AT_ONCE.get() {
        return work();
    }
    let worked = tokio::task::spawn_blocking(work).await;
    worked.unwrap_or_else(|broken| Err(io::Error::from(broken).into()))
}

/// Makes [`blocking`] do its work at once on this thread, so that the order in which things are done
/// hangs on no other thread: for a simulation, whose runtime has one thread.
pub fn work_at_once() {
    AT_ONCE.set(true);
}
