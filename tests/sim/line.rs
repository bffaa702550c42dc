//! Who waits for the database, and who is let in next: one at a time, as the story has it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use the_loop::store::Turns;
use tokio::sync::oneshot;

use crate::numbers::Numbers;
use crate::pulse::{KilledAt, Pulse};

/// Those who wait, of all daemons; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Arc<Mutex<Vec<oneshot::Sender<()>>>>);

impl Line {
    /// Lets one in; false where nobody waits.
    pub(crate) fn let_one_in(&self, numbers: &mut Numbers) -> bool {
        let mut waiting = self.0.lock().unwrap();
        waiting.retain(|place| !place.is_closed());
        let Some(count) = u64::try_from(waiting.len()).ok().filter(|count| *count > 0) else {
            return false;
        };
        let next = usize::try_from(numbers.below(count)).unwrap();
        waiting.remove(next).send(()).is_ok()
    }

    /// What a daemon waits in.
    pub(crate) fn of(&self, pulse: Pulse, killed_at: Option<KilledAt>) -> Arc<dyn Turns> {
        Arc::new(Place {
            line: self.clone(),
            pulse,
            killed_at,
            uses: AtomicU64::new(0),
        })
    }

    async fn wait(&self) {
        let (place, let_in) = oneshot::channel();
        self.0.lock().unwrap().push(place);
        // A story that ends lets nobody in any more.
        let_in.await.ok();
    }
}

#[derive(Debug)]
struct Place {
    line: Line,
    pulse: Pulse,
    killed_at: Option<KilledAt>,
    uses: AtomicU64,
}

impl Turns for Place {
    fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let this_one = KilledAt::Store(self.uses.fetch_add(1, Ordering::Relaxed));
            if self.killed_at == Some(this_one) {
                self.pulse.stop();
            }
            self.pulse.live().await;
            self.line.wait().await;
        })
    }
}
