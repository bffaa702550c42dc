//! From rows to values: one reader that names the row in every error, and the rows that others see.

use std::fmt::Display;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};

use super::error::Fault;
use crate::model::{ControlCommand, ItemKind, Login, ProcessId, WorkItemRef};

/// The end of the year 9999: whatever is added to a time up to here, the sum is a time as well.
const FARTHEST_MS: i64 = 253_402_300_799_999;

pub(super) fn ms(at: DateTime<Utc>) -> i64 {
    at.timestamp_millis().clamp(-FARTHEST_MS, FARTHEST_MS)
}

/// Numbers of GitHub and of the kernel fit; one that does not is kept as the largest that does.
pub(super) fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads the columns of one row.
#[derive(Clone, Copy)]
pub(super) struct Reader<'r> {
    row: &'r SqliteRow,
    table: &'static str,
    id: i64,
}

impl<'r> Reader<'r> {
    /// Starts on a row of `table` whose number is in the column `id`.
    pub(super) fn new(row: &'r SqliteRow, table: &'static str) -> Result<Self, Fault> {
        Self::numbered(row, table, "id")
    }

    /// Starts on the part of a joined row that is of `table`, whose number is in the column `id`.
    pub(super) fn numbered(
        row: &'r SqliteRow,
        table: &'static str,
        id: &str,
    ) -> Result<Self, Fault> {
        let id = row.try_get(id)?;
        Ok(Self { row, table, id })
    }

    pub(super) fn id(&self) -> i64 {
        self.id
    }

    pub(super) fn bad(&self, detail: impl Display) -> Fault {
        Fault::Row {
            table: self.table,
            id: self.id,
            detail: detail.to_string(),
        }
    }

    pub(super) fn get<T>(&self, column: &str) -> Result<T, Fault>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.row.try_get(column).map_err(|error| self.bad(error))
    }

    /// Reads a column that may be NULL and must not be here: NULL reads as 0, or as an empty text.
    pub(super) fn present<T>(&self, column: &str) -> Result<T, Fault>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.get::<Option<T>>(column)?
            .ok_or_else(|| self.bad(format!("{column}: is missing")))
    }

    pub(super) fn flag(&self, column: &str) -> Result<bool, Fault> {
        Ok(self.get::<i64>(column)? != 0)
    }

    pub(super) fn number(&self, column: &str) -> Result<u64, Fault> {
        u64::try_from(self.present::<i64>(column)?)
            .map_err(|error| self.bad(format!("{column}: {error}")))
    }

    pub(super) fn time(&self, column: &str) -> Result<DateTime<Utc>, Fault> {
        let at = self.get::<i64>(column)?;
        DateTime::from_timestamp_millis(at)
            .filter(|_| (-FARTHEST_MS..=FARTHEST_MS).contains(&at))
            .ok_or_else(|| self.bad(format!("{column}: {at} is not a time")))
    }

    pub(super) fn opt_time(&self, column: &str) -> Result<Option<DateTime<Utc>>, Fault> {
        match self.get::<Option<i64>>(column)? {
            Some(_) => self.time(column).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn parse<T>(&self, column: &str) -> Result<T, Fault>
    where
        T: FromStr<Err: Display>,
    {
        let text: String = self.get(column)?;
        text.parse()
            .map_err(|error| self.bad(format!("{column}: {error}")))
    }

    pub(super) fn opt_parse<T>(&self, column: &str) -> Result<Option<T>, Fault>
    where
        T: FromStr<Err: Display>,
    {
        match self.get::<Option<String>>(column)? {
            Some(_) => self.parse(column).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn process(&self, pid: &str, start: &str) -> Result<ProcessId, Fault> {
        let number: i64 = self.get(pid)?;
        // No process of ours has a lower one, and looking for it would prove that it is gone.
        let proven = i32::try_from(number).ok().filter(|pid| *pid > 1);
        Ok(ProcessId {
            pid: proven.ok_or_else(|| self.bad(format!("{pid}: {number} is not a process")))?,
            start: self.number(start)?,
        })
    }
}

/// The last control command of a work item.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlRecord {
    /// Which one.
    pub command: ControlCommand,
    /// Who gave it, where that is known.
    pub actor: Option<Login>,
    /// When.
    pub at: DateTime<Utc>,
}

/// What is known of the head of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullHead {
    /// The commit.
    pub sha: String,
    /// The branch.
    pub branch: String,
    /// Whether the head is in the pull request's own repository; only then is its CI an event.
    pub same_repo: bool,
}

/// A known work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// The row's number.
    pub id: i64,
    /// The work item as it is called now.
    pub item: WorkItemRef,
    /// The repository's number on GitHub, where known.
    pub repo_id: Option<u64>,
    /// Issue or pull request.
    pub kind: ItemKind,
    /// Its title; text of its author.
    pub title: String,
    /// Where a person reads it.
    pub url: String,
    /// Who opened it; a deleted account is nobody.
    pub author: Option<Login>,
    /// Whether it is open on GitHub.
    pub open: bool,
    /// When it was closed, while it is.
    pub closed_at: Option<DateTime<Utc>>,
    /// Whether the pull request was merged.
    pub merged: bool,
    /// Whether it may have a session: labelled, and open.
    pub armed: bool,
    /// How often it was armed.
    pub armed_count: u64,
    /// Who armed it last, where known.
    pub armed_by: Option<Login>,
    /// The last control command; none since it was reopened or reset.
    pub control: Option<ControlRecord>,
    /// Server time of the first sight: older objects are known, never said. Until GitHub has shown it:
    /// this machine's time of the command that introduced it.
    pub baseline_at: DateTime<Utc>,
    /// When its details were first fetched.
    pub details_at: Option<DateTime<Utc>>,
    /// The mark to clear once the details were fetched; none while nothing is missing.
    pub dirty: Option<DirtyMark>,
    /// The work item that this pull request serves.
    pub bound_to: Option<WorkItemRef>,
    /// The head of a pull request.
    pub head: Option<PullHead>,
    /// The head whose CI has finished and was told.
    pub ci_settled_sha: Option<String>,
    /// GitHub's time of the last change that was seen.
    pub updated_at: DateTime<Utc>,
    /// Server time when a poll saw it last.
    pub listed_at: Option<DateTime<Utc>>,
}

