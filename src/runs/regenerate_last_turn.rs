//! A whole turn once more: what followed a human's message goes, and it is answered again.

use crate::conversations::message;
use crate::ids::MessageId;
use crate::rounds::round;
use crate::runs::command::CommandError;
use crate::runs::plan::{MessageRef, PlanChange};
use crate::runs::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::speaker_choice::TriggerMessage;
use crate::runs::{run, speaker_choice};
use crate::spaces::space::{GroupRegenerateMode, ReplyOrder};
use crate::speakers::selection::SpeakerChoice;

/// The human's message that a regenerate is about, where it means the whole turn: in a group whose
/// space says so, if a human has spoken. In manual order nobody would answer it.
pub fn concerns<'a>(builder: &PlanBuilder<'a>) -> Option<&'a message::Model> {
    let whole_turns = builder.state.space.group_regenerate_mode == GroupRegenerateMode::LastTurn;
    let is_group = builder.state.candidates().len() > 1;
    let somebody_answers = builder.state.space.reply_order != ReplyOrder::Manual;
    let said = builder.state.answered_message.as_ref();
    said.filter(|_| whole_turns && is_group && somebody_answers)
}

/// What follows `said` is hidden, and a new round answers it.
///
/// # Errors
/// [`Refusal::BranchFirst`] when other people's words or a branch were built on what would go.
pub fn last_turn(
    builder: &mut PlanBuilder,
    user_message: &message::Model,
) -> Result<(), CommandError> {
    let choices = require_repliers(builder, user_message)?;
    let by_human = |it: &message::Model| it.role == message::MessageRole::User;
    if builder.state.has_fork_point_in_last_turn
        || builder.state.last_turn_messages.iter().any(by_human)
    {
        return Err(CommandError::BranchRequired(user_message.id));
    }
    builder.end_round(round::RoundStatus::Canceled, "regenerate");
    builder.cancel_running(run::RunCancelReason::Superseded);
    builder.push(PlanChange::HideMessages(
        builder.state.last_turn_messages.clone(),
    ));
    start_round(builder, user_message.id, choices);
    Ok(())
}

/// The tail is a human's message, and is answered again: at the beginning of a branch.
///
/// # Errors
/// [`Refusal::NothingToRegenerate`], [`Refusal::NoSpeaker`].
pub fn reply_to_tail(builder: &mut PlanBuilder) -> Result<(), CommandError> {
    let tail = builder.state.tail.as_ref();
    let said = tail.filter(|it| it.role == message::MessageRole::User);
    let said = said.ok_or(CommandError::NothingToRegenerate)?;
    let choices = require_repliers(builder, said)?;
    builder.end_round(round::RoundStatus::Canceled, "regenerate");
    builder.cancel_running(run::RunCancelReason::Superseded);
    start_round(builder, said.id, choices);
    Ok(())
}

/// Who would answer the message if it were said now.
fn require_repliers(
    builder: &PlanBuilder,
    user_message: &message::Model,
) -> Result<Vec<SpeakerChoice>, CommandError> {
    let said = TriggerMessage {
        author: user_message.space_membership_id,
        text: &user_message.content,
        mentions: &[],
    };
    let choices = speaker_choice::after_user_message(builder, &said);
    match choices.is_empty() {
        true => Err(CommandError::NoSpeaker),
        false => Ok(choices),
    }
}

fn start_round(builder: &mut PlanBuilder, said: MessageId, choices: Vec<SpeakerChoice>) {
    builder.new_round(
        round::RoundKind::UserTurn,
        choices,
        MessageRef::Message(said),
    );
    builder.queue_current_slot(NextSlot::new(
        run::RunKind::UserTurn,
        run::RunReason::LastTurn,
    ));
}
