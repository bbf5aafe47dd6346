//! Table `read_marks`: the position up to which each user has read a conversation, and the event
//! `read_updated`.

use std::collections::{HashMap, HashSet};

use base::ids::{ConversationId, UserId};
use realtime::envelope::{Envelope, Event};
use realtime::topic::Topic;
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait, OnConflict, SimpleExpr};
use sea_orm::{QuerySelect, QueryTrait};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{conversation, message};
use crate::db::connect::Db;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "read_marks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: UserId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub conversation_id: ConversationId,
    pub last_read_seq: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The user has read further, possibly in another window.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadUpdated {
    pub conversation_id: ConversationId,
    pub last_read_seq: i64,
}

impl Event for ReadUpdated {
    fn name(&self) -> &'static str {
        "read_updated"
    }
}

/// Returns the event for the user's other windows.
pub fn read_updated(user: UserId, conversation_id: ConversationId, seq: i64) -> Envelope {
    let event = ReadUpdated {
        conversation_id,
        last_read_seq: seq,
    };
    Envelope::plain(Topic::User(user), &event)
}

/// Returns how far the user has read each of these conversations.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    conversations: &[ConversationId],
) -> Result<HashMap<ConversationId, i64>, DbErr> {
    let marks = Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::ConversationId.is_in(conversations.iter().copied()))
        .all(db)
        .await?;
    Ok(marks
        .into_iter()
        .map(|it| (it.conversation_id, it.last_read_seq))
        .collect())
}

/// Returns those of these conversations in which the viewer sees no message after the given `seq`: all later
/// ones are whispers to others.
pub async fn list_all_read(
    db: &impl ConnectionTrait,
    viewer: Viewer,
    marks: &[(ConversationId, i64)],
) -> Result<HashSet<ConversationId>, DbErr> {
    if marks.is_empty() {
        return Ok(HashSet::new());
    }
    let mut mark = CaseStatement::new();
    for (id, seq) in marks {
        mark = mark.case(conversation::Column::Id.eq(*id), *seq);
    }
    let mark = SimpleExpr::Case(Box::new(mark));
    let id = Expr::col((conversation::Entity, conversation::Column::Id));
    let unread = message::Entity::find()
        .select_only()
        .column(message::Column::Id)
        .filter(Expr::col((message::Entity, message::Column::ConversationId)).eq(id))
        .filter(Expr::col((message::Entity, message::Column::Seq)).gt(mark))
        .filter(viewer.condition((message::Entity, message::Column::Audience)));
    let read: Vec<ConversationId> = conversation::Entity::find()
        .select_only()
        .column(conversation::Column::Id)
        .filter(conversation::Column::Id.is_in(marks.iter().map(|(id, _)| *id)))
        .filter(Expr::exists(unread.into_query()).not())
        .into_tuple()
        .all(db)
        .await?;
    Ok(read.into_iter().collect())
}

/// Records that the user has read up to `seq`; a smaller `seq` than the stored one changes nothing.
/// Returns whether the mark was advanced.
pub async fn advance(
    db: &Db,
    user: UserId,
    conversation: ConversationId,
    seq: i64,
) -> Result<bool, DbErr> {
    let mark = ActiveModel {
        user_id: Set(user),
        conversation_id: Set(conversation),
        last_read_seq: Set(seq),
    };
    db.write(move |tx| {
        Box::pin(async move {
            let mut on_conflict = OnConflict::columns([Column::UserId, Column::ConversationId]);
            on_conflict.update_column(Column::LastReadSeq);
            on_conflict.action_and_where(Expr::col((Entity, Column::LastReadSeq)).lt(seq));
            Entity::insert(mark)
                .on_conflict(on_conflict)
                .exec_without_returning(tx)
                .await
                .map(|n_rows| n_rows > 0)
        })
    })
    .await
}
