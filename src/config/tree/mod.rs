//! The configuration file as a tree in which every value knows its line and column.
//!
//! YAML's events are turned into the plain values of the 1.2 core schema: `yes` is a text, `007` is
//! a text, and only `true` and `false` are truth values. Nothing here knows a key of the
//! configuration.

mod scalar;

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use super::key_path::{KeyPath, Step};
use super::problem::{Place, Problem};
use crate::model::text::one_line;

/// Far above any real file; it bounds what a chain of aliases can expand to.
const MAX_NODES: usize = 20_000;
/// Far above any real file; it bounds the recursion of those who walk the tree.
const MAX_DEPTH: usize = 64;

/// One value of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Where it begins.
    pub(super) place: Place,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Nothing: an empty value, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number.
    Number(serde_json::Number),
    /// Any other scalar.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file, each key once.
    Map(Vec<Entry>),
}

/// One entry of a map.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The key's text.
    pub(super) key: String,
    /// Where the key begins.
    pub(super) key_place: Place,
    /// The value.
    pub(super) value: Node,
}

impl Node {
    /// Returns an empty file.
    pub(super) fn empty() -> Self {
        Self {
            place: Place { line: 1, column: 1 },
            kind: Kind::Null,
        }
    }

    /// Returns where the value of `path` begins; where it is absent, the nearest key above it.
    pub(super) fn place_of(&self, path: &KeyPath) -> Place {
        let mut node = self;
        let mut place = self.place;
        for step in path.steps() {
            match (step, &node.kind) {
                (Step::Key(key), Kind::Map(entries)) => {
                    let Some(entry) = entries.iter().find(|entry| entry.key == *key) else {
                        break;
                    };
                    place = entry.key_place;
                    node = &entry.value;
                }
                (Step::Index(at), Kind::List(items)) => {
                    let Some(item) = items.get(*at) else { break };
                    place = item.place;
                    node = item;
                }
                _ => break,
            }
            if !matches!(node.kind, Kind::Null | Kind::Map(_) | Kind::List(_)) {
                place = node.place;
            }
        }
        place
    }

    fn size(&self) -> usize {
        1 + match &self.kind {
            Kind::List(items) => items.iter().map(Self::size).sum(),
            Kind::Map(entries) => entries.iter().map(|entry| entry.value.size()).sum(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => 0,
        }
    }
}

/// Reads the text of a file.
///
/// Problems that leave a usable tree (a duplicate key, a second document) are returned beside it;
/// after one that does not, the tree is missing.
pub(super) fn parse(text: &str) -> (Option<Node>, Vec<Problem>) {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = match next {
            Ok(event) => event,
            Err(error) => {
                let message = format!("not valid YAML: {}", one_line(error.info(), 160));
                builder.problem(place(*error.marker()), &message);
                return (None, builder.problems);
            }
        };
        match builder.take(event, place(span.start)) {
            Progress::More => {}
            Progress::Enough => break,
            Progress::Hopeless => return (None, builder.problems),
        }
    }
    (
        Some(builder.root.unwrap_or_else(Node::empty)),
        builder.problems,
    )
}

fn place(marker: Marker) -> Place {
    Place {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}

enum Progress {
    More,
    Enough,
    Hopeless,
}

enum Collection {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        pending: Option<(String, Place)>,
    },
}

struct Frame {
    place: Place,
    anchor: usize,
    collection: Collection,
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    documents: usize,
    problems: Vec<Problem>,
}

impl Builder {
    fn problem(&mut self, place: Place, message: &str) {
        let path = KeyPath(self.open_path());
        self.problems
            .push(Problem::new(Some(place), &path, message));
    }

    fn open_path(&self) -> Vec<Step> {
        self.frames
            .iter()
            .filter_map(|frame| match &frame.collection {
                Collection::List(items) => Some(Step::Index(items.len())),
                Collection::Map { pending, .. } => {
                    pending.as_ref().map(|(key, _)| Step::Key(key.clone()))
                }
            })
            .collect()
    }

