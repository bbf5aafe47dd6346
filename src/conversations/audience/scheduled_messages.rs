//! Queries the messages that the schedule reads, of those that a viewer or the audience of a message sees.

use base::ids::{ConversationId, MessageId};
use sea_orm::sea_query::{ExprTrait, SimpleExpr};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, QueryFilter, QueryOrder, QuerySelect};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{Column, Entity, MessageRole, Model};
use crate::conversations::timeline::scheduled;

/// Returns the newest message of role `user` before a message that the schedule reads, of those that are
/// for everyone or have the audience of that message.
pub async fn last_user_message(
    db: &impl ConnectionTrait,
    before: &Model,
) -> Result<Option<Model>, DbErr> {
    scheduled_for(before)
        .filter(Column::Role.eq(MessageRole::User))
        .filter(Column::Seq.lt(before.seq))
        .order_by_desc(Column::Seq)
        .one(db)
        .await
}

/// Returns the messages after a message that the schedule reads and that have its audience, in order.
pub async fn scheduled_since(
    db: &impl ConnectionTrait,
    message: &Model,
) -> Result<Vec<Model>, DbErr> {
    let since = scheduled(message.conversation_id).filter(Column::Seq.gt(message.seq));
    let of_audience = since.filter(has_audience(message.audience.as_ref()));
    of_audience.order_by_asc(Column::Seq).all(db).await
}

/// Returns whether the schedule reads a later message that is for everyone or has the audience of this
/// one.
pub async fn has_scheduled_after(
    db: &impl ConnectionTrait,
    message: &Model,
) -> Result<bool, DbErr> {
    let later = scheduled_for(message)
        .filter(Column::Seq.gt(message.seq))
        .select_only()
        .column(Column::Id)
        .into_tuple::<MessageId>();
    Ok(later.one(db).await?.is_some())
}

/// Returns the newest message that the schedule reads and that the viewer sees.
pub async fn find_newest_seen(
    db: &impl ConnectionTrait,
    id: ConversationId,
    viewer: Viewer,
) -> Result<Option<MessageId>, DbErr> {
    scheduled(id)
        .filter(viewer.condition((Entity, Column::Audience)))
        .order_by_desc(Column::Seq)
        .select_only()
        .column(Column::Id)
        .into_tuple()
        .one(db)
        .await
}

/// Returns the newest message that the schedule reads and that everyone sees who sees what has the
/// audience `readers`.
pub async fn find_newest_seen_by_all(
    db: &impl ConnectionTrait,
    id: ConversationId,
    readers: Option<&Audience>,
) -> Result<Option<Model>, DbErr> {
    scheduled(id)
        .filter(viewer::seen_by_all_of(readers, (Entity, Column::Audience)))
        .order_by_desc(Column::Seq)
        .one(db)
        .await
}

/// Selects the messages of the conversation of a message that the schedule reads and that are for
/// everyone or have its audience.
fn scheduled_for(message: &Model) -> sea_orm::Select<Entity> {
    let all = scheduled(message.conversation_id);
    match &message.audience {
        None => all.filter(Column::Audience.is_null()),
        Some(_) => all.filter(
            Column::Audience
                .is_null()
                .or(has_audience(message.audience.as_ref())),
        ),
    }
}

fn has_audience(audience: Option<&Audience>) -> SimpleExpr {
    match audience {
        None => Column::Audience.is_null(),
        Some(audience) => Column::Audience.eq(audience.clone()),
    }
}
