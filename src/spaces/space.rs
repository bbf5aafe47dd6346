//! Table `spaces`: the settings, status and used tokens of each space. Also locks its rows.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{ConversationId, EmbeddingModelId, ProviderId, SpaceId, UserId};
use base::language_tag::LanguageTag;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{QueryOrder, QuerySelect};
use serde::Serialize;
use utoipa::ToSchema;

use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "spaces")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: SpaceId,
    pub name: String,
    pub description: String,
    pub owner_id: Option<UserId>,
    pub status: SpaceStatus,
    pub reply_order: ReplyOrder,
    pub replies_per_turn: RepliesPerTurn,
    pub card_handling_mode: CardHandlingMode,
    pub allow_self_responses: bool,
    pub auto_mode_enabled: bool,
    pub auto_mode_delay_ms: i64,
    pub auto_mode_max_turns: i64,
    pub during_generation_user_input_policy: InputPolicy,
    pub user_turn_debounce_ms: i64,
    /// The least number of seconds between two posts of a member. 0: off.
    pub slow_mode_s: i64,
    /// Whether people get slots in rounds.
    pub humans_take_turns: bool,
    /// The number of seconds after which the turn of a person is skipped. 0: never.
    pub human_turn_timeout_s: i64,
    pub group_regenerate_mode: GroupRegenerateMode,
    #[sea_orm(column_type = "JsonBinary")]
    pub settings: Json,
    /// Increases when `settings` changes.
    pub settings_version: i64,
    /// Tokens used by requests under `/v1`, for memories, for translations, by deleted conversations, and
    /// by runs before migration 74. Those of other runs are in `conversations.tokens_used`.
    pub unattributed_tokens: i64,
    /// The part of `unattributed_tokens` that model calls for memories and summaries used since migration
    /// 84.
    pub memory_tokens_used: i64,
    /// 0: unlimited.
    pub token_limit: i64,
    pub created_at: Timestamp,
    /// A job is deleting the space; it is invisible to everyone.
    pub is_hidden: bool,
    /// Incremented by triggers with each change of an active membership, except of one whose copilot
    /// is on.
    pub roster_rev: i64,
    /// Incremented by triggers when regex scripts that may run here change. 0: there never were any.
    pub scripts_rev: i64,
    /// Increases with each change of a memory. 0: nothing was ever remembered.
    pub memory_version: i64,
    /// The `memory_version` at which a memory was last deleted without a trace.
    pub memory_reset_version: i64,
    /// The provider's embedding model that the vectors of its memories come from, in addition to the
    /// local model. `None`: they have only local vectors.
    pub embedding_model_id: Option<EmbeddingModelId>,
    /// The provider that translates messages; it may have been deleted.
    pub translation_provider_id: Option<ProviderId>,
    /// The language in which models read the messages of people (BCP 47); `None`: the original.
    pub model_language: Option<String>,
    /// The provider whose model chooses speakers in the order `director`; it may have been deleted.
    /// `None`: the default one.
    pub director_provider_id: Option<ProviderId>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// An archived space is read-only.
    #[schema(as = SpaceStatus)]
    SpaceStatus { Active, Archived }
    /// How the next speaker is selected.
    ReplyOrder { Manual, Natural, List, Pooled, Director }
    /// Whether a trigger selects one speaker or an ordered list.
    RepliesPerTurn { One, Activated }
    /// Whose cards are included in the prompt.
    CardHandlingMode { Swap, Append, AppendDisabled }
    /// What a user message does while a reply is queued or being generated.
    InputPolicy { Reject, Queue, Restart }
    /// What regenerating replaces in a group: one message, or all replies to the last user message.
    GroupRegenerateMode { SingleMessage, LastTurn }
}

/// Returns a space that is not hidden. The caller checks the access to it.
pub async fn find_visible(db: &impl ConnectionTrait, id: SpaceId) -> Result<Option<Model>, DbErr> {
    let space = Entity::find_by_id(id).filter(Column::IsHidden.eq(false));
    space.one(db).await
}

