//! Decides what follows a message after which its round has no slot left: a copilot run, an auto
//! mode round, or nothing.

use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::scheduling::speaker_choice::TriggerMessage;
use crate::runs::scheduling::{auto_mode, copilot};

/// Plans the follow-up. Called once for each text of a run that becomes a message, when its round
/// (if it had one) has no slot left. `is_paused`: that round was paused, so the follow-up waits for
/// a person.
///
/// Plans nothing if a newer run is queued or a newer round is active or paused.
pub fn after_text(builder: &mut PlanBuilder, trigger_message: &TriggerMessage, is_paused: bool) {
    if builder.round.is_some() || builder.queued.is_some() {
        return;
    }
    if !copilot::follow_up(builder, trigger_message, is_paused) {
        auto_mode::follow_up(builder, trigger_message, is_paused);
    }
}
