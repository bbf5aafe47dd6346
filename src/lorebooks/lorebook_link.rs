//! Table `lorebook_links`: which lorebooks are linked to a space, conversation, character or
//! membership, and in which order.

use base::ids::{CharacterId, ConversationId, LorebookId, LorebookLinkId, MembershipId, SpaceId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::QueryOrder;
use sea_orm::entity::prelude::*;

use crate::db::connect::Db;
use crate::lorebooks::lorebook;

/// The maximum number of lorebooks linked to one target.
pub const MAX_LINKS: usize = 50;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "lorebook_links")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: LorebookLinkId,
    pub lorebook_id: LorebookId,
    /// Lower comes first.
    pub priority: i64,
    pub space_id: Option<SpaceId>,
    pub conversation_id: Option<ConversationId>,
    pub character_id: Option<CharacterId>,
    pub space_membership_id: Option<MembershipId>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "lorebook::Entity",
        from = "Column::LorebookId",
        to = "lorebook::Column::Id"
    )]
    Lorebook,
}

impl Related<lorebook::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Lorebook.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// What lorebooks are linked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    Space(SpaceId),
    Conversation(ConversationId),
    Character(CharacterId),
    Membership(MembershipId),
}

impl LinkTarget {
    /// Returns the filter for the links of this target.
    pub fn condition(self) -> sea_orm::sea_query::SimpleExpr {
        match self {
            Self::Space(id) => Column::SpaceId.eq(id),
            Self::Conversation(id) => Column::ConversationId.eq(id),
            Self::Character(id) => Column::CharacterId.eq(id),
            Self::Membership(id) => Column::SpaceMembershipId.eq(id),
        }
    }

    /// Returns whether the link belongs to this target.
    pub fn is_target_of(self, link: &Model) -> bool {
        match self {
            Self::Space(id) => link.space_id == Some(id),
            Self::Conversation(id) => link.conversation_id == Some(id),
            Self::Character(id) => link.character_id == Some(id),
            Self::Membership(id) => link.space_membership_id == Some(id),
        }
    }

    /// Builds a link from a lorebook to this target; it is not stored yet.
    pub fn new_link(self, book: LorebookId, priority: i64) -> ActiveModel {
        let mut link = ActiveModel {
            id: NotSet,
            lorebook_id: Set(book),
            priority: Set(priority),
            space_id: Set(None),
            conversation_id: Set(None),
            character_id: Set(None),
            space_membership_id: Set(None),
        };
        match self {
            Self::Space(id) => link.space_id = Set(Some(id)),
            Self::Conversation(id) => link.conversation_id = Set(Some(id)),
            Self::Character(id) => link.character_id = Set(Some(id)),
            Self::Membership(id) => link.space_membership_id = Set(Some(id)),
        }
        link
    }
}

/// Returns the lorebooks linked to a target, in order.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn linked_lorebooks(
    db: &impl ConnectionTrait,
    target: LinkTarget,
) -> Result<Vec<lorebook::Model>, DbErr> {
    let found = Entity::find()
        .filter(target.condition())
        .order_by_asc(Column::Priority)
        .order_by_asc(Column::Id)
        .find_also_related(lorebook::Entity)
        .all(db)
        .await?;
    Ok(found.into_iter().filter_map(|(_, book)| book).collect())
}

/// Replaces the links of a target by these lorebooks, in this order.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn set_links(db: &Db, target: LinkTarget, books: Vec<LorebookId>) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            Entity::delete_many()
                .filter(target.condition())
                .exec(tx)
                .await?;
            if books.is_empty() {
                return Ok(());
            }
            let links = (0..).zip(books).map(|(n, book)| target.new_link(book, n));
            Entity::insert_many(links)
                .exec_without_returning(tx)
                .await?;
            Ok(())
        })
    })
    .await
}
