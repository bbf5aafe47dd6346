//! Adds and removes reactions, and publishes them.
//!
//! **Invariant:** a change takes the next `rev` of its conversation under the conversation's lock, like
//! a step of the scheduler, and is published after its commit and before the next step of this node.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter};
use tokio::task::JoinError;

use crate::conversations::annotations::emoji::Emoji;
use crate::conversations::annotations::reaction;
use crate::conversations::annotations::reaction::ReactionView;
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::{conversation, message};
use crate::db::backend::Backend;
use crate::db::commit_verification::CommitProof;
use crate::runs::announcements::receivers;
use crate::runs::engine::RunEngine;
use crate::runs::events::ReactionsUpdated;

/// A reaction to add or to remove.
#[derive(Clone, Debug)]
pub struct ReactionChange {
    pub conversation: ConversationId,
    pub message: MessageId,
    pub membership: MembershipId,
    pub emoji: Emoji,
    /// Whether it is added.
    pub is_added: bool,
}

/// Why a reaction was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ReactionError {
    #[error("the message does not exist or is hidden")]
    NotFound,
    #[error("the message has the maximum number of different emoji")]
    TooMany,
    #[error(transparent)]
    Database(#[from] sea_orm::DbErr),
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
}

/// A committed change: the event, who receives it, and a proof of the commit.
type WrittenReaction = Option<(ReactionsUpdated, Option<Audience>, Option<CommitProof>)>;

impl RunEngine {
    /// Adds or removes a reaction; does nothing if it exists already, or does not exist.
    ///
    /// Completes even if the caller is dropped: what is committed is announced.
    ///
    /// # Errors
    /// Returns `NotFound` for a hidden message, `TooMany` for one emoji too many.
    pub async fn set_reaction(&self, change: ReactionChange) -> Result<(), ReactionError> {
        let own = self.context.clone();
        let task = self.context.shutdown.spawn(async move {
            let id = change.conversation;
            let _in_order = own.step_locks.lock(id).await?;
            let (now, backend) = (own.clock.now(), own.db.backend());
            let write = own.db.write_verified(
                move |tx| Box::pin(async move { write_change(tx, change, now, backend).await }),
                |written: &WrittenReaction| written.as_ref().and_then(|(.., proof)| proof.clone()),
            );
            if let Some((event, audience, _)) = write.await? {
                receivers::publish_private(&own.hub, id, (&event, event.rev), audience.as_ref());
            }
            Ok(())
        });
        task.await?
    }
}

/// Writes a change, and returns the event; `None` if there is nothing to change.
async fn write_change(
    tx: &DatabaseTransaction,
    change: ReactionChange,
    now: Timestamp,
    backend: Backend,
) -> Result<WrittenReaction, ReactionError> {
    let (id, emoji) = (change.message, change.emoji.as_str());
    let locked = conversation::lock(tx, change.conversation).await?;
    let mut row = locked.ok_or(ReactionError::NotFound)?;
    let found = message::find_in_conversation(tx, row.id, id).await?;
    let shown = found.filter(|it| it.visibility != message::Visibility::Hidden);
    let target = shown.ok_or(ReactionError::NotFound)?;
    let mut before = reaction::load(tx, [id]).await?;
    let before = before.remove(&id).unwrap_or_default();
    let of_emoji = before.iter().find(|it| it.emoji == emoji);
    let has_reacted = of_emoji.is_some_and(|it| it.membership_ids.contains(&change.membership));
    if has_reacted == change.is_added {
        return Ok(None);
    }
    if change.is_added {
        if of_emoji.is_none() && before.len() >= reaction::MAX_EMOJI {
            return Err(ReactionError::TooMany);
        }
        let new = reaction::Model {
            message_id: id,
            space_membership_id: change.membership,
            emoji: emoji.to_owned(),
            created_at: now,
        };
        reaction::insert(tx, new).await?;
    } else {
        reaction::delete(tx, (id, change.membership, emoji)).await?;
    }
    let mut after = reaction::load(tx, [id]).await?;
    let reactions = after.remove(&id).unwrap_or_default();
    row.rev += 1;
    mark_changed(tx, id, row.rev, &reactions).await?;
    let proof = conversation::save_counters(tx, &row, backend).await?;
    let event = ReactionsUpdated {
        conversation_id: row.id,
        rev: row.rev,
        message_id: id,
        reactions,
    };
    Ok(Some((event, target.audience, proof)))
}

/// Sets the `rev` of a message whose reactions were changed.
async fn mark_changed(
    tx: &impl ConnectionTrait,
    id: MessageId,
    rev: i64,
    reactions: &[ReactionView],
) -> Result<(), sea_orm::DbErr> {
    message::Entity::update_many()
        .col_expr(message::Column::Rev, Expr::value(rev))
        .col_expr(
            message::Column::HasReactions,
            Expr::value(!reactions.is_empty()),
        )
        .filter(message::Column::Id.eq(id))
        .exec(tx)
        .await
        .map(drop)
}
