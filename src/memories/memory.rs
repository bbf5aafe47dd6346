//! Table `memories`: what is remembered, whose it is, where it comes from, and how often it was
//! recalled. Queries the rows and counts recalls; `memory_store.rs` writes the rest.
//!
//! A deleted memory keeps its row until it is purged, so that an undone deletion restores it.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MemoryId, MessageId, RunId, SpaceId, UserId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{ExprTrait, Query};
use sea_orm::{Condition, QueryOrder, QuerySelect};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::conversation;
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::string_enum::string_enum;
use crate::memories::memory_source;
use crate::spaces::membership;
use crate::spaces::membership::MembershipKind;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memories")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: MemoryId,
    pub space_id: SpaceId,
    /// Whose memory it is; `None`: everyone's in the space.
    pub space_membership_id: Option<MembershipId>,
    /// The member whom it is about.
    pub about_membership_id: Option<MembershipId>,
    /// The conversation of its source messages; `None` if a person wrote it.
    pub conversation_id: Option<ConversationId>,
    pub source_from_seq: Option<i64>,
    pub source_to_seq: Option<i64>,
    pub kind: MemoryKind,
    pub origin: MemoryOrigin,
    /// One line.
    pub content: String,
    /// From 0 to 1.
    pub importance: f64,
    pub content_hash: String,
    /// Empty: everyone may know it.
    pub audience_hash: String,
    /// Recalled whatever the query is, and not replaced by the server.
    pub is_pinned: bool,
    pub token_count: i64,
    pub recall_count: i64,
    pub last_recalled_at: Option<Timestamp>,
    /// The run whose prompt contained it last. The run, or its prompt, may have been deleted since.
    pub last_recall_run_id: Option<RunId>,
    pub created_by: Option<UserId>,
    /// The person who edited it last; the server does not replace an edited memory.
    pub edited_by: Option<UserId>,
    /// Starts at 1 and increases with each change by a person.
    pub version: i64,
    /// The `memory_version` of the space at the last change.
    pub space_version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::conversations::conversation::Entity",
        from = "Column::ConversationId",
        to = "crate::conversations::conversation::Column::Id"
    )]
    Conversation,
}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// What a memory is about. Snippet: a message as it was.
    #[schema(as = MemoryKind)]
    MemoryKind { Relation, Preference, Event, Snippet }
    /// Where a memory comes from: a model, a message as it was, a person, a tool call, a file.
    #[schema(as = MemoryOrigin)]
    MemoryOrigin { Extracted, Snippet, Person, Tool, Imported }
}

/// A memory, as people see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Memory)]
pub struct MemoryView {
    pub id: MemoryId,
    pub space_id: SpaceId,
    /// Whose memory it is; null: everyone's in the space.
    pub membership_id: Option<MembershipId>,
    pub about_membership_id: Option<MembershipId>,
    /// Where it was learned; null if a person wrote it.
    pub conversation_id: Option<ConversationId>,
    /// The `seq` of its first and last source message.
    pub source_from_seq: Option<i64>,
    pub source_to_seq: Option<i64>,
    pub kind: MemoryKind,
    pub origin: MemoryOrigin,
    pub content: String,
    pub importance: f64,
    pub pinned: bool,
    pub token_count: i64,
    pub recall_count: i64,
    pub last_recalled_at: Option<Timestamp>,
    pub edited: bool,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Model {
    /// Returns the document for people who may see it.
    pub fn view(&self) -> MemoryView {
        MemoryView {
            id: self.id,
            space_id: self.space_id,
            membership_id: self.space_membership_id,
            about_membership_id: self.about_membership_id,
            conversation_id: self.conversation_id,
            source_from_seq: self.source_from_seq,
            source_to_seq: self.source_to_seq,
            kind: self.kind,
            origin: self.origin,
            content: self.content.clone(),
            importance: self.importance,
            pinned: self.is_pinned,
            token_count: self.token_count,
            recall_count: self.recall_count,
            last_recalled_at: self.last_recalled_at,
            edited: self.edited_by.is_some(),
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// Returns whether only people may change or delete it.
    pub fn is_kept_by_people(&self) -> bool {
        self.is_pinned || self.edited_by.is_some() || self.origin == MemoryOrigin::Person
    }
}

/// Which memories of a space to list.
#[derive(Clone, Debug, Default)]
pub struct MemoryFilter {
    /// The member who asks. Others see everyone's memories and those of characters.
    pub viewer: Option<MembershipId>,
    /// Only those of this member, without everyone's.
    pub membership: Option<MembershipId>,
    pub about: Option<MembershipId>,
    pub kind: Option<MemoryKind>,
    pub origin: Option<MemoryOrigin>,
    pub conversation: Option<ConversationId>,
    /// Only those that were made from this message.
    pub source_message: Option<MessageId>,
    pub is_pinned: Option<bool>,
}

impl MemoryFilter {
    /// Returns whether it selects only some of the memories that the viewer may see.
    pub fn is_restrictive(&self) -> bool {
        let members = self.membership.is_some() || self.about.is_some();
        let sources = self.conversation.is_some() || self.source_message.is_some();
        members
            || sources
            || self.kind.is_some()
            || self.origin.is_some()
            || self.is_pinned.is_some()
    }
}

/// Selects the memories of a space that are not deleted, and whose conversation is not being deleted.
pub fn select_for_space(space: SpaceId) -> Select<Entity> {
    let is_of_visible = Condition::any()
        .add(Column::ConversationId.is_null())
        .add(Column::ConversationId.not_in_subquery(conversation::hidden_ids()));
    Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::DeletedAt.is_null())
        .filter(is_of_visible)
}

/// Returns a page of the memories of a space that match a filter, newest first.
pub async fn list_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    filter: &MemoryFilter,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let found = select_matching(space, filter);
    page.load_newest_first(found, Column::Id, db).await
}

/// Returns the ids of all memories of a space that match a filter, the oldest first.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_ids(
    db: &impl ConnectionTrait,
    space: SpaceId,
    filter: &MemoryFilter,
) -> Result<Vec<MemoryId>, DbErr> {
    let ids = select_matching(space, filter)
        .select_only()
        .column(Column::Id)
        .order_by_asc(Column::Id);
    ids.into_tuple().all(db).await
}

