//! Finds runs whose prompt is stored and that a person sees, so that they can open it.

use base::ids::{ConversationId, MembershipId, RunId, SpaceId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::conversation;
use crate::prompt::record::run_prompt;
use crate::runs::store::run::{Column, Entity};

/// A run whose prompt is stored.
#[derive(Clone, Copy, Debug)]
pub struct PromptRun {
    pub id: RunId,
    pub conversation: ConversationId,
    pub speaker: MembershipId,
}

/// Returns those of these runs of a space whose prompt is stored and that the viewer sees, unordered. Those
/// of conversations that are being deleted are left out.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_in_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    runs: Vec<RunId>,
    viewer: Viewer,
) -> Result<Vec<PromptRun>, DbErr> {
    let found: Vec<(RunId, ConversationId, MembershipId)> = Entity::find()
        .select_only()
        .columns([
            Column::Id,
            Column::ConversationId,
            Column::SpeakerSpaceMembershipId,
        ])
        .filter(Column::Id.in_subquery(run_prompt::stored_among(runs)))
        .filter(Column::SpaceId.eq(space))
        .filter(viewer.condition((Entity, Column::Audience)))
        .filter(Column::ConversationId.not_in_subquery(conversation::hidden_ids()))
        .into_tuple()
        .all(db)
        .await?;
    let runs = found.into_iter();
    Ok(runs
        .map(|(id, conversation, speaker)| PromptRun {
            id,
            conversation,
            speaker,
        })
        .collect())
}
