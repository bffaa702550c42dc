//! What each reason means, and what a person can do about it.
//!
//! `events --explain` says it for one event, and the tables of `docs/operations.md` are made from it.

use super::decision::SpawnFailure;
use crate::model::{DropReason, HoldReason};

/// What a reason means and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// What it means.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

const fn advice(meaning: &'static str, remedy: &'static str) -> Advice {
    Advice { meaning, remedy }
}

/// Explains why something was decided against.
#[must_use]
pub fn drop_advice(reason: DropReason) -> Advice {
    match reason {
        DropReason::UnauthorizedActor => advice(
            "Who wrote, labelled or edited is not in `routing.authorizedUsers`, or cannot be learned.",
            "Add the login if it should count; then comment again.",
        ),
        DropReason::SelfAuthored => advice(
            "The text ends with our marker: an agent wrote it.",
            "Nothing.",
        ),
        DropReason::SpawnPolicy => advice(
            "There is no session, and the item does not carry the label.",
            "Label it, or set `routing.spawnOnUnmatched`.",
        ),
        DropReason::AwaitingStart => advice(
            "The item is labelled, but nobody said start since.",
            "Comment `the-loop start`, or run `the-loop sessions start`.",
        ),
        DropReason::SessionPaused => advice(
            "It came while the session was paused; it is not replayed.",
            "Resume the session; say again what still matters.",
        ),
        DropReason::SessionStopped => advice(
            "It waited when the session was stopped.",
            "Start the session; say again what still matters.",
        ),
        DropReason::ItemClosed => advice(
            "The issue or pull request is closed.",
            "Reopen it; then comment `the-loop start`, as the closing ended what was started.",
        ),
        DropReason::SessionOccupied => advice(
            "The tmux name is held by something that has ended and that tmux does not clear away.",
            "Look at it (`tmux ls`), remove it, comment again.",
        ),
        DropReason::Superseded => advice(
            "A newer version of the text came before this one was delivered.",
            "Nothing; the newer one counts.",
        ),
        DropReason::ControlAmbiguous => advice(
            "One comment holds two different control words.",
            "Comment the one that is meant.",
        ),
        DropReason::NothingToResume => advice(
            "Resume was said, and nothing is paused.",
            "Perhaps `the-loop start` was meant.",
        ),
        DropReason::EmptyReview => advice(
            "A review without a text; its inline comments are delivered.",
            "Nothing.",
        ),
        DropReason::AlreadyRunning => advice(
            "The item was labelled again, and its session runs.",
            "Nothing.",
        ),
        DropReason::NoSession => advice(
            "Stop, pause or close was asked for, and there is no open session. A stop or pause is remembered all the same.",
            "Nothing.",
        ),
        DropReason::ByOperator => advice(
            "A command on this machine failed, and no poller runs that would try it again.",
            "Put the cause right; give the command again.",
        ),
        DropReason::Reset => advice(
            "The work item was reset while it waited, or after it was given up.",
            "Say again what still matters.",
        ),
    }
}

/// What keeps an Enter out for longer than a moment.
const LET_ENTER_IN: &str = "Usually nothing. If it stays: leave copy mode with `q`; where input of the pane is switched off, `tmux select-pane -e -t …`.";

/// Explains what something waits for.
#[must_use]
pub fn hold_advice(reason: HoldReason) -> Advice {
    match reason {
        HoldReason::TmuxSilent => advice(
            "The tmux server does not answer; it is asked every 10 seconds.",
            "Usually nothing. If it stays: see why the machine or tmux hangs. Never kill tmux, the agents live in it.",
        ),
        HoldReason::AgentOutlivesSession => advice(
            "The tmux session is gone, its agent still runs; a second one is not started.",
            "Look at the process (`the-loop sessions show`); end it yourself when it is done.",
        ),
        HoldReason::Unsent => advice(
            "It was typed, and the Enter is still to come.",
            LET_ENTER_IN,
        ),
        HoldReason::EnterPending => advice(
            "The message before it was typed, and the Enter of that is still to come.",
            LET_ENTER_IN,
        ),
        HoldReason::NoAgent => advice(
            "The session shows no agent: a shell that we did not start, or the windows of another session.",
            "Attach and start the agent there, or close or rename the session.",
        ),
        HoldReason::PaneInMode => advice(
            "Somebody scrolls in the pane (copy mode).",
            "Leave it with `q`. Copy mode that nobody watches is left by itself.",
        ),
        HoldReason::InputOff => advice(
            "Input of the pane is switched off in tmux.",
            "`tmux select-pane -e -t …`.",
        ),
        HoldReason::Starting => advice(
            "The agent was started moments ago.",
            "Nothing; `harnesses.<name>.readyDelaySeconds` says how long.",
        ),
        HoldReason::SessionPaused => advice(
            "It waited when the session was paused.",
            "`the-loop sessions resume`, or comment `the-loop resume`.",
        ),
        HoldReason::Rate => advice(
            "The agent was told 25 messages within 30 minutes: it seems that comments answer each other. It goes on 30 minutes after the last one.",
            "See who answers whom: an agent that comments under a listed login hears itself. Give it a login of its own; stop it with `the-loop stop`, which is not held.",
        ),
        HoldReason::MakingWay => advice("A command for the item goes first.", "Nothing."),
        HoldReason::Grouping => advice(
            "The rest of a review is still coming in, 15 seconds at most.",
            "Nothing.",
        ),
        HoldReason::StartRetry => advice(
            "A start failed, or waits, and is tried again; a later stop, pause or close replaces it.",
            "See why with `the-loop events --explain`; put the cause right.",
        ),
        HoldReason::StartUnresolved => advice(
            "An agent was started, or may have been, and what became of it cannot be told: its session is not found, say. No second one is started, and it is looked up every 5 seconds.",
            "The detail in the event log says what is amiss. Where it names a process, look at it and end it yourself: the rest then goes on. Where it names a file that cannot be read: make it readable, or, when you have made sure that no agent of the item runs any more, remove that file.",
        ),
    }
}

