//! Puts a message together.

use super::super::marker::MARKER;
use super::super::prose::missing_fence;
use super::quote::{Keep, Quote};
use crate::model::text::{clean, one_line};
use crate::model::{Detail, Edit, Event, EventKind, ItemKind, Repeat, WorkItemRef};

const TITLE_CAP: usize = 256;
const HUNK_CAP: usize = 3000;
const CI_CAP: usize = 4000;
const URL_CAP: usize = 500;

/// What the placeholders of a template stand for.
#[derive(Debug)]
pub(super) struct Values(Vec<(&'static str, String)>);

impl Values {
    pub(super) fn new(
        work_item: &WorkItemRef,
        first: &Event,
        rest: &[Event],
        directive: &str,
    ) -> Self {
        let title = Quote {
            label: &format!(
                "The title of {}, in the words of whoever opened it",
                item_name(first)
            ),
            info: "text",
            text: &one_line(&first.title, usize::MAX),
            cap: TITLE_CAP,
            keep: Keep::Start,
            url: &url(first),
        };
        Self(vec![
            ("actor", actor(first)),
            ("event", what(first, rest)),
            ("interaction", directive.to_owned()),
            ("marker", MARKER.to_owned()),
            ("repository", work_item.repo().to_string()),
            ("text", text(first, rest)),
            ("title", title.render()),
            ("url", url(first)),
            ("work_item", work_item.short()),
        ])
    }

    pub(super) fn get(&self, name: &str) -> &str {
        let value = self.0.iter().find(|(known, _)| *known == name);
        value.map_or("", |(_, value)| value)
    }
}

/// Returns the first line of a message: who did what, on which item, and where it stands.
///
/// Holds nothing that a stranger could choose.
pub(super) fn header(work_item: &WorkItemRef, first: &Event, rest: &[Event]) -> String {
    let by = match (&first.actor, &first.edit) {
        (None, _) => String::new(),
        (Some(_), Edit::By(editor)) if Some(editor) != first.actor.as_ref() => {
            format!(
                " by {}, edited by @{}",
                actor(first),
                one_line(editor.as_str(), 60)
            )
        }
        (Some(_), Edit::By(_)) => format!(" by {}, edited", actor(first)),
        (Some(_), Edit::Never | Edit::ByNobody) => format!(" by {}", actor(first)),
    };
    line(&format!("{}{by}", what(first, rest)), work_item, first)
}

/// Returns the first line of a new agent's first message.
pub(super) fn spawn_header(work_item: &WorkItemRef, first: &Event, rest: &[Event]) -> String {
    let by = first
        .actor
        .as_ref()
        .map_or(String::new(), |_| format!(" by {}", actor(first)));
    line(
        &format!("start, after {}{by}", what(first, rest)),
        work_item,
        first,
    )
}

fn line(act: &str, work_item: &WorkItemRef, event: &Event) -> String {
    let item = event.item();
    let on = match item == *work_item {
        true => item.short(),
        false => format!("{}, which belongs to {}", item.short(), work_item.short()),
    };
    let url = url(event);
    let gap = if url.is_empty() { "" } else { ": " };
    one_line(&format!("[the-loop] {act} on {on}{gap}{url}"), 1500)
}

/// Joins the header and what follows; nothing before the header, no control characters anywhere.
pub(super) fn whole(header: &str, body: &str, repeat: Repeat) -> String {
    let notice = match repeat {
        Repeat::No => "",
        Repeat::Possible => {
            "\n(This may be a repeat: the session ended while it was being handed over. What you did for it \
             already, do not do again.)"
        }
    };
    let body = clean(body);
    let body = body.trim_matches('\n').trim_end();
    let gap = if body.is_empty() { "" } else { "\n\n" };
    format!("{header}{notice}{gap}{body}")
}

fn actor(event: &Event) -> String {
    event.actor.as_ref().map_or_else(
        || "nobody".to_owned(),
        |login| format!("@{}", one_line(login.as_str(), 60)),
    )
}

/// Where the event stands on GitHub; nothing where somebody else chose the address.
///
/// The address of a commit status is whatever its CI wrote there: it is quoted with the rest of it.
fn url(event: &Event) -> String {
    let is_address = (event.url.starts_with("https://") || event.url.starts_with("http://"))
        && event.url.bytes().all(|byte| byte.is_ascii_graphic());
    if is_address && event.kind != EventKind::Status {
        one_line(&event.url, URL_CAP)
    } else {
        String::new()
    }
}

fn item_name(event: &Event) -> String {
    let kind = match event.on {
        ItemKind::Issue => "issue",
        ItemKind::PullRequest => "pull request",
    };
    format!("{kind} {}", event.item().short())
}

/// Names what happened, in words of ours only.
fn what(first: &Event, rest: &[Event]) -> String {
    let comments = rest
        .iter()
        .chain([first])
        .filter(|event| event.kind == EventKind::ReviewComment)
        .count();
    match (first.kind, &first.detail) {
        (EventKind::Review | EventKind::ReviewComment, _) if !rest.is_empty() => {
            let comments = match comments {
                1 => "1 comment".to_owned(),
                n => format!("{n} comments"),
            };
            match rest.iter().chain([first]).find_map(verdict) {
                Some(verdict) => format!("review ({verdict}, {comments})"),
                None => format!("review ({comments})"),
            }
        }
        (EventKind::Review, _) => {
            verdict(first).map_or("review".to_owned(), |v| format!("review ({v})"))
        }
        (EventKind::ReviewComment, _) => "review comment".to_owned(),
        (EventKind::IssueComment, _) => "comment".to_owned(),
        (EventKind::WorkflowRun | EventKind::CheckRun | EventKind::Status, _) => {
            "CI failure".to_owned()
        }
        (EventKind::Armed, _) => "label".to_owned(),
        (EventKind::Closed, Detail::Closed { merged: true }) => "merge".to_owned(),
        (EventKind::Closed, _) => "closing".to_owned(),
        (EventKind::Command, Detail::Command { command }) => format!("command {command}"),
        (EventKind::Command, _) => "command".to_owned(),
    }
}

fn verdict(event: &Event) -> Option<&'static str> {
    match &event.detail {
        Detail::Review { state, .. } => match state.as_str() {
            "approved" => Some("approved"),
            "changes_requested" => Some("changes requested"),
            _ => None,
        },
        _ => None,
    }
}

/// Returns what was said, and what it refers to.
fn text(first: &Event, rest: &[Event]) -> String {
    if rest.is_empty() {
        return said(first);
    }
    let mut events: Vec<&Event> = rest.iter().chain([first]).collect();
    events.sort_by_key(|event| place(event));
    let comments = events
        .iter()
        .filter(|event| event.kind == EventKind::ReviewComment)
        .count();
    let mut number = 0;
    let parts = events.into_iter().map(|event| {
        let text = said(event);
        if event.kind != EventKind::ReviewComment {
            return text;
        }
        number += 1;
        let by = if event.actor == first.actor {
            String::new()
        } else {
            format!(" by {}", actor(event))
        };
        let url = url(event);
        let gap = if url.is_empty() { "" } else { " " };
        format!("Comment {number} of {comments}{by}:{gap}{url}\n{text}")
    });
    parts
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// The order within a review: what it says in general, then its comments as they stand in the files.
fn place(event: &Event) -> (bool, &str, u64, chrono::DateTime<chrono::Utc>, &str) {
    let (path, line) = match &event.detail {
        Detail::Line { path, line, .. } => (path.as_str(), line.unwrap_or(u64::MAX)),
        _ => ("", 0),
    };
    (
        event.kind == EventKind::ReviewComment,
        path,
        line,
        event.occurred_at,
        event.key.as_str(),
    )
}

fn said(event: &Event) -> String {
    match &event.detail {
        Detail::Line {
            path,
            line,
            diff_hunk,
            ..
        } => {
            let at = line.map_or(String::new(), |line| format!("\nline {line}"));
            let quote = Quote {
                label: "On this place, quoted from the pull request",
                info: "diff",
                text: &format!("{}{at}\n{diff_hunk}", one_line(path, 1000)),
                cap: HUNK_CAP,
                keep: Keep::End,
                url: &url(event),
            };
            format!("{}\n\n{}", quote.render(), own_words(event))
        }
        Detail::Ci { .. } => ci(event),
        _ => own_words(event),
    }
}

/// The words of the one who acted; code that they left open is closed, so that it ends with them.
fn own_words(event: &Event) -> String {
    let text = clean(&event.body);
    let text = text.trim_matches('\n').trim_end();
    missing_fence(text).map_or_else(|| text.to_owned(), |fence| format!("{text}\n{fence}"))
}

fn ci(event: &Event) -> String {
    let Detail::Ci {
        name,
        conclusion,
        head_sha,
        head_branch,
        attempt,
        summary,
    } = &event.detail
    else {
        return String::new();
    };
    let mut facts = vec![
        one_line(name, 200),
        format!("conclusion: {}", one_line(conclusion, 60)),
        format!("commit: {}", one_line(head_sha, 64)),
    ];
    if let Some(branch) = head_branch {
        facts.push(format!("branch: {}", one_line(branch, 250)));
    }
    if let Some(attempt) = attempt.filter(|attempt| *attempt > 1) {
        facts.push(format!("attempt: {attempt}"));
    }
    if event.kind == EventKind::Status && !event.url.is_empty() {
        facts.push(format!("link: {}", one_line(&event.url, URL_CAP)));
    }
    if !summary.trim().is_empty() {
        facts.push(format!("\n{}", summary.trim()));
    }
    let quote = Quote {
        label: "A check of the head commit failed. What it says of itself, in the words of whoever wrote it",
        info: "text",
        text: &facts.join("\n"),
        cap: CI_CAP,
        keep: Keep::Start,
        url: &url(event),
    };
    quote.render()
}
