//! Reading a list to its end.
//!
//! Lists that can be asked `since` a time are read by keyset: the next request begins at the last
//! object's time, so nothing is skipped when objects move while we read. Page numbers are the way out
//! where a whole page carries one second, and for lists that have no `since`.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use super::pages::{Object, Pages};
use super::{Answer, GitHub, GitHubError, Reply};

/// How many objects a page has; the most that GitHub gives.
const PER_PAGE: usize = 100;
/// How many pages one call reads; a keyset list goes on from there at the next call.
const MAX_PAGES: usize = 50;
/// How far a cursor stays behind the newest object: GitHub's replicas can show an older one later.
const OVERLAP: TimeDelta = TimeDelta::seconds(30);

/// Where the next reading of a list begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Objects that changed at this time or later, by GitHub's clock; None: from the beginning.
    pub since: Option<DateTime<Utc>>,
    /// The condition that makes an unchanged list free. It belongs to `since`: a changed cursor has
    /// none.
    pub etag: Option<String>,
}

impl Cursor {
    /// Begins at a time.
    #[must_use]
    pub fn since(at: DateTime<Utc>) -> Self {
        Self {
            since: Some(at),
            etag: None,
        }
    }
}

/// The objects of a list.
#[derive(Debug)]
pub struct Elements<T> {
    /// Those that could be read, each once, in GitHub's order.
    pub items: Vec<T>,
    /// What could not be read, as [`GitHubError::BadPayload`] each.
    pub bad: Vec<GitHubError>,
    /// The page that was not read because the call had enough; None: this is all.
    pub next: Option<NextPage>,
}

/// A link to the next page, as GitHub gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextPage(String);

impl NextPage {
    pub(super) fn new(link: String) -> Self {
        Self(link)
    }
}

/// A conditional reading of a list.
#[derive(Debug)]
pub struct Listing<T> {
    /// What the list holds; None: nothing changed (304).
    pub news: Option<Elements<T>>,
    /// Where to begin next time. Store it together with what the news became.
    pub cursor: Cursor,
    /// GitHub's clock at this reading.
    pub date: Option<DateTime<Utc>>,
}

/// Writes a time as GitHub's queries take it.
fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Asks a list for pages of this size.
fn paged(url: &str, size: usize) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}per_page={size}")
}

fn keyset_url(path: &str, query: &str, since: Option<DateTime<Utc>>, size: usize) -> String {
    let mut url = paged(&format!("{path}?{query}sort=updated&direction=asc"), size);
    if let Some(since) = since {
        url.push_str("&since=");
        url.push_str(&stamp(since));
    }
    url
}

/// Returns the page size to go on with: anybody may write a hundred texts that are together more
/// than we are willing to hold.
fn smaller(size: usize, error: GitHubError) -> Result<usize, GitHubError> {
    match error {
        GitHubError::TooLarge { .. } if size > 1 => Ok(size / 10),
        error => Err(error),
    }
}

impl GitHub {
    /// Reads a list that knows `since`, oldest change first, to its end. `query` ends in `&` or is
    /// empty.
    pub(super) async fn keyset<T: Object>(
        &self,
        path: &str,
        query: &str,
        cursor: &Cursor,
    ) -> Result<Listing<T>, GitHubError> {
        let mut since = cursor.since;
        let mut size = PER_PAGE;
        let mut url = keyset_url(path, query, since, size);
        let mut etag = cursor.etag.as_deref();
        let mut pages = Pages::new();
        loop {
            let answer = match self.get(&url, etag.take()).await {
                Ok(Reply::Fresh(answer)) => answer,
                Ok(Reply::Unchanged { date, .. }) => {
                    return Ok(Listing {
                        news: None,
                        cursor: cursor.clone(),
                        date,
                    });
                }
                Err(error) => {
                    size = smaller(size, error)?;
                    url = keyset_url(path, query, since, size);
                    continue;
                }
            };
            let (count, newest) = pages.add(&answer, None)?;
            let (at_end, enough) = (answer.next.is_none(), pages.read >= MAX_PAGES);
            if at_end || enough {
                // A full page cannot tell by its etag that another one began behind it.
                let alone = pages.read == 1 && count < PER_PAGE && size == PER_PAGE;
                return Ok(Listing {
                    cursor: next_cursor(cursor, newest.max(since), alone, &answer),
                    date: answer.date,
                    news: Some(pages.into_elements(answer.next)),
                });
            }
            url = match newest {
                Some(newest) if Some(newest) > since => {
                    since = Some(newest);
                    keyset_url(path, query, since, size)
                }
                _ => answer.next.unwrap_or_default(),
            };
        }
    }

