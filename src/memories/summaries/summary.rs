//! Table `conversation_summaries`: the versions of summaries. Queries them, and defines the document
//! that people see.

use base::clock::Timestamp;
use base::ids::{ConversationId, SpaceId, SummaryId, UserId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Query;
use sea_orm::{QueryOrder, QuerySelect};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::conversation;
use crate::db::string_enum::string_enum;

/// The newest versions of the running summary that are kept; older ones are deleted.
pub const MAX_VERSIONS: u64 = 20;
/// The maximum number of pinned facts.
pub const MAX_FACTS: usize = 20;
/// The maximum length of a pinned fact, in characters.
pub const MAX_FACT_CHARS: usize = 300;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "conversation_summaries")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: SummaryId,
    pub conversation_id: ConversationId,
    pub level: SummaryLevel,
    /// From 1, for each level and first message.
    pub version: i64,
    pub status: SummaryStatus,
    /// The first and the last message that it covers.
    pub from_seq: i64,
    pub to_seq: i64,
    pub content: String,
    /// A list of strings. Every prompt of the conversation contains those of the running summary.
    #[sea_orm(column_type = "JsonBinary")]
    pub pinned_facts: Json,
    pub token_count: i64,
    pub origin: SummaryOrigin,
    /// The name of the model that wrote it.
    pub model: Option<String>,
    /// The person who wrote it.
    pub created_by: Option<UserId>,
    /// `false` if a message that it covers was deleted: no prompt contains it.
    pub is_usable: bool,
    /// A person has requested that a model writes it again. Prompts contain it until then.
    pub is_regeneration_requested: bool,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// What a summary covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "i64", db_type = "BigInteger")]
pub enum SummaryLevel {
    /// A few dozen messages.
    Part = 0,
    /// All messages up to a certain one.
    Running = 1,
}

string_enum! {
    /// Stale: a message that it covers has changed. Superseded: a newer version is in use.
    SummaryStatus { Current, Stale, Superseded }
    /// Who wrote it.
    SummaryOrigin { Model, Person }
}

/// A version of a summary, as people see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Summary)]
pub struct SummaryView {
    pub id: SummaryId,
    pub conversation_id: ConversationId,
    /// 0: a part of the messages; 1: everything up to a message.
    #[schema(minimum = 0, maximum = 1)]
    pub level: i64,
    pub version: i64,
    pub status: SummaryStatus,
    /// The `seq` of the first and last message that it covers.
    pub from_seq: i64,
    pub to_seq: i64,
    pub content: String,
    /// Every prompt of the conversation contains those of the running summary.
    pub pinned_facts: Vec<String>,
    pub token_count: i64,
    pub origin: SummaryOrigin,
    /// The name of the model that wrote it.
    pub model: Option<String>,
    pub created_by: Option<UserId>,
    /// `false` if a message that it covers was deleted: no prompt contains it.
    pub is_usable: bool,
    pub created_at: Timestamp,
}

impl Model {
    /// Returns the document for people.
    pub fn view(&self) -> SummaryView {
        SummaryView {
            id: self.id,
            conversation_id: self.conversation_id,
            level: self.level.to_value(),
            version: self.version,
            status: self.status,
            from_seq: self.from_seq,
            to_seq: self.to_seq,
            content: self.content.clone(),
            pinned_facts: self.facts(),
            token_count: self.token_count,
            origin: self.origin,
            model: self.model.clone(),
            created_by: self.created_by,
            is_usable: self.is_usable,
            created_at: self.created_at,
        }
    }

    /// Returns the pinned facts.
    pub fn facts(&self) -> Vec<String> {
        serde_json::from_value(self.pinned_facts.clone()).unwrap_or_default()
    }

    /// Returns whether a model must write it again: a message that it covers was deleted, or was changed
    /// and a model wrote it. What a person wrote stays until someone requests a new one.
    pub fn needs_regeneration(&self) -> bool {
        let is_stale = self.status == SummaryStatus::Stale;
        let is_of_model = self.origin == SummaryOrigin::Model;
        !self.is_usable || self.is_regeneration_requested || (is_stale && is_of_model)
    }
}

