//! What each field means; one name has one meaning, whatever type it stands in.

/// A field's name and meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// What it says, in one line.
    pub meaning: &'static str,
}

macro_rules! fields {
    ($($name:literal: $meaning:literal,)+) => {
        /// Every field of every type, by name.
        pub const FIELDS: &[Field] = &[$(Field { name: $name, meaning: $meaning },)+];
    };
}

fields! {
    "actor": "login of the account that did the act, or of the operator",
    "adopted": "whether the live session came from another spawn and was recorded first",
    "attempt": "which attempt this is, from 1",
    "attempts": "how many attempts were made",
    "chars": "length of the event's own text in the message, in characters; 0 where it has none, as a CI failure",
    "closures": "work items found closed",
    "command": "the control command: `start`, `stop`, `pause` or `resume`",
    "comments_forwarded": "new events that were stored for delivery: comments, reviews, CI failures, labels and closures",
    "count": "how many",
    "cwd": "directory that the harness runs in",
    "cycles": "how many cycles the poller did",
    "deliveries": "numbers of the deliveries in the inbox",
    "delivery": "number of the delivery in the inbox",
    "detail": "what exactly it waits for, where that is known",
    "duration_ms": "how long it took, in milliseconds",
    "effect": "what the command did: `spawned`, `resumed`, `paused`, `stopped` or `noop`",
    "ended": "how the harness had ended: `code:<n>`, `signal:<n>` or `failed`",
    "error": "what went wrong, in words",
    "errors": "what went wrong, one text each",
    "failures": "reads of GitHub that failed in this cycle; as many as `errors`",
    "gh_delivery": "GitHub's own id of a webhook delivery; for an ingress that is still to come, never written yet",
    "harness": "configured name of the agent program",
    "harness_session_id": "the conversation that a respawn resumes",
    "held_ms": "how long it had been held before, in milliseconds",
    "holder": "process that holds the lock",
    "interrupted": "whether it was stopped before its end",
    "interval_seconds": "time between two cycles, in seconds",
    "item_kind": "`issue` or `pull-request`",
    "items_seen": "open work items that are known after the cycle",
    "key": "identity of the event: `<host>:<kind>:<id>@<version>`",
    "kind": "kind of the event: `issue_comment`, `review`, `workflow_run`, …",
    "lock": "path of the lock",
    "max_attempts": "how many attempts there are",
    "merged": "whether a pull request was merged",
    "ok": "whether it worked",
    "once": "whether the poller does one cycle and ends",
    "possible_repeat": "`possible`: marked in the message as maybe read before; else `no`",
    "reason": "why, as one word from a fixed list",
    "remaining": "requests left in GitHub's rate limit",
    "removed": "what was forgotten: `session`, `control` (the last command), `queue` (what waited)",
    "renamed_to": "the new name",
    "repo": "repository",
    "repos": "repositories",
    "requests": "requests sent to GitHub",
    "resumed": "whether the recorded conversation goes on",
    "tmux_target": "name of the tmux session",
    "unchanged": "requests that GitHub answered with `not modified`; they cost no rate limit",
    "until": "when it ends, in UTC",
    "url": "where a person reads it",
    "version": "version of this program",
    "via": "where the command was given: `comment` or `cli`",
    "was_live": "whether the session was live",
    "will_retry": "whether it is tried again by itself, unless it is dropped before",
    "work_item": "the work item",
    "work_items": "the work items",
}
