//! Queries and inserts the messages of a conversation: finds them by position, author or
//! `client_id`, and checks for greetings and branches. Defines `TimelinePage`, which selects a part
//! of a timeline; `timeline_page.rs` loads it.
//!
//! **Invariant:** `seq` is consecutive from 1. The callers of [`append`] assign it from the locked
//! row of the conversation, in the same transaction; a reader who saw `k` never finds a new
//! `j < k`.

use std::collections::HashSet;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId};
use sea_orm::ActiveValue::NotSet;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{Column, Entity, MessageRole, Model};
use crate::conversations::{conversation, message};
use crate::db::id_list::padded;

/// A timeline with more messages cannot have only greetings, because each character greets once.
const MAX_GREETINGS: i64 = 1_000;

/// A literal, so that the partial indexes apply.
const NOT_HIDDEN: &str = "messages.visibility <> 'hidden'";
const SCHEDULED: &str =
    "messages.visibility <> 'hidden' AND NOT messages.is_ooc AND NOT messages.is_for_people";

/// Returns the newest message of each of these conversations that the schedule reads, neither hidden
/// nor out of character: with one query if that is the newest of all, and one more for each conversation
/// where it is not.
///
/// The rows must be current: locked by this transaction, or read in its snapshot.
pub async fn list_tails(
    db: &impl ConnectionTrait,
    rows: impl IntoIterator<Item = &conversation::Model>,
) -> Result<Vec<Model>, DbErr> {
    let rows: Vec<_> = rows.into_iter().filter(|it| it.last_seq > 0).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let conversation_seq = (conversation::Entity, conversation::Column::LastSeq);
    let mut tails = Entity::find()
        .inner_join(conversation::Entity)
        .filter(conversation::Column::Id.is_in(padded(rows.iter().map(|it| it.id))))
        .filter(Expr::col((Entity, Column::Seq)).equals(conversation_seq))
        .filter(Expr::cust(SCHEDULED))
        .all(db)
        .await?;
    let found: HashSet<_> = tails.iter().map(|it| it.conversation_id).collect();
    for row in rows.iter().filter(|it| !found.contains(&it.id)) {
        let before = scheduled(row.id).order_by_desc(Column::Seq).one(db).await?;
        tails.extend(before);
    }
    Ok(tails)
}

/// Returns the author of the newest assistant message before `seq` that is not hidden. A greeting
/// counts.
pub async fn last_speaker(
    db: &impl ConnectionTrait,
    id: ConversationId,
    seq: i64,
) -> Result<Option<MembershipId>, DbErr> {
    let newest = scheduled(id)
        .filter(Column::Role.eq(MessageRole::Assistant))
        .filter(Column::Seq.lt(seq))
        .order_by_desc(Column::Seq)
        .one(db)
        .await?;
    Ok(newest.map(|it| it.space_membership_id))
}

/// Returns the members who have spoken since the newest message of role `user`.
pub async fn speakers_since_last_user_message(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
) -> Result<HashSet<MembershipId>, DbErr> {
    let spoken: Vec<MembershipId> = scheduled(row.id)
        .filter(Column::Role.eq(MessageRole::Assistant))
        .filter(Column::Seq.gt(row.last_user_seq.unwrap_or(0)))
        .select_only()
        .column(Column::SpaceMembershipId)
        .distinct()
        .into_tuple()
        .all(db)
        .await?;
    Ok(spoken.into_iter().collect())
}

/// Returns the author of the newest assistant message that the schedule reads and the viewer sees, and the
/// members who have spoken since the newest message of role `user` that they see.
pub async fn speakers_seen(
    db: &impl ConnectionTrait,
    id: ConversationId,
    viewer: Viewer,
) -> Result<(Option<MembershipId>, HashSet<MembershipId>), DbErr> {
    let seen = |role: MessageRole| {
        scheduled(id)
            .filter(viewer.condition((Entity, Column::Audience)))
            .filter(Column::Role.eq(role))
    };
    let newest = |role| seen(role).order_by_desc(Column::Seq).one(db);
    let last = newest(MessageRole::Assistant).await?;
    let since = newest(MessageRole::User).await?.map_or(0, |it| it.seq);
    let spoken: Vec<MembershipId> = seen(MessageRole::Assistant)
        .filter(Column::Seq.gt(since))
        .select_only()
        .column(Column::SpaceMembershipId)
        .distinct()
        .into_tuple()
        .all(db)
        .await?;
    let last = last.map(|it| it.space_membership_id);
    Ok((last, spoken.into_iter().collect()))
}

/// Returns the newest message before `seq` that the schedule reads.
pub async fn scheduled_before(
    db: &impl ConnectionTrait,
    id: ConversationId,
    seq: i64,
) -> Result<Option<Model>, DbErr> {
    let before = scheduled(id).filter(Column::Seq.lt(seq));
    before.order_by_desc(Column::Seq).one(db).await
}

/// Returns the newest messages that are neither hidden nor out of character and that the viewer sees, in
/// order.
pub async fn list_newest(
    db: &impl ConnectionTrait,
    id: ConversationId,
    viewer: Viewer,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let newest = scheduled(id)
        .filter(viewer.condition((Entity, Column::Audience)))
        .order_by_desc(Column::Seq)
        .limit(limit);
    let mut messages = newest.all(db).await?;
    messages.reverse();
    Ok(messages)
}

