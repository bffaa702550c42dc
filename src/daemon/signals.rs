//! Signals: the first asks the daemon to stop, the second ends it at once.

use std::io::IsTerminal;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at the first SIGTERM or SIGINT, and ends the process at the second, once
/// `last_words` has returned.
///
/// A terminal that is closed under a daemon in the foreground is a SIGTERM too.
///
/// # Errors
/// When the handlers cannot be installed.
pub(super) fn stop_on_signal(
    stop: CancellationToken,
    last_words: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Without a terminal the signal stays as it is: `nohup` has switched it off.
    let on_terminal = std::io::stdout().is_terminal() || std::io::stdin().is_terminal();
    let mut hang_up = if on_terminal {
        Some(signal(SignalKind::hangup())?)
    } else {
        None
    };
    tokio::spawn(async move {
        tokio::select! {
            () = either(&mut terminate, &mut interrupt) => {}
            () = hung_up(&mut hang_up) => {}
        }
        stop.cancel();
        either(&mut terminate, &mut interrupt).await;
        tracing::warn!(
            "second signal: ending at once; what was under way is taken up at the next start"
        );
        last_words();
        exit_at_once();
    });
    Ok(())
}

async fn hung_up(hang_up: &mut Option<Signal>) {
    match hang_up {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
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
