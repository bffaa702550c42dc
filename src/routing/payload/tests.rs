use super::*;

fn item() -> ItemInput {
    ItemInput {
        repo: "Octo/app".parse().unwrap(),
        repo_id: Some(77),
        number: 15,
        on: ItemKind::PullRequest,
        title: "Flaky login test".into(),
        url: "https://github.com/octo/app/pull/15".into(),
    }
}

fn text(body: &str) -> TextInput {
    TextInput {
        id: 2451,
        body: body.into(),
        author: Some(Login::new("octocat")),
        edit: Edit::Never,
        url: "https://github.com/octo/app/pull/15#issuecomment-2451".into(),
        created_at: DateTime::UNIX_EPOCH,
    }
}

fn ci(conclusion: &str) -> CiInput {
    CiInput {
        id: 9,
        name: "build".into(),
        conclusion: conclusion.into(),
        head_sha: "abc".into(),
        head_branch: None,
        summary: "a\r\nb".into(),
        actor: None,
        url: String::new(),
        finished_at: DateTime::UNIX_EPOCH,
    }
}

#[test]
fn a_key_names_kind_number_and_version() {
    let version = content_version("", "hello");
    assert_eq!(
        issue_comment(&item(), &text("hello")).key.as_str(),
        format!("github.com:issue_comment:2451@{version}")
    );
    assert_eq!(
        workflow_run(&item(), ci("failure"), 2)
            .unwrap()
            .key
            .as_str(),
        "github.com:workflow_run:9@2"
    );
    assert_eq!(
        status(&item(), ci("error")).unwrap().key.as_str(),
        "github.com:status:9"
    );
}

#[test]
fn an_event_says_whose_it_is_and_where_it_stands() {
    let edit = Edit::By(Login::new("hubot"));
    let edited = TextInput {
        edit: edit.clone(),
        ..text("hello")
    };
    let said = issue_comment(&item(), &edited);
    assert_eq!(said.actor, edited.author);
    assert_eq!(said.edit, edit);
    assert_eq!(said.url, edited.url);

    let input = CiInput {
        actor: Some(Login::new("octocat")),
        url: "https://x/run".into(),
        ..ci("failure")
    };
    let failure = workflow_run(&item(), input, 2).unwrap();
    assert_eq!(failure.actor, Some(Login::new("octocat")));
    assert_eq!(failure.url, "https://x/run");
    let detail = Detail::Ci {
        name: "build".into(),
        conclusion: "failure".into(),
        head_sha: "abc".into(),
        head_branch: None,
        attempt: Some(2),
        summary: "a\nb".into(),
    };
    assert_eq!(failure.detail, detail);
}

#[test]
fn a_check_that_ran_again_under_its_number_is_another_failure() {
    let key = |finished_at| {
        let check = CiInput {
            finished_at,
            ..ci("failure")
        };
        check_run(&item(), check, "other").unwrap().key
    };
    let first = DateTime::UNIX_EPOCH;
    assert_eq!(key(first), key(first));
    assert_ne!(key(first), key(first + chrono::TimeDelta::seconds(1)));
}

#[test]
fn a_text_keeps_its_identity_over_line_ends_and_changes_it_with_its_words() {
    let key = |body: &str| issue_comment(&item(), &text(body)).key;
    assert_eq!(key("a\r\nb"), key("a\nb"));
    assert_ne!(key("a"), key("b"));
    assert_eq!(issue_comment(&item(), &text("a\r\nb")).body, "a\nb");
}

#[test]
fn a_review_has_one_identity_however_its_state_is_spelled() {
    let spelled = |state| review(&item(), &text("x"), state).unwrap();
    assert_eq!(spelled("approved").review_id(), Some(2451));
    assert_eq!(spelled("CHANGES_REQUESTED"), spelled("changes_requested"));
    assert_ne!(spelled("approved").key, spelled("commented").key);
    assert_eq!(review(&item(), &text("x"), "PENDING"), None);
    assert_eq!(review(&item(), &text("x"), "dismissed"), None);
}

#[test]
fn only_failures_are_events() {
    for (conclusion, expected) in [
        ("failure", true),
        ("timed_out", true),
        ("startup_failure", true),
        ("error", true),
        ("success", false),
        ("cancelled", false),
        ("skipped", false),
        ("neutral", false),
        ("stale", false),
        ("action_required", false),
        ("pending", false),
        ("", false),
    ] {
        assert_eq!(
            workflow_run(&item(), ci(conclusion), 1).is_some(),
            expected,
            "{conclusion}"
        );
        assert_eq!(
            status(&item(), ci(conclusion)).is_some(),
            expected,
            "{conclusion}"
        );
        assert_eq!(
            check_run(&item(), ci(conclusion), "other").is_some(),
            expected,
            "{conclusion}"
        );
        assert_eq!(check_run(&item(), ci(conclusion), "github-actions"), None);
    }
}

#[test]
fn a_review_comment_knows_its_place_and_its_review() {
    let line = LineInput {
        review_id: Some(5),
        path: "src/a.rs".into(),
        line: Some(12),
        diff_hunk: "@@\r\n+x".into(),
    };
    let event = review_comment(&item(), &text("why?"), line);
    assert_eq!(event.review_id(), Some(5));
    assert!(matches!(event.detail, Detail::Line { diff_hunk, .. } if diff_hunk == "@@\n+x"));
}