/// Returns whether a branch starts from any of these messages.
pub async fn has_fork_point(
    db: &impl ConnectionTrait,
    messages: impl IntoIterator<Item = MessageId>,
) -> Result<bool, DbErr> {
    let branches = conversation::Entity::find()
        .filter(conversation::Column::ForkedFromMessageId.is_in(messages))
        .count(db)
        .await?;
    Ok(branches > 0)
}

/// Inserts a message whose `seq` and `rev` were assigned from the locked conversation.
pub async fn append(tx: &impl ConnectionTrait, message: Model) -> Result<Model, DbErr> {
    let mut row = message.into_active_model();
    row.id = NotSet;
    Entity::insert(row).exec_with_returning(tx).await
}

/// Returns the message of this author with this `client_id`, if it was already posted.
pub async fn find_by_client_id(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    author: MembershipId,
    client_id: &str,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::SpaceMembershipId.eq(author))
        .filter(Column::ClientId.eq(client_id))
        .one(db)
        .await
}

/// Selects a part of a timeline.
#[derive(Clone, Copy, Debug)]
pub enum TimelinePage {
    /// The newest messages.
    Newest,
    /// The nearest messages with a smaller `seq`.
    Before(i64),
    /// The nearest messages with a greater `seq`.
    After(i64),
    /// The nearest messages after the first `seq` that are before the second.
    Between(i64, i64),
    /// The nearest messages on both sides of this `seq`, including it.
    Around(i64),
}

/// Returns the `seq` of a message of this conversation that is not hidden and that the viewer sees.
pub async fn find_seq(
    db: &impl ConnectionTrait,
    id: ConversationId,
    viewer: Viewer,
    message: MessageId,
) -> Result<Option<i64>, DbErr> {
    let query = visible(id, viewer).filter(Column::Id.eq(message));
    let seq = query.select_only().column(Column::Seq);
    seq.into_tuple().one(db).await
}

/// Returns a row for [`append`] with default values for everything that later events set.
pub fn new_model(
    conversation: ConversationId,
    author: MembershipId,
    role: MessageRole,
    content: String,
    now: Timestamp,
) -> message::Model {
    message::Model {
        id: MessageId(0), // assigned by the database
        conversation_id: conversation,
        seq: 0,
        space_membership_id: author,
        persona_id: None,
        persona_name: None,
        persona_avatar: None,
        role,
        content,
        visibility: message::Visibility::Normal,
        is_remembered: true,
        is_ooc: false,
        audience: None,
        is_for_people: false,
        conversation_run_id: None,
        active_swipe: 0,
        swipe_chosen_by: None,
        client_id: None,
        origin_message_id: None,
        reply_to_message_id: None,
        has_reactions: false,
        has_attachments: false,
        created_at: now,
        edited_at: None,
        edited_by: None,
        version: 1,
        rev: 0,
        token_count: 0,
        metadata: serde_json::json!({}),
    }
}

/// Selects the messages of a conversation that are not hidden and that the viewer sees.
pub(super) fn visible(id: ConversationId, viewer: Viewer) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::ConversationId.eq(id))
        .filter(Expr::cust(NOT_HIDDEN))
        .filter(viewer.condition((Entity, Column::Audience)))
}

/// Selects the messages of a conversation that the schedule reads: neither hidden nor out of character.
pub(super) fn scheduled(id: ConversationId) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::ConversationId.eq(id))
        .filter(Expr::cust(SCHEDULED))
}

/// Returns whether the timeline contains only greetings: assistant messages without a run that no person
/// wrote. Messages out of character do not count.
///
/// Reads at most [`MAX_GREETINGS`] messages, hidden ones included.
pub async fn has_only_greetings(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
) -> Result<bool, DbErr> {
    if row.last_user_seq.is_some() || row.last_seq > MAX_GREETINGS {
        return Ok(false);
    }
    let other_message = Entity::find()
        .filter(Column::ConversationId.eq(row.id))
        .filter(Column::IsOoc.eq(false))
        .filter(
            Column::Role
                .ne(MessageRole::Assistant)
                .or(Column::ConversationRunId.is_not_null()),
        )
        .one(db)
        .await?;
    if other_message.is_some() {
        return Ok(false);
    }
    let metadata: Vec<serde_json::Value> = Entity::find()
        .filter(Column::ConversationId.eq(row.id))
        .filter(Column::IsOoc.eq(false))
        .select_only()
        .column(Column::Metadata)
        .into_tuple()
        .all(db)
        .await?;
    Ok(metadata
        .iter()
        .all(|it| it.get(message::POSTED_BY_KEY).is_none()))
}

/// Returns the authors of all messages, hidden ones included. Used for timelines with only
/// greetings.
pub async fn list_authors(
    db: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<HashSet<MembershipId>, DbErr> {
    let all: Vec<MembershipId> = Entity::find()
        .filter(Column::ConversationId.eq(id))
        .select_only()
        .column(Column::SpaceMembershipId)
        .distinct()
        .into_tuple()
        .all(db)
        .await?;
    Ok(all.into_iter().collect())
}
