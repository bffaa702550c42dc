//! Which process is which, and whether it still runs.
