//! Plans the regeneration of a whole turn: hides the messages after a user message and starts a new
//! round for it. Also plans a new reply to a user message that is the tail.

use base::ids::MessageId;

use crate::conversations::message;
use crate::rounds::round;
use crate::runs::scheduling::command::CommandError;
use crate::runs::scheduling::plan::{MessageRef, NewSlot, PlanChange};
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::scheduling::speaker_choice;
use crate::runs::scheduling::speaker_choice::{TriggerMessage, TurnTakers};
use crate::runs::scheduling::state::command_facts::RegenerateFacts;
use crate::runs::store::run;
use crate::spaces::space::{GroupRegenerateMode, ReplyOrder};

/// Returns the user message whose replies a regenerate replaces, if it applies to the whole turn:
/// in a group whose space is set so, after a user message. Not in manual order, which would select
/// no speaker.
pub fn concerns<'a>(
    builder: &PlanBuilder,
    facts: &'a RegenerateFacts,
) -> Option<&'a message::Model> {
    let whole_turns = builder.state.space.group_regenerate_mode == GroupRegenerateMode::LastTurn;
    let is_group = builder.state.candidates().len() > 1;
    let has_automatic_order = builder.state.space.reply_order != ReplyOrder::Manual;
    let user_message = facts.answered.as_ref();
    user_message.filter(|_| whole_turns && is_group && has_automatic_order)
}

/// Hides what follows the user message and starts a new round for it.
///
/// # Errors
/// Returns `BranchRequired` when another user message or a branch depends on what would be hidden.
pub fn last_turn(
    builder: &mut PlanBuilder,
    facts: &RegenerateFacts,
    user_message: &message::Model,
) -> Result<(), CommandError> {
    builder.audience.clone_from(&user_message.audience);
    let choices = require_repliers(builder, user_message)?;
    let by_human = |it: &message::Model| it.role == message::MessageRole::User;
    if facts.has_fork_point_in_last_turn || facts.last_turn.iter().any(by_human) {
        return Err(CommandError::BranchRequired(user_message.id));
    }
    builder.end_round(round::RoundStatus::Canceled, "regenerate");
    builder.cancel_running(run::RunCancelReason::Superseded);
    builder.push(PlanChange::HideMessages(facts.last_turn.clone()));
    start_round(builder, user_message.id, choices);
    Ok(())
}

/// Replies again to the tail, which is a user message: at the start of a branch.
///
/// # Errors
/// Returns `NothingToRegenerate` when the tail is not a user message, or `NoSpeaker` when no
/// character would reply.
pub fn reply_to_tail(builder: &mut PlanBuilder) -> Result<(), CommandError> {
    let tail = builder.state.tail.as_ref();
    let user_message = tail.filter(|it| it.role == message::MessageRole::User);
    let user_message = user_message.ok_or(CommandError::NothingToRegenerate)?;
    builder.audience.clone_from(&user_message.audience);
    let choices = require_repliers(builder, user_message)?;
    builder.end_round(round::RoundStatus::Canceled, "regenerate");
    builder.cancel_running(run::RunCancelReason::Superseded);
    start_round(builder, user_message.id, choices);
    Ok(())
}

/// Returns who would reply if the message were posted now.
fn require_repliers(
    builder: &PlanBuilder,
    user_message: &message::Model,
) -> Result<Vec<NewSlot>, CommandError> {
    let user_message = TriggerMessage {
        author: user_message.space_membership_id,
        text: &user_message.content,
        mentions: &[],
    };
    let turn_takers = TurnTakers::Characters;
    let choices = speaker_choice::after_user_message(builder, &user_message, turn_takers);
    match choices.is_empty() {
        true => Err(CommandError::NoSpeaker),
        false => Ok(choices),
    }
}

fn start_round(builder: &mut PlanBuilder, user_message: MessageId, choices: Vec<NewSlot>) {
    builder.new_round(
        round::RoundKind::UserTurn,
        choices,
        MessageRef::Message(user_message),
    );
    builder.queue_current_slot(NextSlot::new(
        run::RunKind::UserTurn,
        run::RunReason::LastTurn,
    ));
}
