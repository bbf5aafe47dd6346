//! Writes versions of summaries. The caller has locked the conversation.

use base::clock::Timestamp;
use base::ids::{ConversationId, SummaryId, UserId};
use llm::tokens;
use sea_orm::ActiveValue::NotSet;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QuerySelect,
};
use serde_json::json;

use crate::conversations::conversation;
use crate::memories::summaries::summary;
use crate::memories::summaries::summary::{
    Column, Entity, MAX_VERSIONS, Model, SummaryLevel, SummaryOrigin, SummaryStatus,
};

/// A new version.
#[derive(Clone, Debug)]
pub struct NewVersion {
    pub conversation: ConversationId,
    pub level: SummaryLevel,
    /// The first and the last message that it covers.
    pub range: (i64, i64),
    pub content: String,
    /// `None`: those of the version that it replaces.
    pub facts: Option<Vec<String>>,
    pub author: SummaryAuthor,
    pub status: SummaryStatus,
}

/// Who wrote a version.
#[derive(Clone, Debug)]
pub enum SummaryAuthor {
    /// A model with this name.
    Model(String),
    /// `None`: their account was deleted since.
    Person(Option<UserId>),
}

/// Stores a version that replaces those in use that begin within its range: they are superseded, or
/// deleted if they may not be used.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn put_in_use(
    tx: &impl ConnectionTrait,
    new: NewVersion,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let of_place = || {
        Entity::find()
            .filter(Column::ConversationId.eq(new.conversation))
            .filter(Column::Level.eq(new.level))
    };
    let (from_seq, to_seq) = new.range;
    let replaced = of_place()
        .filter(Column::Status.ne(SummaryStatus::Superseded))
        .filter(Column::FromSeq.between(from_seq, to_seq))
        .all(tx)
        .await?;
    let carried = || replaced.first().map(Model::facts).unwrap_or_default();
    let facts = new.facts.clone().unwrap_or_else(carried);
    let ids = |is_usable: bool| {
        let ids = replaced.iter().filter(move |it| it.is_usable == is_usable);
        ids.map(|it| it.id).collect::<Vec<SummaryId>>()
    };
    delete(tx, ids(false)).await?;
    let superseded = ids(true);
    if !superseded.is_empty() {
        Entity::update_many()
            .col_expr(Column::Status, Expr::value(SummaryStatus::Superseded))
            .filter(Column::Id.is_in(superseded))
            .exec(tx)
            .await?;
    }
    let last: Option<Option<i64>> = of_place()
        .filter(Column::FromSeq.eq(from_seq))
        .select_only()
        .expr(Column::Version.max())
        .into_tuple()
        .one(tx)
        .await?;
    let deleted = replaced.iter().map(|it| it.version).max();
    let version = Ord::max(last.flatten(), deleted).unwrap_or(0) + 1;
    let (origin, model, created_by) = match new.author {
        SummaryAuthor::Model(name) => (SummaryOrigin::Model, Some(name), None),
        SummaryAuthor::Person(user) => (SummaryOrigin::Person, None, user),
    };
    let row = Model {
        id: SummaryId(0), // assigned by the database
        conversation_id: new.conversation,
        level: new.level,
        version,
        status: new.status,
        from_seq,
        to_seq,
        token_count: tokens::count(&new.content),
        content: new.content,
        pinned_facts: json!(facts),
        origin,
        model,
        created_by,
        is_usable: true,
        is_regeneration_requested: false,
        created_at: now,
    };
    let mut row = row.into_active_model().reset_all();
    row.id = NotSet;
    let row = row.insert(tx).await?;
    match row.level {
        SummaryLevel::Running => prune_running(tx, row.conversation_id).await?,
        SummaryLevel::Part => delete_old_parts(tx, row.conversation_id).await?,
    }
    Ok(row)
}

/// Requests that a model regenerates the stale texts of people. Prompts contain them until then.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_regeneration(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::IsRegenerationRequested, Expr::value(true))
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Status.eq(SummaryStatus::Stale))
        .filter(Column::Origin.eq(SummaryOrigin::Person))
        .exec(tx)
        .await
        .map(drop)
}

/// Replaces the pinned facts of a version and increments its `version`. Its text and status stay.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn set_facts(
    tx: &impl ConnectionTrait,
    mut row: Model,
    facts: &[String],
) -> Result<Model, DbErr> {
    row.pinned_facts = json!(facts);
    row.version += 1;
    Entity::update_many()
        .col_expr(Column::PinnedFacts, Expr::value(row.pinned_facts.clone()))
        .col_expr(Column::Version, Expr::value(row.version))
        .filter(Column::Id.eq(row.id))
        .exec(tx)
        .await?;
    Ok(row)
}

/// Stores the last message up to which a conversation is to be summarized.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn set_summary_goal(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    goal_seq: i64,
) -> Result<(), DbErr> {
    conversation::Entity::update_many()
        .col_expr(conversation::Column::SummaryGoalSeq, Expr::value(goal_seq))
        .filter(conversation::Column::Id.eq(id))
        .exec(tx)
        .await
        .map(drop)
}

/// Sets the last message to summarize (`summary_goal_seq`) of imported conversations to the last message that
/// a summary covers.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn set_goals_to_ends(
    tx: &impl ConnectionTrait,
    conversations: Vec<ConversationId>,
) -> Result<(), DbErr> {
    let mut end = Query::select();
    end.expr(Column::ToSeq.max()).from(Entity).and_where(
        Expr::col((Entity, Column::ConversationId))
            .equals((conversation::Entity, conversation::Column::Id)),
    );
    conversation::Entity::update_many()
        .col_expr(
            conversation::Column::SummaryGoalSeq,
            SimpleExpr::SubQuery(None, Box::new(end.into())),
        )
        .filter(conversation::Column::Id.is_in(conversations))
        .exec(tx)
        .await
        .map(drop)
}

/// Deletes the oldest versions of the running summary.
async fn prune_running(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<(), DbErr> {
    let kept = summary::list_running(tx, conversation).await?;
    let Some(oldest) = kept.last().filter(|_| kept.len() as u64 == MAX_VERSIONS) else {
        return Ok(());
    };
    Entity::delete_many()
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Level.eq(SummaryLevel::Running))
        .filter(Column::Id.lt(oldest.id))
        .exec(tx)
        .await
        .map(drop)
}

/// Deletes older versions of parts, which cannot be restored.
async fn delete_old_parts(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Level.eq(SummaryLevel::Part))
        .filter(Column::Status.eq(SummaryStatus::Superseded))
        .exec(tx)
        .await
        .map(drop)
}

async fn delete(tx: &impl ConnectionTrait, ids: Vec<SummaryId>) -> Result<(), DbErr> {
    if ids.is_empty() {
        return Ok(());
    }
    Entity::delete_many()
        .filter(Column::Id.is_in(ids))
        .exec(tx)
        .await
        .map(drop)
}
