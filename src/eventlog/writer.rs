//! The handle through which decisions are written.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::append::{Appender, Rotation};
use super::record::{Head, join, stamp};
use super::{Decision, Record};
use crate::clock::{Clock, SystemClock};
use crate::model::Source;

/// The longest line that is written; the texts of a longer one are cut.
const MAX_LINE: usize = 16 * 1024;
/// What remains of each text and list of a line that is too long.
const CUT_TEXT: usize = 1024;
const CUT_LIST: usize = 20;

type Observer = Arc<dyn Fn(&Record) + Send + Sync>;

/// Where decisions are written; cheap to clone, used from any thread.
///
/// Writing never fails the caller and never waits for long: one short append to the page cache. The
/// first error of an outage is reported through `tracing`, the others are swallowed.
#[derive(Clone)]
pub struct EventLog {
    source: Source,
    host: Arc<str>,
    clock: Arc<dyn Clock>,
    file: Option<Arc<Mutex<Sink>>>,
    observers: Vec<Observer>,
}

#[derive(Debug)]
struct Sink {
    appender: Appender,
    outage: Outage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outage {
    None,
    Reported,
}

impl EventLog {
    /// Makes a log that appends to `path`; file and folder are made by the first record.
    #[must_use]
    pub fn open(path: impl Into<PathBuf>, source: Source, rotation: Rotation) -> Self {
        let sink = Sink {
            appender: Appender::new(path.into(), rotation),
            outage: Outage::None,
        };
        Self {
            file: Some(Arc::new(Mutex::new(sink))),
            ..Self::disabled(source)
        }
    }

    /// Makes a log that keeps nothing; its observers are still told.
    #[must_use]
    pub fn disabled(source: Source) -> Self {
        let name = rustix::system::uname();
        Self {
            source,
            host: name.nodename().to_string_lossy().into(),
            clock: Arc::new(SystemClock),
            file: None,
            observers: Vec::new(),
        }
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Also tells `observer` of every record that is written through this handle and its later clones.
    ///
    /// It runs on the caller's thread, so it must be quick.
    #[must_use]
    pub fn observed_by(mut self, observer: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Writes one decision.
    pub fn emit(&self, decision: &Decision) {
        if self.file.is_none() && self.observers.is_empty() {
            return;
        }
        let ts = self.clock.now();
        let fields = match serde_json::to_string(decision) {
            Ok(fields) => fields,
            Err(error) => {
                tracing::warn!(event = decision.name(), %error, "an event has a field that is no JSON");
                String::from("{}")
            }
        };
        let head = Head {
            ts: stamp(ts),
            source: self.source.as_str(),
            event: decision.name(),
            level: decision.level(),
            pid: std::process::id(),
            host: &self.host,
        };
        let mut line = join(&head, &fields);
        if line.len() >= MAX_LINE {
            line = cut(&head, &fields);
        }
        if !self.observers.is_empty()
            && let Some(record) = Record::parse(line.as_bytes())
        {
            for observer in &self.observers {
                observer(&record);
            }
        }
        line.push('\n');
        self.append(&line);
    }

    fn append(&self, line: &str) {
        let Some(file) = &self.file else { return };
        // A panic elsewhere leaves the appender usable: it checks its file before each line.
        let mut sink = file.lock().unwrap_or_else(PoisonError::into_inner);
        match sink.appender.append(line) {
            Ok(()) => sink.outage = Outage::None,
            Err(error) if sink.outage == Outage::None => {
                sink.outage = Outage::Reported;
                let path = sink.appender.path().display();
                tracing::warn!(%path, %error, "the event log cannot be written; the work goes on without it");
            }
            Err(_) => {}
        }
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog")
            .field("source", &self.source)
            .field("file", &self.file)
            .field("observers", &self.observers.len())
            .finish_non_exhaustive()
    }
}

/// Makes a line that is too long short enough, keeping what names the delivery.
fn cut(head: &Head<'_>, fields: &str) -> String {
    let mut fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
    for value in fields.values_mut() {
        cut_value(value);
    }
    let mut line = join(head, &serde_json::to_string(&fields).unwrap_or_default());
    if line.len() >= MAX_LINE {
        fields.retain(|_, value| !value.is_array());
        line = join(head, &serde_json::to_string(&fields).unwrap_or_default());
    }
    line
}

fn cut_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            let length = text.chars().count();
            if let Some((at, _)) = text.char_indices().nth(CUT_TEXT) {
                text.truncate(at);
                *text = format!("{text}… (cut, {CUT_TEXT} of {length} characters)");
            }
        }
        Value::Array(values) => {
            values.truncate(CUT_LIST);
            values.iter_mut().for_each(cut_value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}