/// Returns the names of these spaces, hidden ones included.
pub async fn list_names(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = SpaceId>,
) -> Result<HashMap<SpaceId, String>, DbErr> {
    let names: Vec<(SpaceId, String)> = Entity::find()
        .select_only()
        .columns([Column::Id, Column::Name])
        .filter(Column::Id.is_in(ids))
        .into_tuple()
        .all(db)
        .await?;
    Ok(names.into_iter().collect())
}

/// Adds to the tokens that the space has used outside of its existing conversations.
pub async fn add_unattributed_tokens(
    db: &impl ConnectionTrait,
    id: SpaceId,
    tokens: i64,
) -> Result<(), DbErr> {
    Entity::update_many()
        // Added in SQL, because another request may commit at the same time.
        .col_expr(
            Column::UnattributedTokens,
            Expr::col(Column::UnattributedTokens).add(tokens),
        )
        .filter(Column::Id.eq(id))
        .exec(db)
        .await?;
    Ok(())
}

/// Adds tokens of model calls for memories and summaries to those that the space has used.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn add_memory_tokens(
    db: &impl ConnectionTrait,
    id: SpaceId,
    tokens: i64,
) -> Result<(), DbErr> {
    let plus = |column: Column| Expr::col(column).add(tokens);
    Entity::update_many()
        .col_expr(Column::UnattributedTokens, plus(Column::UnattributedTokens))
        .col_expr(Column::MemoryTokensUsed, plus(Column::MemoryTokensUsed))
        .filter(Column::Id.eq(id))
        .exec(db)
        .await
        .map(drop)
}

/// Returns the tokens that model calls for the memories and summaries of all spaces have used.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn sum_memory_tokens(db: &impl ConnectionTrait) -> Result<i64, DbErr> {
    // PostgreSQL returns the sum of a bigint column as numeric.
    let sum = Expr::col(Column::MemoryTokensUsed).sum().cast_as("bigint");
    let sum: Option<Option<i64>> = Entity::find()
        .select_only()
        .expr(sum)
        .into_tuple()
        .one(db)
        .await?;
    Ok(sum.flatten().unwrap_or(0))
}

/// Increments the version of the memories and returns it. The changed memories get this version. Locks
/// the space.
///
/// # Errors
/// Returns a database error if the statement fails or the space does not exist.
pub async fn next_memory_version(tx: &impl ConnectionTrait, id: SpaceId) -> Result<i64, DbErr> {
    Ok(begin_memory_change(tx, id).await?.memory_version)
}

/// Like [`next_memory_version`], but returns the space with this version.
///
/// # Errors
/// Returns a database error if the statement fails or the space does not exist.
pub async fn begin_memory_change(tx: &impl ConnectionTrait, id: SpaceId) -> Result<Model, DbErr> {
    let updated = Entity::update_many()
        .col_expr(
            Column::MemoryVersion,
            Expr::col(Column::MemoryVersion).add(1),
        )
        .filter(Column::Id.eq(id))
        .exec_with_returning(tx)
        .await?;
    let gone = || DbErr::RecordNotFound(id.to_string());
    updated.into_iter().next().ok_or_else(gone)
}

/// Records that memories disappeared without a trace, so that no node keeps the memories that it has
/// loaded. Does nothing if nothing was ever remembered.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn reset_memory_version(tx: &impl ConnectionTrait, id: SpaceId) -> Result<(), DbErr> {
    let next = || Expr::col(Column::MemoryVersion).add(1);
    Entity::update_many()
        .col_expr(Column::MemoryVersion, next())
        .col_expr(Column::MemoryResetVersion, next())
        .filter(Column::Id.eq(id))
        .filter(Column::MemoryVersion.gt(0))
        .exec(tx)
        .await?;
    Ok(())
}

/// Changes the embedding model of the space's vectors, so that every node loads the memories again.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn set_embedding_model(
    tx: &impl ConnectionTrait,
    id: SpaceId,
    model: Option<EmbeddingModelId>,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::EmbeddingModelId, Expr::value(model))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await?;
    reset_memory_version(tx, id).await
}