/// The reason as the log writes it.
fn word(reason: SpawnFailure) -> String {
    // A variant without fields serialises to its name.
    let word = serde_json::to_value(reason).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// Explains why an agent could not be started, by the word in the log.
#[must_use]
pub fn spawn_advice_of(logged: &str) -> Option<Advice> {
    let all = SpawnFailure::ALL.iter().copied();
    all.clone()
        .find(|reason| word(*reason) == logged)
        .map(spawn_advice)
}

fn spawn_advice(reason: SpawnFailure) -> Advice {
    match reason {
        SpawnFailure::NameTakenLive => advice(
            "A live session that is not registered holds the name; it is neither killed nor adopted.",
            "Look at it; give it another name (`tmux rename-session -t …`), or end it (`tmux kill-session -t …`) when nobody needs it. The next attempt goes on by itself; after the last, comment `the-loop start`. `sessions reset` does not help: it forgets only what is recorded.",
        ),
        SpawnFailure::FormerAgentLive => advice(
            "The agent of a closed session of this work item still runs, under the name or elsewhere.",
            "Let it end or end it yourself; the error names its process and its tmux. Then start again.",
        ),
        SpawnFailure::HarnessEnded => advice(
            "The agent ended as soon as it was started; the error holds the last lines of its screen.",
            "Start it by hand in the same directory and see what it says.",
        ),
        SpawnFailure::TmuxUnanswered => advice(
            "tmux did not answer.",
            "Usually nothing; it is tried again. If it stays: see why the machine or tmux hangs.",
        ),
        SpawnFailure::TmuxRefused => advice(
            "tmux answered with an error, which is quoted; or its global `window-size` is `manual`, and \
             before tmux 3.7 a new session would crash the server with all that is on it. A \
             server that is only just started reads it in `~/.tmux.conf` and ends: `server exited \
             unexpectedly`.",
            "Put right what it says; `tmux set-option -gw window-size latest`, and the same in \
             `~/.tmux.conf`.",
        ),
        SpawnFailure::NotPrepared => advice(
            "The workspace or the harness could not be made ready.",
            "Put right what the error says, in the configuration or on the disk.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    use crate::references::{assert_up_to_date, docs, spliced};

    /// The tables of the page, by the mark that each stands at.
    fn reason_tables() -> [(&'static str, String); 3] {
        let dropped = DropReason::ALL
            .iter()
            .map(|r| (r.to_string(), drop_advice(*r)));
        let held = HoldReason::ALL
            .iter()
            .map(|r| (r.to_string(), hold_advice(*r)));
        let not_started = SpawnFailure::ALL
            .iter()
            .map(|r| (word(*r), spawn_advice(*r)));
        [
            ("dropped", table(dropped)),
            ("held", table(held)),
            ("not started", table(not_started)),
        ]
    }

    fn table(reasons: impl Iterator<Item = (String, Advice)>) -> String {
        let mut table = String::from("| reason | what it means | what to do |\n|---|---|---|\n");
        for (word, Advice { meaning, remedy }) in reasons {
            // Writing to a string cannot fail.
            let _infallible = writeln!(table, "| `{word}` | {meaning} | {remedy} |");
        }
        table.trim_end().to_owned()
    }

    #[test]
    fn the_references_of_reasons_are_up_to_date() {
        let mut page = std::fs::read_to_string(docs("operations.md")).unwrap();
        for (heading, table) in reason_tables() {
            let marks = ["begin", "end"].map(|mark| format!("<!-- {mark} {heading} -->"));
            page = spliced(&page, [&marks[0], &marks[1]], &table);
        }
        assert_up_to_date("operations.md", &page);
    }
}