    fn take(&mut self, event: Event<'_>, place: Place) -> Progress {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.problem(place, "a second document begins here; keep only one");
                    return Progress::Enough;
                }
                Progress::More
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text.into_owned(), style, anchor, tag.as_deref(), place)
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(Collection::List(Vec::new()), anchor, tag.as_deref(), place)
            }
            Event::MappingStart(anchor, tag) => {
                let collection = Collection::Map {
                    entries: Vec::new(),
                    pending: None,
                };
                self.open(collection, anchor, tag.as_deref(), place)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor, place),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {
                Progress::More
            }
        }
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        place: Place,
    ) -> Progress {
        if self.wants_key() {
            return self.set_key(text, place);
        }
        let is_str = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        if tag.is_some() && !is_str {
            self.problem(place, "tags have no meaning here; delete the tag");
        }
        let kind = if style == ScalarStyle::Plain && tag.is_none() {
            scalar::resolve(text)
        } else {
            Kind::Text(text)
        };
        self.add(Node { place, kind }, anchor)
    }

    fn wants_key(&self) -> bool {
        matches!(
            self.frames.last().map(|frame| &frame.collection),
            Some(Collection::Map { pending: None, .. })
        )
    }

    fn set_key(&mut self, key: String, place: Place) -> Progress {
        let Some(Frame {
            collection: Collection::Map { entries, pending },
            ..
        }) = self.frames.last_mut()
        else {
            return Progress::Hopeless;
        };
        let first = entries.iter().find(|entry| entry.key == key);
        let message =
            first.map(|entry| format!("given twice, first in line {}", entry.key_place.line));
        *pending = Some((key, place));
        if let Some(message) = message {
            self.problem(place, &message);
        }
        Progress::More
    }

    fn open(
        &mut self,
        collection: Collection,
        anchor: usize,
        tag: Option<&Tag>,
        place: Place,
    ) -> Progress {
        if tag.is_some() {
            self.problem(place, "tags have no meaning here; delete the tag");
        }
        if self.frames.len() >= MAX_DEPTH {
            self.problem(place, "nested too deeply");
            return Progress::Hopeless;
        }
        self.frames.push(Frame {
            place,
            anchor,
            collection,
        });
        Progress::More
    }

    fn close(&mut self) -> Progress {
        let Some(frame) = self.frames.pop() else {
            return Progress::Hopeless;
        };
        let kind = match frame.collection {
            Collection::List(items) => Kind::List(items),
            Collection::Map { entries, .. } => Kind::Map(entries),
        };
        let node = Node {
            place: frame.place,
            kind,
        };
        self.add(node, frame.anchor)
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Progress {
        let Some(node) = self.anchors.get(&anchor) else {
            self.problem(place, "this alias points into itself");
            return Progress::Hopeless;
        };
        self.nodes += node.size();
        if self.nodes > MAX_NODES {
            self.problem(place, "the aliases expand to too many values");
            return Progress::Hopeless;
        }
        let node = Node {
            place,
            kind: node.kind.clone(),
        };
        if self.wants_key() {
            return match node.kind {
                Kind::Text(key) => self.set_key(key, place),
                _ => self.refuse_key(place),
            };
        }
        self.add(node, 0)
    }

    fn refuse_key(&mut self, place: Place) -> Progress {
        self.problem(place, "a key must be one word");
        Progress::Hopeless
    }

    fn add(&mut self, node: Node, anchor: usize) -> Progress {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.problem(node.place, "too many values for a configuration");
            return Progress::Hopeless;
        }
        if self.wants_key() {
            return self.refuse_key(node.place);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.frames.last_mut().map(|frame| &mut frame.collection) {
            None => self.root = Some(node),
            Some(Collection::List(items)) => items.push(node),
            Some(Collection::Map { entries, pending }) => {
                let Some((key, key_place)) = pending.take() else {
                    return Progress::Hopeless;
                };
                // A duplicate was reported with its key; the first one stays.
                if !entries.iter().any(|entry| entry.key == key) {
                    entries.push(Entry {
                        key,
                        key_place,
                        value: node,
                    });
                }
            }
        }
        Progress::More
    }
}

#[cfg(test)]
mod tests;
