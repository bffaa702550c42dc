//! What people write, in turn for each item.

use std::collections::{BTreeMap, BTreeSet};

use the_loop::demo::github::{LocalGitHub, PullOptions};

use crate::REPO;
use crate::dice::Dice;
use crate::text::{Kind, Text};

const LABEL: &str = "the-loop: auto-execute";
const ADA: &str = "ada";

/// How many messages an item's agent may be told in half an hour; the rate breaker holds the 25th.
const MESSAGES: u64 = 24;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Comments on issues, each of which is a message.
    Comments,
    /// Comments and reviews of pull requests; a review is one message, whatever number of texts it has.
    Reviews,
}

impl Habit {
    /// How many texts an item gets at most.
    pub(crate) fn texts(self) -> u64 {
        match self {
            Self::Comments => MESSAGES,
            // Three on average, and not always the average.
            Self::Reviews => MESSAGES * 9 / 4,
        }
    }
}

/// The people, and what they wrote.
pub(crate) struct People<'a> {
    github: &'a LocalGitHub,
    habit: Habit,
    items: Vec<u64>,
    acts: BTreeMap<u64, u64>,
    turn: usize,
    written: BTreeSet<Text>,
}

impl<'a> People<'a> {
    /// Opens the items, each labelled and started.
    pub(crate) fn begin(github: &'a LocalGitHub, habit: Habit, items: u64) -> Self {
        let open = |item| {
            let title = format!("Item {item}");
            let number = match habit {
                Habit::Comments => github.open_issue(REPO, ADA, &title, ""),
                Habit::Reviews => github.open_pull(
                    REPO,
                    &PullOptions {
                        author: ADA,
                        title: &title,
                        head_branch: &format!("work-{item}"),
                        head_sha: &format!("{item:040x}"),
                        ..PullOptions::default()
                    },
                ),
            };
            github.label(REPO, number, ADA, LABEL).unwrap();
            github.comment(REPO, number, ADA, "the-loop start").unwrap();
            number
        };
        Self {
            github,
            habit,
            items: (0..items).map(open).collect(),
            acts: BTreeMap::new(),
            turn: 0,
            written: BTreeSet::new(),
        }
    }

    pub(crate) fn items(&self) -> &[u64] {
        &self.items
    }

    pub(crate) fn written(&self) -> &BTreeSet<Text> {
        &self.written
    }

    /// Writes a comment or a review to the item whose turn it is, of at most so many texts, and
    /// returns how many they are.
    pub(crate) fn write(&mut self, dice: &mut Dice, most: u64) -> u64 {
        let item = self.items[self.turn % self.items.len()];
        self.turn += 1;
        let act = self.acts.entry(item).or_default();
        *act += 1;
        let text = |kind, part| Text {
            item,
            kind,
            act: *act,
            part,
        };
        if self.habit == Habit::Comments || act.is_multiple_of(3) || most < 2 {
            let only = text(Kind::Comment, 0);
            self.github
                .comment(REPO, item, ADA, &only.to_string())
                .unwrap();
            self.written.insert(only);
            return 1;
        }
        let remarks = (1 + dice.roll(5)).min(most - 1);
        let body = text(Kind::Review, 0).to_string();
        let review = self.github.review(REPO, item, ADA, "COMMENTED", &body);
        let review = Some(review.unwrap());
        self.written.insert(text(Kind::Review, 0));
        for line in 1..=remarks {
            let remark = text(Kind::Remark, line);
            let (place, body) = (("src/lib.rs", line), remark.to_string());
            self.github
                .review_comment(REPO, item, ADA, review, place, &body)
                .unwrap();
            self.written.insert(remark);
        }
        1 + remarks
    }
}