/// Returns a version.
pub async fn find(db: &impl ConnectionTrait, id: SummaryId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns the versions with these ids that exist, unordered.
pub async fn list(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    ids: impl IntoIterator<Item = SummaryId>,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Id.is_in(ids))
        .all(db)
        .await
}

/// Returns the running summary in use.
pub async fn find_running(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Level.eq(SummaryLevel::Running))
        .filter(Column::Status.ne(SummaryStatus::Superseded))
        .one(db)
        .await
}

/// Returns the `seq` of the last message that the running summary covers; `None` if prompts contain
/// no summary.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_end(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
) -> Result<Option<i64>, DbErr> {
    if row.summary_goal_seq < row.summary_from_seq {
        return Ok(None);
    }
    Entity::find()
        .select_only()
        .column(Column::ToSeq)
        .filter(Column::ConversationId.eq(row.id))
        .filter(Column::Level.eq(SummaryLevel::Running))
        .filter(Column::Status.ne(SummaryStatus::Superseded))
        .filter(Column::IsUsable.eq(true))
        .into_tuple()
        .one(db)
        .await
}

/// Returns the parts in use, by their first message.
pub async fn list_parts(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Level.eq(SummaryLevel::Part))
        .filter(Column::Status.ne(SummaryStatus::Superseded))
        .order_by_asc(Column::FromSeq)
        .all(db)
        .await
}

/// Returns the ids of the summaries in use of all visible conversations of a space: grouped by conversation,
/// first the parts in the order of their messages, then the running summary.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_ids_in_use(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<Vec<SummaryId>, DbErr> {
    let of_space = Query::select()
        .column(conversation::Column::Id)
        .from(conversation::Entity)
        .and_where(conversation::Column::SpaceId.eq(space))
        .and_where(conversation::Column::IsHidden.eq(false))
        .to_owned();
    Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::ConversationId.in_subquery(of_space))
        .filter(Column::Status.ne(SummaryStatus::Superseded))
        .order_by_asc(Column::ConversationId)
        .order_by_asc(Column::Level)
        .order_by_asc(Column::FromSeq)
        .into_tuple()
        .all(db)
        .await
}

/// Returns the versions of the running summary, the newest first: the one in use, then older ones.
pub async fn list_running(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Level.eq(SummaryLevel::Running))
        .order_by_desc(Column::Id)
        .limit(MAX_VERSIONS)
        .all(db)
        .await
}

/// Returns the newest version and those that it continues: each covers more messages than the next one. A
/// version that replaces one for the same messages (edited, corrected or restored) ends the list, because the
/// text that it replaces must not be used again.
pub fn continued_versions(newest_first: &[Model]) -> &[Model] {
    let continues = newest_first
        .windows(2)
        .take_while(|it| it[0].to_seq > it[1].to_seq);
    let n_kept = continues.count() + 1;
    &newest_first[..n_kept.min(newest_first.len())]
}

#[cfg(test)]
pub mod tests {
    use base::clock::Timestamp;
    use base::ids::{ConversationId, SummaryId};
    use serde_json::json;

    use super::{Model, SummaryLevel, SummaryOrigin, SummaryStatus, continued_versions};

    /// A superseded version that covers the messages up to `to_seq`.
    pub fn running_version(id: i64, to_seq: i64) -> Model {
        Model {
            id: SummaryId(id),
            conversation_id: ConversationId(1),
            level: SummaryLevel::Running,
            version: id,
            status: SummaryStatus::Superseded,
            from_seq: 1,
            to_seq,
            content: String::new(),
            pinned_facts: json!([]),
            token_count: 0,
            origin: SummaryOrigin::Model,
            model: None,
            created_by: None,
            is_usable: true,
            is_regeneration_requested: false,
            created_at: Timestamp(0),
        }
    }

    #[test]
    fn a_version_that_replaces_another_one_is_the_oldest() {
        let rows = [(5, 90), (4, 60), (3, 60), (2, 30)].map(|(id, to)| running_version(id, to));
        let kept = |rows: &[Model]| -> Vec<i64> {
            let kept = continued_versions(rows).iter();
            kept.map(|it| it.id.0).collect()
        };

        assert_eq!(kept(&rows), [5, 4]);
        assert_eq!(kept(&rows[2..]), [3, 2]);
        assert_eq!(kept(&[]), [] as [i64; 0]);
    }
}