    /// Reads a list by its links; `url` says nothing of pages. With `Depth::FirstPage` the rest is left for
    /// [`next_page`](Self::next_page).
    pub(super) async fn linked<T: Object>(
        &self,
        url: &str,
        key: Option<&str>,
        etag: Option<&str>,
        depth: Depth,
    ) -> Result<Listing<T>, GitHubError> {
        let mut size = PER_PAGE;
        let mut condition = etag;
        let first = loop {
            match self.get(&paged(url, size), condition.take()).await {
                Ok(Reply::Fresh(answer)) => break answer,
                Ok(Reply::Unchanged { date, .. }) => {
                    return Ok(Listing {
                        news: None,
                        cursor: Cursor {
                            since: None,
                            etag: etag.map(str::to_owned),
                        },
                        date,
                    });
                }
                Err(error) => size = smaller(size, error)?,
            }
        };
        let mut pages = Pages::new();
        let (count, _) = pages.add(&first, key)?;
        let keeps_etag = match depth {
            // Newest first: whatever changes shows on the first page.
            Depth::FirstPage => true,
            Depth::Whole => first.next.is_none() && count < PER_PAGE,
        };
        let next = match depth {
            Depth::FirstPage => first.next,
            Depth::Whole => self.follow(first.next, key, &mut pages).await?,
        };
        Ok(Listing {
            news: Some(pages.into_elements(next)),
            cursor: Cursor {
                since: None,
                etag: first.etag.filter(|_| keeps_etag && size == PER_PAGE),
            },
            date: first.date,
        })
    }

    /// Reads one more page.
    pub(super) async fn next_page<T: Object>(
        &self,
        page: &NextPage,
    ) -> Result<Elements<T>, GitHubError> {
        let mut pages = Pages::new();
        let answer = self.fresh(&page.0).await?;
        pages.add(&answer, None)?;
        Ok(pages.into_elements(answer.next))
    }

    /// Reads a whole list without condition.
    pub(super) async fn all<T: Object>(&self, url: &str) -> Result<Elements<T>, GitHubError> {
        let mut size = PER_PAGE;
        loop {
            let mut pages = Pages::new();
            match self.follow(Some(paged(url, size)), None, &mut pages).await {
                Ok(next) => return Ok(pages.into_elements(next)),
                // Page numbers count in pages, so the list begins again.
                Err(error) => size = smaller(size, error)?,
            }
        }
    }

    async fn follow<T: Object>(
        &self,
        mut next: Option<String>,
        key: Option<&str>,
        pages: &mut Pages<T>,
    ) -> Result<Option<String>, GitHubError> {
        while pages.read < MAX_PAGES {
            let Some(url) = next else { break };
            let answer = self.fresh(&url).await?;
            pages.add(&answer, key)?;
            next = answer.next;
        }
        Ok(next)
    }

    /// Reads without condition.
    pub(super) async fn fresh(&self, url: &str) -> Result<Answer, GitHubError> {
        match self.get(url, None).await? {
            Reply::Fresh(answer) => Ok(answer),
            Reply::Unchanged { .. } => Err(GitHubError::BadPayload {
                url: url.to_owned(),
                place: "status".to_owned(),
                problem: "304 without a condition".to_owned(),
            }),
        }
    }
}

/// How much of a linked list a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// One page.
    FirstPage,
    /// All of them.
    Whole,
}

fn next_cursor(
    before: &Cursor,
    newest: Option<DateTime<Utc>>,
    alone: bool,
    answer: &Answer,
) -> Cursor {
    let since = if alone {
        before
            .since
            .max(newest.and_then(|newest| newest.checked_sub_signed(OVERLAP)))
    } else {
        // An overlap could fill a page by itself, and a list of several pages never comes to rest.
        newest
    };
    Cursor {
        since,
        etag: answer
            .etag
            .clone()
            .filter(|_| alone && since == before.since),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(1_000_000 + second, 0)
    }

    fn answer() -> Answer {
        Answer {
            url: String::new(),
            body: Vec::new(),
            etag: Some("\"e\"".to_owned()),
            next: None,
            date: None,
            rate: None,
        }
    }

    #[test]
    fn a_cursor_moves_behind_the_newest_and_then_rests_with_its_etag() {
        let start = Cursor {
            since: at(0),
            etag: None,
        };
        let moved = next_cursor(&start, at(100), true, &answer());
        assert_eq!(
            moved,
            Cursor {
                since: at(70),
                etag: None
            }
        );
        let rests = next_cursor(&moved, at(100), true, &answer());
        assert_eq!(rests.since, at(70));
        assert_eq!(rests.etag.as_deref(), Some("\"e\""));
        let empty = next_cursor(&start, at(0), true, &answer());
        assert!(empty.since == at(0) && empty.etag.is_some());
    }

    #[test]
    fn a_list_of_full_pages_keeps_no_etag() {
        let start = Cursor::default();
        let full = next_cursor(&start, at(100), false, &answer());
        assert_eq!(
            full,
            Cursor {
                since: at(100),
                etag: None
            }
        );
    }

    #[test]
    fn queries_write_times_in_whole_seconds() {
        let url = keyset_url("/repos/o/r/issues", "state=all&", at(0), 100);
        assert_eq!(
            url,
            "/repos/o/r/issues?state=all&sort=updated&direction=asc&per_page=100&since=1970-01-12T13:46:40Z"
        );
    }
}