impl ItemRow {
    /// Tells whether GitHub has shown it; until then a command on this machine has introduced it, and
    /// nothing but its name is known.
    #[must_use]
    pub fn was_shown(&self) -> bool {
        self.updated_at > DateTime::UNIX_EPOCH
    }
}

/// One state of an item's wish for details; clearing it leaves a later wish standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyMark(pub(super) i64);

/// The columns of [`ItemRow`], for a table aliased `w`.
macro_rules! item_columns {
    () => {
        "w.id, w.ref, w.repo_id, w.kind, w.title, w.url, w.author, w.is_open, w.closed_at, w.merged, \
         w.armed, w.armed_count, w.armed_by, w.control, w.control_actor, w.control_at, w.baseline_at, \
         w.dirty_mark, w.clean_mark, w.details_at, w.bound_to, w.head_sha, w.head_branch, w.same_repo, \
         w.ci_settled_sha, w.updated_at, w.listed_at"
    };
}
pub(super) use item_columns;

pub(super) fn item(row: &SqliteRow) -> Result<ItemRow, Fault> {
    let row = Reader::new(row, "work_items")?;
    let dirty: i64 = row.get("dirty_mark")?;
    let clean: i64 = row.get("clean_mark")?;
    Ok(ItemRow {
        id: row.id(),
        item: row.parse("ref")?,
        repo_id: row
            .get::<Option<i64>>("repo_id")?
            .and_then(|id| u64::try_from(id).ok()),
        kind: kind(row)?,
        title: row.get("title")?,
        url: row.get("url")?,
        author: login(row, "author")?,
        open: row.flag("is_open")?,
        closed_at: row.opt_time("closed_at")?,
        merged: row.flag("merged")?,
        armed: row.flag("armed")?,
        armed_count: row.number("armed_count")?,
        armed_by: login(row, "armed_by")?,
        control: control(row)?,
        baseline_at: row.time("baseline_at")?,
        details_at: row.opt_time("details_at")?,
        dirty: (dirty > clean).then_some(DirtyMark(dirty)),
        bound_to: row.opt_parse("bound_to")?,
        head: head(row)?,
        ci_settled_sha: row.get("ci_settled_sha")?,
        updated_at: row.time("updated_at")?,
        listed_at: row.opt_time("listed_at")?,
    })
}

fn kind(row: Reader<'_>) -> Result<ItemKind, Fault> {
    let word: String = row.get("kind")?;
    [ItemKind::Issue, ItemKind::PullRequest]
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .ok_or_else(|| row.bad(format!("kind: {word:?} is neither issue nor pull-request")))
}

fn login(row: Reader<'_>, column: &str) -> Result<Option<Login>, Fault> {
    Ok(row
        .get::<Option<String>>(column)?
        .map(|name| Login::new(&name)))
}

fn control(row: Reader<'_>) -> Result<Option<ControlRecord>, Fault> {
    let Some(word) = row.get::<Option<String>>("control")? else {
        return Ok(None);
    };
    let command = word
        .parse()
        .map_err(|()| row.bad(format!("control: {word:?} is not a control command")))?;
    Ok(Some(ControlRecord {
        command,
        actor: login(row, "control_actor")?,
        at: row.time("control_at")?,
    }))
}

fn head(row: Reader<'_>) -> Result<Option<PullHead>, Fault> {
    let Some(sha) = row.get::<Option<String>>("head_sha")? else {
        return Ok(None);
    };
    Ok(Some(PullHead {
        sha,
        branch: row.get("head_branch")?,
        same_repo: row.flag("same_repo")?,
    }))
}
