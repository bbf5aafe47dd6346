//! Changes the pictures of posted messages, and publishes the messages.
//!
//! **Invariant:** a change takes the next `rev` of its conversation under the conversation's lock, like
//! a step of the scheduler, and is published after its commit and before the next step of this node.

use std::sync::Arc;

use base::ids::{AttachmentId, ConversationId, MessageId};
use base::message_text;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter};
use tokio::task::JoinError;

use crate::attachments::attachment;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::timeline_page::MessageDetails;
use crate::conversations::{conversation, message};
use crate::db::backend::Backend;
use crate::db::commit_verification::CommitProof;
use crate::regex_scripts::script_cache::ScriptCache;
use crate::runs::announcements::receivers;
use crate::runs::engine::RunEngine;

/// A change of a picture.
#[derive(Clone, Debug)]
pub struct AttachmentChange {
    pub conversation: ConversationId,
    pub message: MessageId,
    pub attachment: AttachmentId,
    /// The new description; `None` deletes the picture.
    pub alt: Option<String>,
    /// For whom the message is returned.
    pub viewer: Viewer,
}

/// Why a picture was not changed.
#[derive(Debug, thiserror::Error)]
pub enum AttachmentError {
    #[error("the picture does not exist, or its message is hidden")]
    NotFound,
    #[error("the message would have neither a text nor a picture")]
    NothingShown,
    #[error(transparent)]
    Database(#[from] sea_orm::DbErr),
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
}

/// A committed change: the message after it with its details, and a proof of the commit.
type WrittenChange = (message::Model, MessageDetails, Option<CommitProof>);

impl RunEngine {
    /// Describes or deletes a picture of a message.
    ///
    /// Completes even if the caller is dropped: what is committed is announced.
    ///
    /// # Errors
    /// Returns `NotFound` for a picture of another or a hidden message, and `NothingShown` for the last
    /// picture of a message without a text.
    pub async fn change_attachment(
        &self,
        change: AttachmentChange,
    ) -> Result<message::MessageView, AttachmentError> {
        let own = self.context.clone();
        let task = self.context.shutdown.spawn(async move {
            let id = change.conversation;
            let _in_order = own.step_locks.lock(id).await?;
            let backend = own.db.backend();
            let scripts = own.prompt_caches.scripts.clone();
            let write = own.db.write_verified(
                move |tx| {
                    Box::pin(async move { write_change(tx, &scripts, change, backend).await })
                },
                |(_, _, proof): &WrittenChange| proof.clone(),
            );
            let (row, details, _) = write.await?;
            // Scripts that change what is shown must not run on a thread that serves requests; their
            // result is cached.
            let details = Arc::new(details);
            let shown = (details.clone(), row.clone(), own.markdown.clone());
            let rendering = own.shutdown.main().spawn_blocking(move || {
                let (details, row, markdown) = shown;
                details.view(&row, Some(&markdown))
            });
            let view = rendering.await?;
            let quoted = details.quoted_audience(&row);
            let view_for = |viewer| details.view_for(viewer, &row, Some(&own.markdown));
            receivers::publish_message(&own.hub, (&row, quoted), false, view_for);
            Ok(view)
        });
        task.await?
    }
}

async fn write_change(
    tx: &DatabaseTransaction,
    scripts: &ScriptCache,
    change: AttachmentChange,
    backend: Backend,
) -> Result<WrittenChange, AttachmentError> {
    let locked = conversation::lock(tx, change.conversation).await?;
    let mut parent = locked.ok_or(AttachmentError::NotFound)?;
    let found = message::find_in_conversation(tx, parent.id, change.message).await?;
    let found = found.filter(|it| it.visibility != message::Visibility::Hidden);
    let mut row = found.ok_or(AttachmentError::NotFound)?;
    let mut pictures = attachment::load(tx, [row.id]).await?;
    let pictures = pictures.remove(&row.id).unwrap_or_default();
    if pictures.iter().all(|it| it.id != change.attachment) {
        return Err(AttachmentError::NotFound);
    }
    match change.alt {
        Some(alt) => attachment::set_alt(tx, change.attachment, alt).await?,
        None => {
            row.has_attachments = pictures.len() > 1;
            if !row.has_attachments && message_text::is_blank(&row.content) {
                return Err(AttachmentError::NothingShown);
            }
            attachment::delete(tx, change.attachment).await?;
        }
    }
    parent.rev += 1;
    row.rev = parent.rev;
    mark_changed(tx, &row).await?;
    let proof = conversation::save_counters(tx, &parent, backend).await?;
    let rows = std::slice::from_ref(&row);
    let details = MessageDetails::load(tx, scripts, change.viewer, rows).await?;
    Ok((row, details, proof))
}

/// Stores the `rev` of a message whose pictures were changed, and whether any is left.
async fn mark_changed(
    tx: &impl ConnectionTrait,
    row: &message::Model,
) -> Result<(), sea_orm::DbErr> {
    message::Entity::update_many()
        .col_expr(message::Column::Rev, Expr::value(row.rev))
        .col_expr(
            message::Column::HasAttachments,
            Expr::value(row.has_attachments),
        )
        .filter(message::Column::Id.eq(row.id))
        .exec(tx)
        .await
        .map(drop)
}
