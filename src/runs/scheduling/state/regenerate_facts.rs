//! Loads what a regenerate replaces, or a continue extends: the message, what it answers, and whether it
//! is the newest one for those who see it.

use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::audience::scheduled_messages;
use crate::conversations::timeline;
use crate::runs::scheduling::state::command_facts::{RegenerateFacts, TargetMessage};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::spaces::space;

/// Loads the message that the target answers, and the messages since then if the whole turn may be
/// regenerated.
pub(super) async fn load(
    tx: &impl ConnectionTrait,
    target: TargetMessage,
    state: &mut ScheduleState,
    may_replace_turn: bool,
) -> Result<RegenerateFacts, DbErr> {
    let id = state.conversation.id;
    let tail = state.tail.as_ref();
    let row = &target.row;
    let is_newest = match tail {
        Some(tail) if tail.id == row.id => true,
        Some(tail) if tail.audience.is_none() || tail.audience == row.audience => false,
        _ => !scheduled_messages::has_scheduled_after(tx, row).await?,
    };
    let mut facts = RegenerateFacts {
        answered: scheduled_messages::last_user_message(tx, row).await?,
        target,
        last_turn: Vec::new(),
        has_fork_point_in_last_turn: false,
        is_newest,
    };
    if let Some(user_message) = &facts.answered
        && may_replace_turn
        && state.space.group_regenerate_mode == space::GroupRegenerateMode::LastTurn
    {
        facts.last_turn = scheduled_messages::scheduled_since(tx, user_message).await?;
        let ids = facts.last_turn.iter().map(|it| it.id);
        facts.has_fork_point_in_last_turn = timeline::has_fork_point(tx, ids).await?;
        // The new speakers are chosen as if no character had replied.
        state.last_speaker = timeline::last_speaker(tx, id, user_message.seq).await?;
    }
    Ok(facts)
}
