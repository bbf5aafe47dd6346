//! Plans a continue: queues a run that extends the newest message of an AI. Its text, old and new
//! together, becomes a version of that message, like the text of a regenerate.
//!
//! **Invariant:** a continue is planned only for the newest message, while no run is running, and it
//! runs only if no message followed. A whisper of others does not count as newer.

use base::message_text;

use crate::conversations::message;
use crate::rounds::round;
use crate::runs::scheduling::command::{CommandError, VersionRequest};
use crate::runs::scheduling::plan::{EnqueueRun, MessageRef};
use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::scheduling::regenerate;
use crate::runs::scheduling::state::command_facts::RegenerateFacts;
use crate::runs::store::run;

/// Continues an AI's message, with the same speaker.
///
/// # Errors
/// Returns `NotFound`, `GenerationLocked`, `NothingToContinue`, `NotTheNewest`, `NoSpeaker` or
/// `TooLong`, in this order of precedence.
pub fn plan(builder: &mut PlanBuilder, request: &VersionRequest) -> Result<(), CommandError> {
    let facts = require_target(builder, request)?;
    let target = &facts.target.row;
    builder.audience.clone_from(&target.audience);
    builder.end_round(round::RoundStatus::Canceled, "continue");
    let speaker = target.space_membership_id;
    let mut run = builder.new_run(speaker, run::RunKind::Continue, run::RunReason::Continue);
    run.debug.target_message_id = Some(target.id);
    run.debug.instruction.clone_from(&request.instruction);
    run.debug.chosen_because = Some(format!("continued by {}", request.by));
    builder.enqueue(EnqueueRun {
        run,
        trigger: (facts.answered.as_ref()).map(|it| MessageRef::Message(it.id)),
        expected_tail: builder.tail(),
    });
    Ok(())
}

/// Returns the message to continue, and what it answers.
fn require_target<'a>(
    builder: &PlanBuilder<'a>,
    request: &VersionRequest,
) -> Result<&'a RegenerateFacts, CommandError> {
    let none = CommandError::NothingToContinue;
    let facts = regenerate::require_shown_target(builder, request, none)?;
    let target = &facts.target.row;
    if builder.running.is_some() {
        return Err(CommandError::GenerationLocked);
    }
    // A prompt must not contain an excluded message, so its text cannot be continued.
    let is_excluded = target.visibility == message::Visibility::Excluded;
    if builder.state.last_speaker.is_none() || is_excluded {
        return Err(CommandError::NothingToContinue);
    }
    if !facts.is_newest || target.role != message::MessageRole::Assistant {
        return Err(CommandError::NotTheNewest);
    }
    regenerate::require_author_can_speak(builder, facts)?;
    match target.content.len() < message_text::MAX_BYTES {
        true => Ok(facts),
        false => Err(CommandError::TooLong),
    }
}
