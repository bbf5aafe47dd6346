//! Finds the newest message that people see, if the tail is a whisper to others.

use base::ids::MessageId;
use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::scheduled_messages;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message;
use crate::runs::scheduling::command::ForcedTurn;
use crate::runs::scheduling::messages::post_audience;
use crate::runs::scheduling::state::schedule_state::ScheduleState;

/// Returns the newest message that the schedule reads and that the viewer sees.
pub(super) async fn find_for_viewer(
    tx: &impl ConnectionTrait,
    state: &ScheduleState,
    viewer: Viewer,
) -> Result<Option<MessageId>, DbErr> {
    match &state.tail {
        Some(tail) if !viewer.sees(tail.audience.as_ref()) => {
            scheduled_messages::find_newest_seen(tx, state.conversation.id, viewer).await
        }
        tail => Ok(tail.as_ref().map(|it| it.id)),
    }
}

/// Returns the newest message that everyone in this audience sees, if that is not the tail.
pub(super) async fn find_before_tail(
    tx: &impl ConnectionTrait,
    state: &ScheduleState,
    audience: Option<&Audience>,
) -> Result<Option<message::Model>, DbErr> {
    match &state.tail {
        Some(tail) if !tail.is_seen_by_all_of(audience) => {
            let id = state.conversation.id;
            scheduled_messages::find_newest_seen_by_all(tx, id, audience).await
        }
        _ => Ok(None),
    }
}

/// Returns the newest message that everyone sees who will see the text of a requested turn, if that is
/// not the tail.
pub(super) async fn find_for_turn(
    tx: &impl ConnectionTrait,
    state: &ScheduleState,
    turn: &ForcedTurn,
) -> Result<Option<message::Model>, DbErr> {
    match post_audience::audience_of_reply(state, turn) {
        Ok(audience) => find_before_tail(tx, state, audience.as_ref()).await,
        // The planner rejects it.
        Err(_) => Ok(None),
    }
}
