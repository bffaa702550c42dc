//! What was read, compared with what was written.

use std::collections::{BTreeMap, BTreeSet};

use the_loop::demo::agent::{Entry, Record};

use crate::program::started_for;
use crate::text::{Kind, Text};

/// What has to be nothing, with what it is called.
const FAULTS: [&str; 6] = [
    "lost",
    "twice",
    "wrong session",
    "out of order",
    "live agents ended",
    "agents beside a live one",
];

/// The verdict.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    accepted: usize,
    delivered: usize,
    lost: Vec<String>,
    twice: Vec<String>,
    marked: usize,
    late_summaries: usize,
    wrong_session: Vec<String>,
    out_of_order: Vec<String>,
    ended: Vec<String>,
    two_agents: Vec<String>,
}

impl Tally {
    pub(crate) fn of(records: &[Record], written: &BTreeSet<Text>, killed: &BTreeSet<i32>) -> Self {
        let mut tally = Self {
            accepted: written.len(),
            ..Self::default()
        };
        let read = tally.look_for_readings(records);
        tally.delivered = read.intersection(written).count();
        tally.lost = written.difference(&read).map(Text::to_string).collect();
        tally.look_for_ends(records, killed);
        tally
    }

    /// Every text is read by the agent of its item, once unless it says that it may be a repeat, and
    /// after those that were written before it; returns what was read in its place.
    fn look_for_readings(&mut self, records: &[Record]) -> BTreeSet<Text> {
        let items = items(records);
        let mut read = BTreeSet::new();
        // Each of GitHub's lists has its order; the remarks of one review are told as its files have
        // them.
        let mut newest: BTreeMap<(u64, Kind), Text> = BTreeMap::new();
        for record in records {
            let (Entry::Start {
                prompt: Some(heard),
                ..
            }
            | Entry::Message { text: heard, .. }) = &record.entry
            else {
                continue;
            };
            for text in Text::all_in(heard) {
                if items.get(&record.pid) != Some(&text.item) {
                    let by = record.pid;
                    self.wrong_session.push(format!("{text} read by {by}"));
                    continue;
                }
                if !read.insert(text) {
                    if heard.contains("may be a repeat") {
                        self.marked += 1;
                    } else {
                        self.twice.push(text.to_string());
                    }
                    continue;
                }
                let newest = newest.entry((text.item, text.kind)).or_insert(text);
                if text.act < newest.act {
                    match text.kind {
                        // Its remarks are in a list of their own. A daemon that is killed between the
                        // two tells it later, as a message of its own.
                        Kind::Review => self.late_summaries += 1,
                        Kind::Comment | Kind::Remark => {
                            self.out_of_order.push(format!("{text} after {newest}"));
                        }
                    }
                }
                *newest = text.max(*newest);
            }
        }
        read
    }

    /// No agent ends but by the storm, and none starts beside one that lives.
    fn look_for_ends(&mut self, records: &[Record], killed: &BTreeSet<i32>) {
        let mut living: BTreeMap<u64, u32> = BTreeMap::new();
        let items = items(records);
        for record in records {
            match &record.entry {
                Entry::Start { .. } => {
                    let Some(item) = items.get(&record.pid) else {
                        continue;
                    };
                    if let Some(before) = living.insert(*item, record.pid)
                        && !killed.contains(&before.cast_signed())
                    {
                        let pid = record.pid;
                        self.two_agents
                            .push(format!("item {item}: {pid} beside {before}"));
                    }
                }
                Entry::End { reason, .. } => {
                    self.ended
                        .push(format!("agent {} ended: {reason}", record.pid));
                    living.retain(|_, pid| *pid != record.pid);
                }
                Entry::Ready {} | Entry::Message { .. } | Entry::Answered { .. } => {}
            }
        }
    }

    pub(crate) fn delivered(&self) -> usize {
        self.delivered
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }

    fn faults(&self) -> [&[String]; FAULTS.len()] {
        [
            &self.lost,
            &self.twice,
            &self.wrong_session,
            &self.out_of_order,
            &self.ended,
            &self.two_agents,
        ]
    }

    pub(crate) fn holds(&self) -> bool {
        self.faults().iter().all(|all| all.is_empty())
    }

    pub(crate) fn details(&self) -> Vec<String> {
        let faults = FAULTS.into_iter().zip(self.faults());
        faults
            .flat_map(|(what, all)| all.iter().map(move |one| format!("{what}: {one}")))
            .collect()
    }

    /// The names and the numbers of a table, from its top.
    pub(crate) fn rows(&self) -> Vec<(&'static str, usize)> {
        let faults = FAULTS.into_iter().zip(self.faults());
        [("accepted", self.accepted), ("delivered", self.delivered)]
            .into_iter()
            .chain(faults.map(|(what, all)| (what, all.len())))
            .chain([
                ("said again with the mark", self.marked),
                ("review summaries late", self.late_summaries),
            ])
            .collect()
    }
}

/// Which item each agent was started for.
fn items(records: &[Record]) -> BTreeMap<u32, u64> {
    let started = records.iter();
    started
        .filter_map(|record| Some((record.pid, started_for(record)?)))
        .collect()
}
