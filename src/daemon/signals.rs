//! Signals: the first asks the daemon to stop, the second ends it at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at the first SIGTERM or SIGINT, and ends the process at the second.
///
/// # Errors
/// When the handlers cannot be installed.
pub(super) fn stop_on_signal(stop: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        stop.cancel();
        either(&mut terminate, &mut interrupt).await;
        tracing::warn!(
            "second signal: ending at once; what was under way is taken up at the next start"
        );
        exit_at_once();
    });
    Ok(())
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[expect(
    clippy::exit,
    reason = "the person asked twice; every step before this one is safe to lose"
)]
fn exit_at_once() {
    std::process::exit(130);
}
