//! Lists: filters, order, pages.

use std::collections::HashMap;

use axum::extract::Query;
use axum::http::Uri;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::world::{Fate, Item, PullPart, Repo, Text};

/// The query of a request.
#[derive(Debug, Default)]
pub(super) struct Asks(HashMap<String, String>);

impl Asks {
    pub(super) fn of(uri: &Uri) -> Self {
        Self(
            Query::try_from_uri(uri)
                .map(|Query(map)| map)
                .unwrap_or_default(),
        )
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    }

    fn per_page(&self) -> usize {
        self.number("per_page", 30).clamp(1, 100)
    }

    fn page(&self) -> usize {
        self.number("page", 1).max(1)
    }

    fn since(&self) -> Option<DateTime<Utc>> {
        DateTime::parse_from_rfc3339(self.get("since")?)
            .ok()
            .map(Into::into)
    }

    /// Descending unless asked otherwise.
    fn ascending(&self) -> bool {
        self.get("direction") == Some("asc")
    }
}

/// One page of a list, with what its links need.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) elements: Vec<Value>,
    pub(super) total: usize,
    pub(super) page: usize,
    pub(super) pages: usize,
}

/// Cuts the page that is asked for out of a list, and renders only that.
pub(super) fn page<T>(all: &[T], asks: &Asks, render: impl Fn(&T) -> Value) -> Page {
    let (page, per_page) = (asks.page(), asks.per_page());
    let elements = all
        .iter()
        .skip((page - 1).saturating_mul(per_page))
        .take(per_page)
        .map(render)
        .collect();
    Page {
        elements,
        total: all.len(),
        page,
        pages: all.len().div_ceil(per_page),
    }
}

/// Sorts by a time as asked; equal times keep the order of their ids.
fn in_order<T>(found: &mut [T], asks: &Asks, key: impl Fn(&T) -> (DateTime<Utc>, u64)) {
    found.sort_by_key(key);
    if !asks.ascending() {
        found.reverse();
    }
}

fn matches_state(item: &Item, asks: &Asks) -> bool {
    match asks.get("state").unwrap_or("open") {
        "open" => item.closed.is_none(),
        "closed" => item.closed.is_some(),
        _ => true,
    }
}

/// The issues list, pull requests among them.
pub(super) fn issues<'r>(repo: &'r Repo, asks: &Asks) -> Vec<&'r Item> {
    let since = asks.since();
    let labels: Vec<&str> = asks
        .get("labels")
        .map(|labels| labels.split(',').map(str::trim).collect())
        .unwrap_or_default();
    let has = |item: &Item, label: &str| {
        item.labels
            .iter()
            .any(|name| name.eq_ignore_ascii_case(label))
    };
    let mut found: Vec<&Item> = repo
        .items
        .values()
        .filter(|item| item.fate == Fate::Here && matches_state(item, asks))
        .filter(|item| since.is_none_or(|since| item.text.updated >= since))
        .filter(|item| labels.iter().all(|label| has(item, label)))
        .collect();
    let by_update = asks.get("sort") == Some("updated");
    in_order(&mut found, asks, |item| {
        let at = if by_update {
            item.text.updated
        } else {
            item.text.created
        };
        (at, item.number)
    });
    found
}

/// The pull requests list, which knows neither `since` nor `labels`.
pub(super) fn pulls<'r>(repo: &'r Repo, asks: &Asks) -> Vec<(&'r Item, &'r PullPart)> {
    let mut found: Vec<(&Item, &PullPart)> = repo
        .items
        .values()
        .filter(|item| item.fate == Fate::Here && matches_state(item, asks))
        .filter_map(|item| Some((item, item.pull.as_ref()?)))
        .collect();
    let by_update = asks.get("sort") == Some("updated");
    in_order(&mut found, asks, |(item, pull)| {
        let updated = pull.updated.max(item.text.updated);
        (
            if by_update {
                updated
            } else {
                item.text.created
            },
            item.number,
        )
    });
    found
}

/// A list of comments, of one item or of the whole repository. It is sorted only if asked to be.
pub(super) fn texts<'r, T>(
    all: impl Iterator<Item = (&'r u64, &'r T)>,
    asks: &Asks,
    text: impl Fn(&T) -> &Text,
) -> Vec<(u64, &'r T)> {
    let since = asks.since();
    let mut found: Vec<(u64, &T)> = all
        .map(|(id, item)| (*id, item))
        .filter(|(_, item)| since.is_none_or(|since| text(item).updated >= since))
        .collect();
    match asks.get("sort") {
        Some("updated") => in_order(&mut found, asks, |(id, item)| (text(item).updated, *id)),
        Some(_) => in_order(&mut found, asks, |(id, item)| (text(item).created, *id)),
        None => {}
    }
    found
}
