//! Decides whether an event may pass, before anything else reads its text.

use super::control::{self, Words};
use super::marker;
use super::policy::Policy;
use crate::model::{ControlCommand, Detail, DropReason, Edit, Event, EventKind};

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes to the work item's session.
    Deliver,
    /// It commands something; its text is for nobody but a session that it starts.
    Control(ControlCommand),
    /// It goes no further.
    Drop(DropReason),
}

/// Judges an event by the policy; called at accept, and again at claim with the policy of that time.
///
/// Whether a start meets an armed item, and whose head a CI event belongs to, is not seen from here.
#[must_use]
pub fn judge(event: &Event, policy: &Policy) -> Verdict {
    match event.kind {
        EventKind::IssueComment | EventKind::Review | EventKind::ReviewComment => {
            judge_text(event, policy)
        }
        // A command comes from whoever may write the store; a closing can only close; CI is bound to a
        // head in the same repository by whoever makes the event.
        EventKind::Command
        | EventKind::Closed
        | EventKind::WorkflowRun
        | EventKind::CheckRun
        | EventKind::Status => Verdict::Deliver,
        EventKind::Armed => match policy.authorizes(event.actor.as_ref()) {
            true => Verdict::Deliver,
            false => Verdict::Drop(DropReason::UnauthorizedActor),
        },
    }
}

fn judge_text(event: &Event, policy: &Policy) -> Verdict {
    if marker::is_own(&event.body) {
        return Verdict::Drop(DropReason::SelfAuthored);
    }
    if says_nothing(event) {
        return Verdict::Drop(DropReason::EmptyReview);
    }
    let editor_listed = match &event.edit {
        Edit::Never => true,
        Edit::By(editor) => policy.authorizes(Some(editor)),
        Edit::ByNobody => false,
    };
    if !policy.authorizes(event.actor.as_ref()) || !editor_listed {
        return Verdict::Drop(DropReason::UnauthorizedActor);
    }
    // An edit corrects what was said; it never commands, or every correction would command again.
    let Some(words) = policy.control().filter(|_| event.edit == Edit::Never) else {
        return Verdict::Deliver;
    };
    match control::parse(&event.body, words) {
        Words::None => Verdict::Deliver,
        Words::One(command) => Verdict::Control(command),
        Words::Ambiguous => Verdict::Drop(DropReason::ControlAmbiguous),
    }
}

