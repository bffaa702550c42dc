//! The variable by which a harness's descendants are recognised wherever they went.

use crate::model::OwnerId;

/// Its name; the value is the owner id of the spawn.
pub(super) const NAME: &str = "THE_LOOP_OWNER";

/// The whole entry, as it stands in an environment.
pub(super) fn entry(owner: &OwnerId) -> String {
    format!("{NAME}={}", owner.as_str())
}
