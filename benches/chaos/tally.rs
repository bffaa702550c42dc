//! What was read, compared with what was written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use the_loop::demo::agent::{Entry, Record};

/// A text that an agent read.
struct Reading {
    pid: u32,
    /// The item and the place that the text names.
    text: (u64, u64),
    /// Whether its header says that it may be a repeat.
    marked: bool,
}

/// The verdict.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    written: u64,
    read: u64,
    lost: Vec<String>,
    twice: Vec<String>,
    marked: u64,
    wrong_session: Vec<String>,
    out_of_order: Vec<String>,
    ended: Vec<String>,
    two_agents: Vec<String>,
}

impl Tally {
    pub(crate) fn of(
        records: &[Record],
        written: &BTreeMap<u64, u64>,
        killed: &BTreeSet<i32>,
    ) -> Self {
        let items = items(records);
        let readings: Vec<Reading> = records.iter().flat_map(readings).collect();
        let mut tally = Self {
            written: written.values().sum(),
            ..Self::default()
        };
        let mut times: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
        for reading in &readings {
            let (item, place) = reading.text;
            let name = format!("<{item}:{place}>");
            if items.get(&reading.pid) != Some(&item) {
                tally
                    .wrong_session
                    .push(format!("{name} read by {}", reading.pid));
            }
            let before = times.entry(reading.text).or_default();
            *before += 1;
            match (*before, reading.marked) {
                (1, _) => {
                    let newest = newest.entry(item).or_default();
                    if place < *newest {
                        tally.out_of_order.push(format!("{name} after {newest}"));
                    }
                    *newest = place.max(*newest);
                }
                (_, true) => tally.marked += 1,
                (_, false) => tally.twice.push(name),
            }
        }
        for (item, count) in written {
            let missing = (1..=*count).filter(|place| !times.contains_key(&(*item, *place)));
            tally
                .lost
                .extend(missing.map(|place| format!("<{item}:{place}>")));
        }
        tally.read = times.len() as u64;
        tally.look_for_ends(records, killed);
        tally
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

    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }

    /// The zeros.
    fn counts(&self) -> [(&'static str, &[String]); 6] {
        [
            ("lost", &self.lost),
            ("twice", &self.twice),
            ("wrong session", &self.wrong_session),
            ("out of order", &self.out_of_order),
            ("live agents ended", &self.ended),
            ("agents beside a live one", &self.two_agents),
        ]
    }

    pub(crate) fn holds(&self) -> bool {
        self.counts().iter().all(|(_, all)| all.is_empty())
    }

    pub(crate) fn details(&self) -> Vec<String> {
        let counts = self.counts().into_iter();
        counts
            .flat_map(|(what, all)| all.iter().map(move |one| format!("{what}: {one}")))
            .collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "written {}, read {}", self.written, self.read)?;
        for (what, all) in self.counts() {
            write!(f, ", {what} {}", all.len())?;
        }
        write!(f, "; said again with the mark {}", self.marked)
    }
}

/// Which item each agent was started for.
fn items(records: &[Record]) -> BTreeMap<u32, u64> {
    let started = records.iter().filter_map(|record| match &record.entry {
        Entry::Start { env, .. } => {
            let (_, number) = env.get("THE_LOOP_WORK_ITEM")?.rsplit_once('#')?;
            Some((record.pid, number.parse().ok()?))
        }
        _ => None,
    });
    started.collect()
}

/// The texts of ours in what an agent read at once.
fn readings(record: &Record) -> Vec<Reading> {
    let text = match &record.entry {
        Entry::Start {
            prompt: Some(prompt),
            ..
        } => prompt,
        Entry::Message { text, .. } => text,
        _ => return Vec::new(),
    };
    let marked = text.contains("may be a repeat");
    text.split('<')
        .skip(1)
        .filter_map(|rest| {
            let (name, _) = rest.split_once('>')?;
            let (item, place) = name.split_once(':')?;
            Some(Reading {
                pid: record.pid,
                text: (item.parse().ok()?, place.parse().ok()?),
                marked,
            })
        })
        .collect()
}