/// Tells whether a review is only the cover of its inline comments, which come by themselves.
fn says_nothing(event: &Event) -> bool {
    let verdict = match &event.detail {
        Detail::Review { state, .. } => matches!(state.as_str(), "approved" | "changes_requested"),
        _ => return false,
    };
    !verdict && event.body.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use crate::model::OperatorCommand;

    use super::super::policy::ControlWords;
    use super::*;
    use crate::config::SpawnPolicy;
    use crate::model::{EventKey, ItemKind, Login, RepoRef};

    fn policy(users: &[&str]) -> Policy {
        let users = users.iter().map(|user| Login::new(user));
        Policy::new(users, SpawnPolicy::Labeled, Some(ControlWords::default()))
    }

    fn event(kind: EventKind, actor: Option<&str>, body: &str) -> Event {
        Event {
            key: EventKey::new("github.com", kind, "1", "v"),
            kind,
            repo: RepoRef::new("github.com", "octo", "app").unwrap(),
            repo_id: Some(1),
            number: 15,
            on: ItemKind::Issue,
            actor: actor.map(Login::new),
            edit: Edit::Never,
            title: "the-loop stop".into(),
            body: body.into(),
            url: String::new(),
            occurred_at: chrono::DateTime::UNIX_EPOCH,
            detail: Detail::None,
        }
    }

    fn comment(actor: Option<&str>, body: &str) -> Event {
        event(EventKind::IssueComment, actor, body)
    }

    const STRANGER: Verdict = Verdict::Drop(DropReason::UnauthorizedActor);

    #[test]
    fn only_a_listed_login_passes() {
        for (name, actor, users, expected) in [
            (
                "listed",
                Some("octocat"),
                &["octocat"][..],
                Verdict::Deliver,
            ),
            (
                "listed in another case",
                Some("OctoCat"),
                &["octocat"],
                Verdict::Deliver,
            ),
            ("a stranger", Some("mallory"), &["octocat"], STRANGER),
            (
                "a bot of the same name",
                Some("octocat[bot]"),
                &["octocat"],
                STRANGER,
            ),
            ("a deleted account", None, &["octocat"], STRANGER),
            (
                "an account without a name",
                Some(""),
                &["octocat", ""],
                STRANGER,
            ),
            ("an empty list", Some("octocat"), &[], STRANGER),
        ] {
            assert_eq!(
                judge(&comment(actor, "hello"), &policy(users)),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn an_edit_needs_a_listed_author_and_a_listed_editor_and_commands_nothing() {
        let edited = |edit, actor, body| Event {
            edit,
            ..comment(Some(actor), body)
        };
        let by = |login| Edit::By(Login::new(login));
        let policy = policy(&["octocat", "hubot"]);
        for (name, event, expected) in [
            (
                "by the author",
                edited(by("octocat"), "octocat", "x"),
                Verdict::Deliver,
            ),
            (
                "by another listed one",
                edited(by("Hubot"), "octocat", "x"),
                Verdict::Deliver,
            ),
            (
                "by a stranger",
                edited(by("mallory"), "octocat", "x"),
                STRANGER,
            ),
            (
                "of a stranger's text",
                edited(by("octocat"), "mallory", "x"),
                STRANGER,
            ),
            (
                "by nobody",
                edited(Edit::ByNobody, "octocat", "x"),
                STRANGER,
            ),
            (
                "with a control word",
                edited(by("octocat"), "octocat", "the-loop stop"),
                Verdict::Deliver,
            ),
        ] {
            assert_eq!(judge(&event, &policy), expected, "{name}");
        }
    }

    #[test]
    fn control_words_count_in_every_text_and_nowhere_else() {
        let policy = policy(&["octocat"]);
        for kind in [
            EventKind::IssueComment,
            EventKind::Review,
            EventKind::ReviewComment,
        ] {
            let judged = judge(&event(kind, Some("octocat"), "the-loop stop"), &policy);
            assert_eq!(judged, Verdict::Control(ControlCommand::Stop), "{kind}");
            assert_eq!(
                judge(&event(kind, Some("mallory"), "the-loop stop"), &policy),
                STRANGER,
                "{kind}"
            );
        }
        let both = comment(Some("octocat"), "the-loop start\nthe-loop stop");
        assert_eq!(
            judge(&both, &policy),
            Verdict::Drop(DropReason::ControlAmbiguous)
        );
        let ci = event(EventKind::WorkflowRun, None, "the-loop stop");
        assert_eq!(judge(&ci, &policy), Verdict::Deliver);
    }

    #[test]
    fn without_control_words_everything_is_text() {
        let policy = Policy::new([Login::new("octocat")], SpawnPolicy::Always, None);
        assert_eq!(
            judge(&comment(Some("octocat"), "the-loop stop"), &policy),
            Verdict::Deliver
        );
    }

    #[test]
    fn our_own_comments_come_back_to_nobody() {
        let own = marker::stamp("the-loop stop");
        let judged = judge(&comment(Some("octocat"), &own), &policy(&["octocat"]));
        assert_eq!(judged, Verdict::Drop(DropReason::SelfAuthored));
    }

    #[test]
    fn a_review_passes_when_it_says_something() {
        let review = |state: &str, body: &str| Event {
            detail: Detail::Review {
                state: state.into(),
                review_id: 1,
            },
            ..event(EventKind::Review, Some("octocat"), body)
        };
        let policy = policy(&["octocat"]);
        let empty = Verdict::Drop(DropReason::EmptyReview);
        for (state, body, expected) in [
            ("commented", "", empty),
            ("commented", " \n", empty),
            ("dismissed", "", empty),
            ("commented", "x", Verdict::Deliver),
            ("approved", "", Verdict::Deliver),
            ("changes_requested", "", Verdict::Deliver),
        ] {
            assert_eq!(
                judge(&review(state, body), &policy),
                expected,
                "{state} {body:?}"
            );
        }
    }

    #[test]
    fn only_ci_and_closings_may_lack_an_actor() {
        let policy = policy(&["octocat"]);
        for (kind, expected) in [
            (EventKind::WorkflowRun, Verdict::Deliver),
            (EventKind::CheckRun, Verdict::Deliver),
            (EventKind::Status, Verdict::Deliver),
            (EventKind::Closed, Verdict::Deliver),
            (EventKind::Armed, STRANGER),
            (EventKind::IssueComment, STRANGER),
            (EventKind::Review, STRANGER),
            (EventKind::ReviewComment, STRANGER),
        ] {
            assert_eq!(judge(&event(kind, None, "x"), &policy), expected, "{kind}");
        }
    }

    #[test]
    fn a_command_on_this_machine_needs_no_github_login() {
        let command = Event {
            detail: Detail::Command {
                command: OperatorCommand::Pause,
            },
            ..event(EventKind::Command, None, "")
        };
        assert_eq!(judge(&command, &policy(&[])), Verdict::Deliver);
    }
}
