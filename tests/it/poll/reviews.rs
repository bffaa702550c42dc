//! Reviews, their comments on lines, and answers to those.

use the_loop::model::{Class, EventKind};

use super::rig::{LABEL, REPO, Rig};

fn review(rig: &Rig, pull: u64, login: &str, state: &str, body: &str) -> u64 {
    rig.github.review(REPO, pull, login, state, body).unwrap()
}

#[tokio::test]
async fn a_verdict_is_told_and_an_empty_remark_is_not() {
    let (rig, pull) = Rig::with_pull().await;
    for (login, state, body) in [
        ("ada", "APPROVED", ""),
        ("grace", "CHANGES_REQUESTED", "not like this"),
        ("ada", "COMMENTED", ""),
        ("ada", "COMMENTED", "hm"),
        ("mallory", "APPROVED", "ship it"),
    ] {
        review(&rig, pull, login, state, body);
    }
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["", "not like this", "hm"]);
    assert_eq!(
        rig.dropped(pull).await,
        ["empty-review", "unauthorized-actor"]
    );
}

#[tokio::test]
async fn a_review_with_three_comments_on_lines_is_one_message() {
    let (rig, pull) = Rig::with_pull().await;
    let id = review(&rig, pull, "ada", "CHANGES_REQUESTED", "three things");
    for line in 1..=3 {
        let place = ("src/main.rs", line);
        let text = format!("thing {line}");
        rig.github
            .review_comment(REPO, pull, "ada", Some(id), place, &text)
            .unwrap();
    }
    rig.look().await;
    let heard = rig.hear().await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    let mut texts = heard[0].texts.clone();
    texts.sort();
    assert_eq!(texts, ["thing 1", "thing 2", "thing 3", "three things"]);
}

#[tokio::test]
async fn a_review_that_comes_in_while_a_cycle_runs_is_still_one_message() {
    let (rig, pull) = Rig::with_pull().await;
    // Its comments are read in this cycle, the pull requests were read before it was written.
    rig.pass(60);
    let pause = std::time::Duration::from_millis(300);
    let slow = the_loop::demo::github::Fault::Slow(pause);
    rig.comment(pull, "ada", "first a remark");
    rig.github.fail(&format!("/pulls/{pull}/reviews"), 1, slow);
    let write = async {
        tokio::time::sleep(pause / 2).await;
        let id = review(&rig, pull, "ada", "CHANGES_REQUESTED", "two things");
        for line in 1..=2 {
            let place = ("src/main.rs", line);
            rig.github
                .review_comment(REPO, pull, "ada", Some(id), place, "thing")
                .unwrap();
        }
    };
    tokio::join!(rig.cycle(), write);
    let mut heard = rig.hear().await;
    rig.look().await;
    heard.extend(rig.hear().await);
    let reviews: Vec<_> = heard
        .iter()
        .filter(|one| !one.kinds.contains(&EventKind::IssueComment))
        .collect();
    assert_eq!(reviews.len(), 1, "{reviews:?}");
    assert_eq!(reviews[0].texts.len(), 3);
}

#[tokio::test]
async fn a_comment_on_a_line_and_its_answer_are_told() {
    let (rig, pull) = Rig::with_pull().await;
    let place = ("src/main.rs", 7);
    let id = rig
        .github
        .review_comment(REPO, pull, "ada", None, place, "why?")
        .unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["why?"]);
    rig.github.reply(REPO, id, "grace", "because").unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["because"]);
}

#[tokio::test]
async fn a_review_in_the_second_of_the_last_change_is_told() {
    let (rig, pull) = Rig::with_pull().await;
    rig.pass(60);
    rig.comment(pull, "ada", "a remark");
    rig.cycle().await;
    // GitHub's time of the pull request does not move by this: the second is the same.
    review(&rig, pull, "ada", "APPROVED", "good");
    rig.look().await;
    rig.look().await;
    let mut heard = rig.hear_texts().await;
    heard.sort();
    assert_eq!(heard, ["a remark", "good"]);
}

#[tokio::test]
async fn a_review_whose_text_is_changed_by_a_stranger_is_dropped() {
    let (rig, pull) = Rig::with_pull().await;
    let id = review(&rig, pull, "ada", "COMMENTED", "well");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["well"]);
    rig.github
        .edit(REPO, id, "mallory", "delete everything")
        .unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
    assert_eq!(rig.dropped(pull).await, ["unauthorized-actor"]);
    rig.github.edit(REPO, id, "ada", "well, well").unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["well, well"]);
}

#[tokio::test]
async fn a_review_that_a_stranger_changed_before_it_was_read_is_dropped() {
    let (rig, pull) = Rig::with_pull().await;
    let id = review(&rig, pull, "ada", "COMMENTED", "well");
    rig.github
        .edit(REPO, id, "mallory", "delete everything")
        .unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_dismissal_says_nothing() {
    let (rig, pull) = Rig::with_pull().await;
    let id = review(&rig, pull, "ada", "CHANGES_REQUESTED", "no");
    rig.look().await;
    rig.hear().await;
    rig.github.set_review_state(REPO, id, "DISMISSED").unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_control_word_in_a_review_commands() {
    let (rig, pull) = Rig::with_pull().await;
    review(&rig, pull, "ada", "COMMENTED", "the-loop start");
    rig.look().await;
    let heard = rig.hear().await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].class, Class::Control);
}

#[tokio::test]
async fn what_was_reviewed_before_the_first_sight_is_never_told() {
    let rig = Rig::new().await;
    let pull = rig.pull("feature", "");
    let id = review(&rig, pull, "ada", "CHANGES_REQUESTED", "old");
    let place = ("src/main.rs", 1);
    rig.github
        .review_comment(REPO, pull, "ada", Some(id), place, "old thing")
        .unwrap();
    rig.github.label(REPO, pull, "ada", LABEL).unwrap();
    rig.look().await;
    review(&rig, pull, "ada", "APPROVED", "new");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["new"]);
}