/// Returns those of these memories of a space that match a filter, unordered.
pub async fn list_matching(
    db: &impl ConnectionTrait,
    space: SpaceId,
    filter: &MemoryFilter,
    ids: impl IntoIterator<Item = MemoryId>,
) -> Result<Vec<Model>, DbErr> {
    let found = select_matching(space, filter).filter(Column::Id.is_in(ids));
    found.all(db).await
}

/// Selects the memories of a space that a member may know to exist: those of everyone, of the characters, and
/// the member's own.
pub fn is_visible_to(space: SpaceId, viewer: Option<MembershipId>) -> Condition {
    let characters = Query::select()
        .column(membership::Column::Id)
        .from(membership::Entity)
        .and_where(membership::Column::SpaceId.eq(space))
        .and_where(membership::Column::Kind.eq(MembershipKind::Character))
        .to_owned();
    let mut is_visible = Condition::any()
        .add(Column::SpaceMembershipId.is_null())
        .add(Column::SpaceMembershipId.in_subquery(characters));
    if let Some(it) = viewer {
        is_visible = is_visible.add(Column::SpaceMembershipId.eq(it));
    }
    // No one can see a memory with an audience yet.
    Condition::all()
        .add(Column::AudienceHash.eq(""))
        .add(is_visible)
}

fn select_matching(space: SpaceId, filter: &MemoryFilter) -> Select<Entity> {
    let mut found = select_for_space(space).filter(is_visible_to(space, filter.viewer));
    if let Some(it) = filter.membership {
        found = found.filter(Column::SpaceMembershipId.eq(it));
    }
    if let Some(it) = filter.about {
        found = found.filter(Column::AboutMembershipId.eq(it));
    }
    if let Some(it) = filter.kind {
        found = found.filter(Column::Kind.eq(it));
    }
    if let Some(it) = filter.origin {
        found = found.filter(Column::Origin.eq(it));
    }
    if let Some(it) = filter.conversation {
        found = found.filter(Column::ConversationId.eq(it));
    }
    if let Some(it) = filter.source_message {
        found = found.filter(Column::Id.in_subquery(memory_source::made_from(it)));
    }
    if let Some(it) = filter.is_pinned {
        found = found.filter(Column::IsPinned.eq(it));
    }
    found
}

/// Returns a memory of this space that is not deleted.
pub async fn find_in_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    id: MemoryId,
) -> Result<Option<Model>, DbErr> {
    let found = select_for_space(space).filter(Column::Id.eq(id));
    found.one(db).await
}

/// Returns those of these memories of a space that are not deleted, unordered.
pub async fn list_in_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    ids: impl IntoIterator<Item = MemoryId>,
) -> Result<Vec<Model>, DbErr> {
    let found = select_for_space(space).filter(Column::Id.is_in(ids));
    found.all(db).await
}

/// Counts the recall of these memories by the prompt of a run. The version of the space does not change,
/// because a search finds the same memories; only the order of pinned ones may be outdated in an index.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count_recalls(
    db: &Db,
    run: RunId,
    ids: Vec<MemoryId>,
    now: Timestamp,
) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            Entity::update_many()
                .col_expr(Column::RecallCount, Expr::col(Column::RecallCount).add(1))
                .col_expr(Column::LastRecalledAt, Expr::value(now))
                .col_expr(Column::LastRecallRunId, Expr::value(run))
                .filter(Column::Id.is_in(ids))
                .exec(tx)
                .await
                .map(drop)
        })
    })
    .await
}
