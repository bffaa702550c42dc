//! The vocabulary of the program: plain types, their parsing and their display.
//!
//! Nothing here does I/O. Raw input (payloads, rows, arguments) becomes one of these types once, at
//! the edge; inside, a wrong value cannot be written down.

mod control;
mod delivery;
mod event;
mod hosting;
mod login;
mod process_id;
#[cfg(any(test, fuzzing))]
pub mod property;
mod repo;
mod session;
pub mod text;
mod work_item;

pub use control::{ControlCommand, OperatorCommand, TmuxFate};
pub use delivery::{
    ClaimToken, Class, DeliveryId, DeliveryState, DropReason, HoldReason, Repeat, UnknownReason,
    UnknownState,
};
pub use event::{Detail, Edit, Event, EventKey, EventKind, ItemKind, Source, content_version};
pub use hosting::{AfterEnd, Ending, HostPaths, Phase, PromptPassing, Record, Ticket};
pub use login::Login;
pub use process_id::{BootId, ProcessId};
pub use repo::{DEFAULT_HOST, RefError, RepoRef};
pub use session::{
    BadId, HarnessName, HarnessSessionId, OwnerId, PaneId, RespawnAttempt, Session, SessionStatus,
    TmuxSessionId, TmuxSocket, TmuxTarget,
};
pub use work_item::{SessionName, WorkItemRef};
