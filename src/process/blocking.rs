//! Work that waits for files, beside the runtime.

use std::io;

/// Runs work on a thread of its own, so that a slow disk holds nothing else up.
///
/// # Errors
/// Those of the work, and one where it broke down.
pub async fn blocking<R, E>(work: impl FnOnce() -> Result<R, E> + Send + 'static) -> Result<R, E>
where
    R: Send + 'static,
    E: From<io::Error> + Send + 'static,
{
    let worked = tokio::task::spawn_blocking(work).await;
    worked.unwrap_or_else(|broken| Err(io::Error::from(broken).into()))
}
