//! The setting of a character's membership that limits its prompts to what it heard: the messages since it
//! joined.

use base::clock::Timestamp;
use base::ids::MembershipId;
use serde_json::Value;

use crate::spaces::membership::{MembershipKind, Model};

/// Its key in the settings of a membership.
pub const ONLY_HEARD: &str = "remembers_only_what_it_heard";

/// Returns the time from which a character, one of `members`, remembers messages, if it is limited. `None`:
/// it knows everything.
pub fn heard_since(members: &[Model], id: MembershipId) -> Option<Timestamp> {
    let found = members.iter().find(|it| it.id == id)?;
    let is_on = found.settings[ONLY_HEARD] == Value::Bool(true);
    (is_on && found.kind == MembershipKind::Character).then_some(found.created_at)
}