/// A space with its settings.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Space)]
pub struct SpaceView {
    pub id: SpaceId,
    pub name: String,
    pub description: String,
    pub owner_id: Option<UserId>,
    pub status: SpaceStatus,
    pub reply_order: ReplyOrder,
    /// The provider whose model chooses speakers in the order `director`; null: the default one.
    pub director_provider_id: Option<ProviderId>,
    pub replies_per_turn: RepliesPerTurn,
    pub card_handling_mode: CardHandlingMode,
    pub allow_self_responses: bool,
    pub auto_mode_enabled: bool,
    pub auto_mode_delay_ms: i64,
    pub auto_mode_max_turns: i64,
    pub during_generation_user_input_policy: InputPolicy,
    pub user_turn_debounce_ms: i64,
    /// The least number of seconds between two posts of a member. 0: off. Owners and moderators are
    /// exempt.
    pub slow_mode_s: i64,
    /// Whether people get slots in rounds.
    pub humans_take_turns: bool,
    /// The number of seconds after which the turn of a person is skipped. 0: never.
    pub human_turn_timeout_s: i64,
    pub group_regenerate_mode: GroupRegenerateMode,
    /// The provider that translates messages for people and models; null: messages are not translated.
    pub translation_provider_id: Option<ProviderId>,
    /// The language in which models read the messages of people; null: the original.
    #[schema(value_type = Option<LanguageTag>)]
    pub model_language: Option<String>,
    #[schema(value_type = Object)]
    pub settings: Json,
    pub settings_version: i64,
    pub token_limit: i64,
    pub tokens_used: i64,
    pub root_conversation_id: Option<ConversationId>,
    /// The role of the requesting user: that of their membership, or `admin` without one. Null in
    /// events, because it differs between subscribers.
    pub my_role: Option<&'static str>,
    pub created_at: Timestamp,
}

impl Model {
    /// Returns the document that members of the space may read.
    pub fn view(
        &self,
        tokens_used: i64,
        root: Option<ConversationId>,
        my_role: Option<&'static str>,
    ) -> SpaceView {
        SpaceView {
            id: self.id,
            name: self.name.clone(),
            description: self.description.clone(),
            owner_id: self.owner_id,
            status: self.status,
            reply_order: self.reply_order,
            director_provider_id: self.director_provider_id,
            replies_per_turn: self.replies_per_turn,
            card_handling_mode: self.card_handling_mode,
            allow_self_responses: self.allow_self_responses,
            auto_mode_enabled: self.auto_mode_enabled,
            auto_mode_delay_ms: self.auto_mode_delay_ms,
            auto_mode_max_turns: self.auto_mode_max_turns,
            during_generation_user_input_policy: self.during_generation_user_input_policy,
            user_turn_debounce_ms: self.user_turn_debounce_ms,
            slow_mode_s: self.slow_mode_s,
            humans_take_turns: self.humans_take_turns,
            human_turn_timeout_s: self.human_turn_timeout_s,
            group_regenerate_mode: self.group_regenerate_mode,
            translation_provider_id: self.translation_provider_id,
            model_language: self.model_language.clone(),
            settings: self.settings.clone(),
            settings_version: self.settings_version,
            token_limit: self.token_limit,
            tokens_used,
            root_conversation_id: root,
            my_role,
            created_at: self.created_at,
        }
    }
}

/// Locks a space for this transaction.
pub async fn lock(tx: &impl ConnectionTrait, id: SpaceId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).lock(LockType::Update).one(tx).await
}

/// Locks several spaces for this transaction, always in the same order, to avoid deadlocks.
pub async fn lock_all(tx: &impl ConnectionTrait, ids: &[SpaceId]) -> Result<(), DbErr> {
    Entity::find()
        .filter(Column::Id.is_in(ids.iter().copied()))
        .order_by_asc(Column::Id)
        .lock(LockType::Update)
        .all(tx)
        .await
        .map(|_| ())
}
