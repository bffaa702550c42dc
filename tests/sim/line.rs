//! Who waits for the database, and who is let in next: one at a time, as the story has it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sqlx::{Connection as _, SqliteConnection};
use the_loop::store::{Turns, Use};
use tokio::sync::oneshot;

use crate::numbers::Numbers;
use crate::pulse::{KilledAt, Pulse};

/// Those who wait, of all daemons; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    waiting: Arc<Mutex<Vec<oneshot::Sender<()>>>>,
    full: Arc<AtomicBool>,
}

impl Line {
    /// Says whether the disk is full from now on.
    pub(crate) fn fill_disk(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    /// Lets one in; false where nobody waits.
    pub(crate) fn let_one_in(&self, numbers: &mut Numbers) -> bool {
        let mut waiting = self.waiting.lock().unwrap();
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
        self.waiting.lock().unwrap().push(place);
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
    fn wait(
        &self,
        what: Use,
    ) -> Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + '_>> {
        Box::pin(async move {
            let this_one = KilledAt::Store(self.uses.fetch_add(1, Ordering::Relaxed));
            if self.killed_at == Some(this_one) {
                self.pulse.stop();
            }
            self.pulse.live().await;
            self.line.wait().await;
            if what == Use::Writing && self.line.full.load(Ordering::Relaxed) {
                return Err(disk_is_full());
            }
            Ok(())
        })
    }
}

/// What `SQLite` says when no space is left; from a database of its own, which may not grow.
fn disk_is_full() -> sqlx::Error {
    let fill = async {
        let mut conn = SqliteConnection::connect(":memory:").await.unwrap();
        sqlx::raw_sql("CREATE TABLE full (x); PRAGMA max_page_count = 2")
            .execute(&mut conn)
            .await
            .unwrap();
        let more = "INSERT INTO full VALUES (zeroblob(100000))";
        sqlx::raw_sql(more).execute(&mut conn).await.unwrap_err()
    };
    // On another thread: this one is inside the story's runtime, and must not go on meanwhile.
    let filled = std::thread::scope(|scope| {
        let filling = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(fill)
        });
        filling.join()
    });
    filled.unwrap()
}
