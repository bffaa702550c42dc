//! When an instant is over: everybody waits for time, and the store for nobody.
//!
//! The runtime asks just before its thread goes to sleep, so nobody has to look again and again.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use the_loop::store::Store;
use tokio::sync::Notify;

/// What waits for the end of an instant; one on each thread.
#[derive(Debug, Clone)]
pub(crate) struct Rest(Arc<State>);

#[derive(Debug)]
struct State {
    store: Store,
    is_awaited: AtomicBool,
    came: Notify,
}

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<Rest>> = const { RefCell::new(None) };
}

impl Rest {
    pub(crate) fn of(store: &Store) -> Self {
        let rest = Self(Arc::new(State {
            store: store.clone(),
            is_awaited: AtomicBool::new(false),
            came: Notify::new(),
        }));
        OF_THIS_THREAD.set(Some(rest.clone()));
        rest
    }

    /// Returns when nobody can go on and the store is at rest.
    pub(crate) async fn comes(&self) {
        self.0.is_awaited.store(true, Ordering::Relaxed);
        self.0.came.notified().await;
    }
}

/// What the runtime calls when none of its tasks can go on.
pub(crate) fn nobody_can_go_on() {
    OF_THIS_THREAD.with_borrow(|rest| {
        if let Some(Rest(state)) = rest
            && state.store.is_at_rest()
            && state.is_awaited.swap(false, Ordering::Relaxed)
        {
            state.came.notify_one();
        }
    });
}

/// Lets a story go that has ended.
pub(crate) fn forget() {
    OF_THIS_THREAD.set(None);
}
