//! What follows a text when its round has nobody left: the loops in which AI answers AI.

use crate::runs::plan_builder::PlanBuilder;
use crate::runs::speaker_choice::TriggerMessage;
use crate::runs::{auto_mode, copilot};

/// Asked once for each text of a run that becomes a message, when the text's round (if it had one)
/// has no slot left. `rests`: that round was paused meanwhile, so whatever follows waits for a
/// person.
///
/// Nothing follows where something newer is planned, or a newer round goes on or rests.
pub fn after_text(builder: &mut PlanBuilder, trigger_message: &TriggerMessage, is_paused: bool) {
    if builder.round.is_some() || builder.queued.is_some() {
        return;
    }
    if !copilot::follow_up(builder, trigger_message, is_paused) {
        auto_mode::follow_up(builder, trigger_message, is_paused);
    }
}
