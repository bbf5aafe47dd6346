//! What people do with the summaries of a conversation: edit a version, restore an older one, and
//! request a summary now.

use base::clock::Timestamp;
use base::ids::{ConversationId, SummaryId, UserId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::conversations::{conversation, message};
use crate::db::connect::Db;
use crate::memories::summaries::summary;
use crate::memories::summaries::summary::{Model, SummaryLevel, SummaryStatus};
use crate::memories::summaries::summary_plan::{SummaryState, next_step};
use crate::memories::summaries::summary_store::{
    NewVersion, SummaryAuthor, put_in_use, request_regeneration, set_facts, set_summary_goal,
};
use crate::memories::tasks::summarizing_task;

/// How many of the newest messages a requested summary leaves out: they are in the prompt anyway, and
/// people still change them.
const NEWEST_MESSAGES: u64 = 20;

/// A person's change of a summary; a field that is `None` does not change.
#[derive(Clone, Debug, Default)]
pub struct SummaryEdit {
    pub content: Option<String>,
    pub facts: Option<Vec<String>>,
}

/// The result of a change.
#[derive(Clone, Debug)]
pub enum SummaryUpdate {
    /// The new version, which is in use.
    Updated(Model),
    /// The version in use is not the one that the person saw.
    Stale(Model),
}

/// Stores a person's text as a new version. Returns `None` if the version no longer exists, or if
/// no version is in use in its place.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn edit(
    db: &Db,
    of: &Model,
    change: SummaryEdit,
    (by, expected_version): (UserId, i64),
    now: Timestamp,
) -> Result<Option<SummaryUpdate>, DbErr> {
    let of = of.clone();
    db.write(move |tx| {
        let (of, change) = (of.clone(), change.clone());
        Box::pin(async move {
            conversation::lock(tx, of.conversation_id).await?;
            let Some(in_use) = find_in_use(tx, &of).await? else {
                return Ok(None);
            };
            if in_use.id != of.id || in_use.version != expected_version {
                return Ok(Some(SummaryUpdate::Stale(in_use)));
            }
            let Some(content) = change.content else {
                // The text is not theirs: it may be out of date, or contain a deleted message.
                let facts = change.facts.unwrap_or_else(|| in_use.facts());
                let changed = set_facts(tx, in_use, &facts).await?;
                return Ok(Some(SummaryUpdate::Updated(changed)));
            };
            let new = NewVersion {
                conversation: in_use.conversation_id,
                level: in_use.level,
                range: (in_use.from_seq, in_use.to_seq),
                content,
                facts: change.facts,
                author: SummaryAuthor::Person(Some(by)),
                status: SummaryStatus::Current,
            };
            let updated = put_in_use(tx, new, now).await?;
            Ok(Some(SummaryUpdate::Updated(updated)))
        })
    })
    .await
}

/// Returns the version in use in the place of another one.
async fn find_in_use(tx: &impl ConnectionTrait, of: &Model) -> Result<Option<Model>, DbErr> {
    summary::Entity::find()
        .filter(summary::Column::ConversationId.eq(of.conversation_id))
        .filter(summary::Column::Level.eq(of.level))
        .filter(summary::Column::FromSeq.eq(of.from_seq))
        .filter(summary::Column::Status.ne(SummaryStatus::Superseded))
        .one(tx)
        .await
}

/// Stores the text and the facts of an older version of the running summary as a new version, and
/// requests to continue it. Returns the version itself if it is in use, and `None` if it was deleted in
/// the meantime.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn restore(
    db: &Db,
    id: SummaryId,
    conversation: ConversationId,
    by: UserId,
    now: Timestamp,
) -> Result<Option<Model>, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let row = conversation::lock(tx, conversation).await?;
            let (Some(row), Some(of)) = (row, summary::find(tx, id).await?) else {
                return Ok(None);
            };
            if of.status != SummaryStatus::Superseded {
                return Ok(Some(of));
            }
            let new = NewVersion {
                conversation,
                level: SummaryLevel::Running,
                range: (of.from_seq, of.to_seq),
                facts: Some(of.facts()),
                content: of.content,
                author: SummaryAuthor::Person(Some(by)),
                status: SummaryStatus::Current,
            };
            let restored = put_in_use(tx, new, now).await?;
            summarizing_task::request(tx, &row, now).await?;
            Ok(Some(restored))
        })
    })
    .await
}

/// Requests to summarize all messages but the newest ones, and to regenerate stale summaries, including
/// those that a person wrote. Returns `false` if nothing is missing.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_now(
    db: &Db,
    conversation: ConversationId,
    now: Timestamp,
) -> Result<bool, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let Some(mut row) = conversation::lock(tx, conversation).await? else {
                return Ok(false);
            };
            request_regeneration(tx, conversation).await?;
            let goal = find_goal(tx, conversation).await?;
            row.summary_goal_seq = row.summary_goal_seq.max(goal.unwrap_or(0));
            let parts = summary::list_parts(tx, conversation).await?;
            let running = summary::find_running(tx, conversation).await?;
            let missing = next_step(SummaryState {
                from_seq: row.summary_from_seq,
                goal_seq: row.summary_goal_seq,
                parts: &parts,
                running: running.as_ref(),
            });
            if missing.is_none() {
                return Ok(false);
            }
            set_summary_goal(tx, row.id, row.summary_goal_seq).await?;
            summarizing_task::request(tx, &row, now).await?;
            Ok(true)
        })
    })
    .await
}

/// Returns the `seq` of the newest message that is old enough, of those that the memory may use.
async fn find_goal(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Option<i64>, DbErr> {
    message::Entity::find()
        .select_only()
        .column(message::Column::Seq)
        .filter(message::Column::ConversationId.eq(conversation))
        .filter(message::is_usable_by_memory())
        .order_by_desc(message::Column::Seq)
        .offset(NEWEST_MESSAGES)
        .limit(1)
        .into_tuple()
        .one(tx)
        .await
}
