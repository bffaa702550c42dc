//! Faults that a test plants, to see that the simulation of the whole finds them.
//!
//! Only a build with debug assertions has them, and in it only a thread that planted one.

use std::cell::Cell;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Texts are pasted whether or not their tokens say that they are in.
    NoTokens,
    /// A text counts as delivered before its Enter was pressed.
    NoEnter,
    /// The session of another item takes an item's texts and commands.
    AnySession,
    /// What came last is said first.
    LastFirst,
    /// What is given up is not said.
    Silence,
    /// Everybody's words count.
    Anybody,
    /// Nothing is ever given up.
    Endless,
    /// What was said is never settled.
    Unsettled,
    /// A session of which nothing is known is dead.
    UnknownIsDead,
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Plants a fault in all that this thread does from now on, or takes it out.
pub fn plant(fault: Option<Planted>) {
    PLANTED.set(fault);
}

pub(crate) fn is_planted(fault: Planted) -> bool {
    cfg!(debug_assertions) && PLANTED.get() == Some(fault)
}
