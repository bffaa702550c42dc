//! What the agent is told.
//!
//! The first line is always [`header`]: ours, so that nothing which follows can begin the message.
//! The words of the one who acted are given plainly; everything else that is quoted stands in a
//! fence, labelled with where it comes from, and capped. What comes out holds no control characters.

mod message;
mod quote;

use message::{Values, header};

use crate::config::{InteractionMode, Part, Template};
use crate::model::{Event, Repeat, WorkItemRef};

/// The longest message, in bytes, that is pasted or passed as an argument; a longer one goes by file.
pub const INLINE_LIMIT: usize = 32_768;

/// Tells the agent where to ask what it needs to know.
fn directive(interaction: InteractionMode) -> &'static str {
    match interaction {
        InteractionMode::WorkItem => {
            "Nobody watches this terminal. When you need a decision, ask in a comment on the work item, then\n\
             stop and wait: the answer comes in here."
        }
        InteractionMode::Cli => {
            "Somebody watches this terminal. When you need a decision, ask here and wait; then write on the\n\
             work item what was decided."
        }
    }
}

/// The templates in force, and what they need to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    event: Template,
    spawn: Template,
    interaction: InteractionMode,
}

impl Default for Prompts {
    fn default() -> Self {
        Self::new(None, None, InteractionMode::default())
    }
}

impl Prompts {
    /// Takes the operator's templates (`routing.promptTemplate`, `routing.spawnPromptTemplate`), or the
    /// built-in ones.
    #[must_use]
    pub fn new(
        event: Option<Template>,
        spawn: Option<Template>,
        interaction: InteractionMode,
    ) -> Self {
        Self {
            event: event.unwrap_or_else(|| builtin(include_str!("templates/event.md"))),
            spawn: spawn.unwrap_or_else(|| builtin(include_str!("templates/spawn.md"))),
            interaction,
        }
    }

    /// Says an event to the session of `work_item`; `rest` holds the other events of its group.
    #[must_use]
    pub fn message(
        &self,
        work_item: &WorkItemRef,
        first: &Event,
        rest: &[Event],
        repeat: Repeat,
    ) -> String {
        let values = Values::new(work_item, first, rest, directive(self.interaction));
        message::whole(
            &header(work_item, first, rest),
            &render(&self.event, &values),
            repeat,
        )
    }

    /// Says to a new agent what it is for, and what started it.
    #[must_use]
    pub fn spawn(
        &self,
        work_item: &WorkItemRef,
        first: &Event,
        rest: &[Event],
        repeat: Repeat,
    ) -> String {
        let values = Values::new(work_item, first, rest, directive(self.interaction));
        let header = message::spawn_header(work_item, first, rest);
        message::whole(&header, &render(&self.spawn, &values), repeat)
    }
}

fn builtin(text: &str) -> Template {
    #[expect(clippy::expect_used, reason = "a test parses every built-in template")]
    Template::parse(text).expect("built-in templates use known placeholders only")
}

/// Puts the values in their places, once: what a value contains is text.
fn render(template: &Template, values: &Values) -> String {
    let mut rendered = String::new();
    for part in template.parts() {
        match part {
            Part::Text(text) => rendered.push_str(text),
            Part::Place(name) => rendered.push_str(values.get(name)),
        }
    }
    if !template.parts().contains(&Part::Place("text")) {
        rendered.push_str("\n\n");
        rendered.push_str(values.get("text"));
    }
    rendered
}

#[cfg(test)]
mod tests;
