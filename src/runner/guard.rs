//! Conditions that tmux itself checks in the moment in which it acts.
//!
//! tmux evaluates an absent target to empty fields and says no error, so every guard holds at least
//! one equality with a value that is never empty.

use crate::model::{OwnerId, PaneId, TmuxSessionId};

use super::field::{Field, OptionName};

/// A condition on the target of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// All of them hold.
    All(Vec<Self>),
    /// The field has exactly this value; a word of `A-Za-z0-9._%$-`.
    Is(Field, String),
    /// The option has no value.
    Unset(OptionName),
    /// The server's clock is before this second since the epoch; never without
    /// [`OptionName::Epoch`].
    Before(i64),
    /// No pane of the session runs a harness: each is dead, or its host recorded the end.
    EveryPaneEnded,
    /// No pane of the session is a host whose harness runs; panes of people do not matter.
    EveryHostEnded,
}

impl Guard {
    /// The session with this id; ids are never reused by one server.
    #[must_use]
    pub fn session(id: &TmuxSessionId) -> Self {
        Self::Is(Field::SessionId, id.to_string())
    }

    /// The pane with this id.
    #[must_use]
    pub fn pane(id: &PaneId) -> Self {
        Self::Is(Field::PaneId, id.to_string())
    }

    /// The session of this spawn.
    #[must_use]
    pub fn owner(owner: &OwnerId) -> Self {
        Self::Is(Field::Option(OptionName::Owner), owner.to_string())
    }

    /// Returns the tmux format that is `1` when the guard holds.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            Self::All(guards) => conjunction(guards),
            Self::Is(field, value) => format!("#{{==:{},{}}}", field.render(), word(value)),
            Self::Unset(option) => format!("#{{==:#{{{}}},}}", option.render()),
            // Without its option the clock would stand at 0, before any second.
            Self::Before(second) => {
                format!("#{{&&:#{{@loop_epoch}},#{{e|<:#{{T:@loop_epoch}},{second}}}}}")
            }
            Self::EveryPaneEnded => {
                "#{==:#{W:#{P:#{?#{||:#{pane_dead},#{m:#{pane_pid} *,#{@loop_exit}}},,L}}},}"
                    .to_owned()
            }
            Self::EveryHostEnded => "#{==:#{W:#{P:#{?#{==:#{@loop_host},#{pane_pid}},\
                 #{?#{||:#{pane_dead},#{m:#{pane_pid} *,#{@loop_exit}}},,L},}}},}"
                .to_owned(),
        }
    }
}

/// tmux 3.3a takes two operands only, so the guards are nested.
fn conjunction(guards: &[Guard]) -> String {
    match guards {
        [] => "1".to_owned(),
        [only] => only.render(),
        [first, rest @ ..] => format!("#{{&&:{},{}}}", first.render(), conjunction(rest)),
    }
}

/// A value cannot leave its place in the format, whoever made it.
fn word(value: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "._%$-".contains(c);
    value
        .chars()
        .map(|c| if harmless(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_nest_in_pairs() {
        let guard = Guard::All(vec![
            Guard::Is(Field::SessionId, "$3".to_owned()),
            Guard::Unset(OptionName::Enter),
            Guard::Before(1_796_050_734),
        ]);

        assert_eq!(
            guard.render(),
            "#{&&:#{==:#{session_id},$3},#{&&:#{==:#{@loop_enter},},\
             #{&&:#{@loop_epoch},#{e|<:#{T:@loop_epoch},1796050734}}}}"
        );
    }

    #[test]
    fn a_value_stays_in_its_place() {
        let guard = Guard::Is(Field::Foreground, "a},1}#(x)".to_owned());

        assert!(
            guard.render().ends_with(",a__1___x_}"),
            "{}",
            guard.render()
        );
    }
}
