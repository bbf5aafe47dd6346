//! Queries the messages that a whole audience sees, for what everyone in it may learn of.

use base::ids::ConversationId;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, QueryFilter, QueryOrder, QuerySelect};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{Column, Entity, Model, Visibility};
use crate::conversations::timeline::scheduled;

/// Returns the newest messages up to a `seq` that prompts may contain and that each member of the
/// audience sees (`None`: everyone), in order.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_newest(
    db: &impl ConnectionTrait,
    id: ConversationId,
    audience: Option<&Audience>,
    to_seq: i64,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let mut shared = scheduled(id)
        .filter(Column::Visibility.eq(Visibility::Normal))
        .filter(Column::Seq.lte(to_seq));
    let viewers: Vec<Viewer> = match audience {
        Some(audience) => (audience.members().iter().copied())
            .map(Viewer::Member)
            .collect(),
        None => vec![Viewer::Outsider],
    };
    for viewer in viewers {
        shared = shared.filter(viewer.condition((Entity, Column::Audience)));
    }
    let newest = shared.order_by_desc(Column::Seq).limit(limit).all(db);
    let mut newest = newest.await?;
    newest.reverse();
    Ok(newest)
}
