//! What comes in: GitHub is observed, and what happened there is accepted into the inbox.
//!
//! An ingress judges by the guards and accepts; it never decides what happens next and never calls
//! the dispatcher. Every ingress uses the same keys, so what two of them see is one event.

pub mod poll;
