//! What `events --explain` is asked about: a work item, or one event.

use crate::eventlog::Filter;
use crate::model::WorkItemRef;

/// What is to be explained.
pub(super) enum Subject {
    Item(WorkItemRef),
    /// A number, a key, or a key without host and version.
    Delivery(String),
}

impl Subject {
    pub(super) fn of(text: &str, host: &str) -> Self {
        match text.parse::<WorkItemRef>() {
            Ok(item) => Self::Item(item.meant_on(host)),
            Err(_) => Self::Delivery(object_at(text).unwrap_or_else(|| text.to_owned())),
        }
    }

    pub(super) fn filter(&self) -> Filter {
        match self {
            Self::Item(item) => Filter {
                work_item: Some(item.clone()),
                ..Filter::default()
            },
            Self::Delivery(wanted) => Filter {
                delivery: Some(wanted.clone()),
                ..Filter::default()
            },
        }
    }
}

/// The key, without host and version, of what a page's address points at.
fn object_at(address: &str) -> Option<String> {
    let (page, mark) = address.rsplit_once('#')?;
    let kinds = [
        ("issuecomment-", "issue_comment"),
        ("discussion_r", "review_comment"),
        ("pullrequestreview-", "review"),
    ];
    let is_number = |id: &&str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let found = kinds.iter().find_map(|(before, kind)| {
        let id = mark.strip_prefix(before).filter(is_number)?;
        Some(format!("{kind}:{id}"))
    });
    found.filter(|_| page.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_comment_names_it() {
        let page = "https://github.com/octo/app/pull/15";
        for (mark, expected) in [
            ("#issuecomment-2451", Some("issue_comment:2451")),
            ("#discussion_r77", Some("review_comment:77")),
            ("#pullrequestreview-9", Some("review:9")),
            ("#issuecomment-", None),
            ("#issuecomment-2x", None),
            ("", None),
        ] {
            let found = object_at(&format!("{page}{mark}"));
            assert_eq!(found.as_deref(), expected, "{mark}");
        }
    }
}
