//! A panic as a value: work that breaks down is a failure to report, not the end of the process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Work broke down in the middle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the-loop broke down here, which is a defect of it: {words}")]
pub struct Panicked {
    words: String,
}

impl Panicked {
    fn new(payload: &(dyn Any + Send)) -> Self {
        let words = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self {
            words: words.unwrap_or("it did not say why").to_owned(),
        }
    }
}

/// Runs `work` to its end, or to its panic; the panic's place was then said on standard error.
///
/// What the work shares with others must be in order at each of its steps, as it has to be for a
/// process that may be killed there.
///
/// # Errors
/// When the work panicked; what it had borrowed is free again.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    std::future::poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(Panicked::new(&*payload))),
        }
    })
    .await
}

#[cfg(test)]
#[expect(clippy::panic, reason = "what is tested")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_value_with_its_words() {
        assert_eq!(caught(async { 7 }).await, Ok(7));

        let number = 7;
        let later = caught(async {
            tokio::task::yield_now().await;
            panic!("no {number}")
        });
        let panicked = later.await.unwrap_err();
        assert!(panicked.to_string().ends_with("defect of it: no 7"));

        let odd = caught(async { std::panic::panic_any(7) });
        let panicked = odd.await.unwrap_err();
        assert!(panicked.to_string().contains("did not say why"));
    }
}
