//! Table `messages`: finished entries of a timeline. Never a placeholder.

use crate::clock::Timestamp;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::RunId;
use sea_orm::entity::prelude::*;
use serde::Deserialize;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "messages")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: MessageId,
    pub conversation_id: ConversationId,
    pub seq: i64,
    pub space_membership_id: MembershipId,
    pub role: Role,
    pub content: String,
    pub visibility: Visibility,
    pub conversation_run_id: Option<RunId>,
    pub active_swipe: i64,
    pub client_id: Option<String>,
    pub origin_message_id: Option<MessageId>,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
    /// The conversation's `rev` of the newest event about this message.
    pub rev: i64,
    pub token_count: i64,
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::conversations::conversation::Entity",
        from = "Column::ConversationId",
        to = "crate::conversations::conversation::Column::Id"
    )]
    Conversation,
    #[sea_orm(
        belongs_to = "crate::spaces::membership::Entity",
        from = "Column::SpaceMembershipId",
        to = "crate::spaces::membership::Column::Id"
    )]
    Author,
}

impl Related<crate::conversations::conversation::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Conversation.def()
    }
}

impl Related<crate::spaces::membership::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Author.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// For whom a model takes the author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    System,
}

/// Normal: shown and sent. Excluded: shown, not sent to a model. Hidden: deleted for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    Normal,
    Excluded,
    Hidden,
}
