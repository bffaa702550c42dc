//! What the server knows: repositories and everything in them, and the time.

use std::collections::{BTreeMap, HashMap, VecDeque};

use axum::http::StatusCode;
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use super::edit::NoSuchThing;
use super::faults::Planned;
use super::log::Logged;

/// How many requests the log keeps; older ones are forgotten.
pub(super) const LOG_ROWS: usize = 100_000;
/// How many remembered entity tags are worth their memory.
const MAX_ETAGS: usize = 10_000;

/// The whole state, behind one lock.
#[derive(Debug)]
pub(super) struct World {
    pub(super) base: String,
    pub(super) clock: ServerClock,
    pub(super) date_skew: TimeDelta,
    pub(super) repos: BTreeMap<u64, Repo>,
    /// Lower-cased full name, present and former, to id.
    pub(super) names: BTreeMap<String, u64>,
    pub(super) users: BTreeMap<String, Account>,
    pub(super) viewer: String,
    pub(super) accepted_token: Option<String>,
    pub(super) budget: Budget,
    pub(super) faults: Vec<Planned>,
    pub(super) log: VecDeque<Logged>,
    pub(super) etags: HashMap<String, (u64, String)>,
    /// Counts changes, so that an `ETag` is only computed again when something happened.
    pub(super) revision: u64,
    last_id: u64,
}

/// An account.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) id: u64,
    pub(super) login: String,
    pub(super) deleted: bool,
}

/// The hourly budget; None: the server has no limits and sends no headers.
#[derive(Debug, Clone)]
pub(super) struct Budget(pub(super) Option<(u64, u64)>);

/// The server's clock, which shows whole seconds.
#[derive(Debug)]
pub(super) struct ServerClock {
    stopped: Option<DateTime<Utc>>,
    offset: TimeDelta,
    pub(super) step: TimeDelta,
}

impl ServerClock {
    fn now(&self) -> DateTime<Utc> {
        (self.stopped.unwrap_or_else(Utc::now) + self.offset).trunc_subsecs(0)
    }

    pub(super) fn stop_at(&mut self, at: DateTime<Utc>) {
        self.stopped = Some(at);
        self.offset = TimeDelta::zero();
    }

    pub(super) fn advance(&mut self, by: TimeDelta) {
        self.offset += by;
    }
}

#[derive(Debug)]
pub(super) struct Repo {
    pub(super) id: u64,
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) archived: bool,
    pub(super) last_number: u64,
    pub(super) items: BTreeMap<u64, Item>,
    pub(super) comments: BTreeMap<u64, Comment>,
    pub(super) reviews: BTreeMap<u64, Review>,
    pub(super) review_comments: BTreeMap<u64, ReviewComment>,
    pub(super) runs: BTreeMap<u64, WorkflowRun>,
    pub(super) statuses: BTreeMap<u64, Status>,
    pub(super) checks: BTreeMap<u64, CheckRun>,
}

impl Repo {
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub(super) fn item_mut(&mut self, number: u64) -> Result<&mut Item, NoSuchThing> {
        let repo = self.full_name();
        self.items
            .get_mut(&number)
            .ok_or_else(|| NoSuchThing(format!("{repo}#{number}")))
    }
}

/// A text and what became of it.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) author: String,
    pub(super) body: Option<String>,
    pub(super) created: DateTime<Utc>,
    pub(super) updated: DateTime<Utc>,
    pub(super) edited: Option<(DateTime<Utc>, String)>,
    pub(super) reactions: Vec<(String, String)>,
}

impl Text {
    pub(super) fn new(author: &str, body: Option<&str>, at: DateTime<Utc>) -> Self {
        Self {
            author: author.to_owned(),
            body: body.map(str::to_owned),
            created: at,
            updated: at,
            edited: None,
            reactions: Vec::new(),
        }
    }
}

/// An issue or pull request.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) text: Text,
    pub(super) labels: Vec<String>,
    pub(super) closed: Option<(DateTime<Utc>, String)>,
    pub(super) pull: Option<PullPart>,
    pub(super) events: Vec<ItemEvent>,
    pub(super) fate: Fate,
}

/// What asking for an item leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Here,
    Refused(StatusCode),
    /// Transferred: the repository's id and the number there.
    Moved(u64, u64),
}

#[derive(Debug)]
pub(super) struct PullPart {
    pub(super) id: u64,
    pub(super) head_branch: String,
    pub(super) head_sha: String,
    /// The full name of the fork that the head is in; None: the same repository.
    pub(super) fork: Option<String>,
    pub(super) base_branch: String,
    pub(super) draft: bool,
    pub(super) merged: Option<DateTime<Utc>>,
    /// Moves for reviews and pushes too, for which the issue's own time stands still.
    pub(super) updated: DateTime<Utc>,
}

