//! Plans messages that are out of character: a post that no one answers, and a mark that is set or
//! removed later.
//!
//! **Invariant:** none of these plans starts, replaces or ends a run or a round. Only the tail that a
//! queued run expects follows the tail, so that the run stays valid.

use base::ids::MessageId;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message;
use crate::runs::scheduling::command::CommandError;
use crate::runs::scheduling::messages::new_post::NewPost;
use crate::runs::scheduling::messages::post_audience;
use crate::runs::scheduling::plan::{MessageRef, NewMessage, PlanChange};
use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::scheduling::state::command_facts::CommandFacts;
use crate::spaces::space::InputPolicy;

/// Appends a message that the schedule reads past, under every input policy.
pub fn post(builder: &mut PlanBuilder, post: &NewPost, audience: Option<Audience>) {
    builder.push(PlanChange::Append(NewMessage {
        is_ooc: true,
        is_for_people: post_audience::is_for_people(builder, audience.as_ref()),
        ..NewMessage::of_post(post, audience)
    }));
}

/// Sets or removes the mark of a message.
///
/// # Errors
/// Returns `NotFound` when the message does not exist or is hidden, `NotOfPerson` when a model wrote
/// it, and `GenerationLocked` when the mark decides which message is the newest while a reply is
/// generated or queued in a space that refuses posts then.
pub fn set_mark(
    builder: &mut PlanBuilder,
    id: MessageId,
    is_ooc: bool,
) -> Result<(), CommandError> {
    let CommandFacts::OutOfCharacter {
        target: Some(target),
        before,
    } = &builder.state.facts
    else {
        return Err(CommandError::NotFound);
    };
    let row = &target.row;
    if row.visibility == message::Visibility::Hidden {
        return Err(CommandError::NotFound);
    }
    if row.is_ooc == is_ooc {
        return Ok(());
    }
    if row.role != message::MessageRole::User || row.conversation_run_id.is_some() {
        return Err(CommandError::NotOfPerson);
    }
    let tail = builder.state.tail.as_ref();
    // The schedule reads past a whisper to people, marked or not.
    let is_newest = !row.is_for_people && tail.is_none_or(|it| row.seq >= it.seq);
    let is_busy = builder.queued.is_some() || builder.running.is_some();
    let policy = builder.state.space.during_generation_user_input_policy;
    if is_newest && is_busy && policy == InputPolicy::Reject {
        return Err(CommandError::GenerationLocked);
    }
    builder.push(PlanChange::SetOutOfCharacter {
        message: id,
        is_ooc,
    });
    if is_newest {
        let new_tail = match is_ooc {
            true => before.as_ref().map(|it| it.id),
            false => Some(id),
        };
        expect_tail(builder, new_tail.map(MessageRef::Message));
    }
    Ok(())
}

/// Lets the queued run expect the new tail, if it expects the present one.
pub(super) fn expect_tail(builder: &mut PlanBuilder, tail: Option<MessageRef>) {
    let Some(run) = builder.queued.clone() else {
        return;
    };
    let present = builder.state.tail.as_ref().map(|it| it.id);
    if run.debug.expected_last_message_id.is_some() && run.debug.expected_last_message_id == present
    {
        builder.push(PlanChange::ExpectTail { run, tail });
    }
}
