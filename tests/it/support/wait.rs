//! Waiting for what must come true, never for time to pass.

use std::time::{Duration, Instant};

/// How long anything may take on a slow, busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Waits until the condition holds; fails with what was waited for.
pub(crate) fn wait_until(what: &str, deadline: Duration, mut holds: impl FnMut() -> bool) {
    let answer = poll(deadline, || holds().then_some(()));
    assert!(answer.is_some(), "waited {deadline:?} for: {what}");
}

/// Waits until there is an answer, and returns it.
pub(crate) fn eventually<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    poll(SOON, ask).unwrap_or_else(|| panic!("waited {SOON:?} for: {what}"))
}

/// Asks again and again until there is an answer or the deadline has passed.
pub(crate) fn poll<T>(deadline: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + deadline;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