#[derive(Debug)]
pub(super) struct ItemEvent {
    pub(super) id: u64,
    pub(super) what: &'static str,
    pub(super) actor: String,
    pub(super) label: Option<String>,
    pub(super) at: DateTime<Utc>,
}

#[derive(Debug)]
pub(super) struct Comment {
    pub(super) number: u64,
    pub(super) text: Text,
}

#[derive(Debug)]
pub(super) struct Review {
    pub(super) number: u64,
    pub(super) state: String,
    pub(super) commit: String,
    pub(super) text: Text,
}

#[derive(Debug)]
pub(super) struct ReviewComment {
    pub(super) number: u64,
    pub(super) review: u64,
    pub(super) path: String,
    pub(super) line: Option<u64>,
    pub(super) reply_to: Option<u64>,
    pub(super) text: Text,
}

#[derive(Debug)]
pub(super) struct WorkflowRun {
    pub(super) run: super::Run,
    pub(super) created: DateTime<Utc>,
    pub(super) updated: DateTime<Utc>,
}

#[derive(Debug)]
pub(super) struct Status {
    pub(super) sha: String,
    pub(super) context: String,
    pub(super) state: String,
    pub(super) description: String,
    pub(super) at: DateTime<Utc>,
}

#[derive(Debug)]
pub(super) struct CheckRun {
    pub(super) check: super::Check,
    pub(super) at: DateTime<Utc>,
}

impl World {
    pub(super) fn new(base: String) -> Self {
        Self {
            base,
            clock: ServerClock {
                stopped: None,
                offset: TimeDelta::zero(),
                step: TimeDelta::zero(),
            },
            date_skew: TimeDelta::zero(),
            repos: BTreeMap::new(),
            names: BTreeMap::new(),
            users: BTreeMap::new(),
            viewer: "operator".to_owned(),
            accepted_token: None,
            budget: Budget(Some((5000, 5000))),
            faults: Vec::new(),
            log: VecDeque::new(),
            etags: HashMap::new(),
            revision: 0,
            last_id: 1000,
        }
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Notes that something happened, and returns when.
    pub(super) fn happens(&mut self) -> DateTime<Utc> {
        let at = self.now();
        let step = self.clock.step;
        self.clock.advance(step);
        self.revision += 1;
        at
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Finds a repository by its present or a former name, or makes it.
    pub(super) fn repo_or_new(&mut self, full_name: &str) -> &mut Repo {
        let key = full_name.to_ascii_lowercase();
        let id = match self.names.get(&key) {
            Some(id) => *id,
            None => {
                let id = self.next_id();
                self.names.insert(key, id);
                id
            }
        };
        let (owner, name) = full_name.split_once('/').unwrap_or((full_name, full_name));
        self.repos.entry(id).or_insert_with(|| Repo {
            id,
            owner: owner.to_owned(),
            name: name.to_owned(),
            archived: false,
            last_number: 0,
            items: BTreeMap::new(),
            comments: BTreeMap::new(),
            reviews: BTreeMap::new(),
            review_comments: BTreeMap::new(),
            runs: BTreeMap::new(),
            statuses: BTreeMap::new(),
            checks: BTreeMap::new(),
        })
    }

    pub(super) fn repo(&self, full_name: &str) -> Option<&Repo> {
        self.repos
            .get(self.names.get(&full_name.to_ascii_lowercase())?)
    }

    pub(super) fn repo_mut(&mut self, full_name: &str) -> Result<&mut Repo, NoSuchThing> {
        self.names
            .get(&full_name.to_ascii_lowercase())
            .and_then(|id| self.repos.get_mut(id))
            .ok_or_else(|| NoSuchThing(full_name.to_owned()))
    }

    /// Returns the account of a login, which exists as soon as somebody acts under it.
    pub(super) fn account(&mut self, login: &str) -> &mut Account {
        let id = 100 + self.users.len() as u64;
        self.users
            .entry(login.to_ascii_lowercase())
            .or_insert_with(|| Account {
                id,
                login: login.to_owned(),
                deleted: false,
            })
    }

    pub(super) fn remember_etag(&mut self, path: &str, etag: &str) {
        if self.etags.len() >= MAX_ETAGS {
            self.etags.clear();
        }
        self.etags
            .insert(path.to_owned(), (self.revision, etag.to_owned()));
    }
}
