//! The texts of the storm, each of which tells where it belongs.

use std::fmt;

/// Which list of GitHub's a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Comment,
    Review,
    /// A comment on a line, which belongs to a review.
    Remark,
}

/// A text; its body is what it is displayed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text {
    /// The number of its item.
    pub(crate) item: u64,
    pub(crate) kind: Kind,
    /// Counts the comments of an item, and its reviews.
    pub(crate) act: u64,
    /// Counts the texts of one review.
    pub(crate) part: u64,
}

impl Text {
    /// Finds the texts in what an agent read at once.
    pub(crate) fn all_in(read: &str) -> Vec<Self> {
        let marks = read.split('<').skip(1);
        marks
            .filter_map(|rest| Self::named(rest.split_once('>')?.0))
            .collect()
    }

    fn named(name: &str) -> Option<Self> {
        let (item, place) = name.split_once(':')?;
        let kind = match place.get(..1)? {
            "c" => Kind::Comment,
            "r" => Kind::Review,
            "l" => Kind::Remark,
            _ => return None,
        };
        let (act, part) = place[1..].split_once('.')?;
        Some(Self {
            item: item.parse().ok()?,
            kind,
            act: act.parse().ok()?,
            part: part.parse().ok()?,
        })
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Comment => 'c',
            Kind::Review => 'r',
            Kind::Remark => 'l',
        };
        write!(f, "<{}:{kind}{}.{}>", self.item, self.act, self.part)
    }
}
