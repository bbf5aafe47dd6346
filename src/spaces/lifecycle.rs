//! Creates, updates and deletes spaces in the database, and lists the spaces of a user. A change of
//! the reply order, auto mode, turns of people or status marks the conversations of the space for a step. Callers
//! publish the events.

use base::clock::Timestamp;
use base::ids::{ProviderId, SpaceId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, ExprTrait, LockType, Order, Query};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QuerySelect, QueryTrait, Select,
};
use serde_json::Value;

use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::membership::MembershipRole;
use crate::spaces::posts::slow_mode;
use crate::spaces::space::{ActiveModel, Column, Entity, Model};
use crate::spaces::{membership, needs_step, roster_changes, space};

/// Settings of a space to create or update; `None` leaves the value unchanged or at its default.
#[derive(Clone, Debug, Default)]
pub struct SpaceRules {
    pub name: Option<String>,
    pub description: Option<String>,
    pub status: Option<space::SpaceStatus>,
    pub reply_order: Option<space::ReplyOrder>,
    pub director_provider_id: Option<Option<ProviderId>>,
    pub replies_per_turn: Option<space::RepliesPerTurn>,
    pub card_handling_mode: Option<space::CardHandlingMode>,
    pub allow_self_responses: Option<bool>,
    pub auto_mode_enabled: Option<bool>,
    pub auto_mode_delay_ms: Option<i64>,
    pub auto_mode_max_turns: Option<i64>,
    pub during_generation_user_input_policy: Option<space::InputPolicy>,
    pub user_turn_debounce_ms: Option<i64>,
    pub slow_mode_s: Option<i64>,
    pub humans_take_turns: Option<bool>,
    pub human_turn_timeout_s: Option<i64>,
    pub group_regenerate_mode: Option<space::GroupRegenerateMode>,
    pub translation_provider_id: Option<Option<ProviderId>>,
    pub model_language: Option<Option<String>>,
    pub settings: Option<Value>,
    pub token_limit: Option<i64>,
}

impl SpaceRules {
    /// Returns whether the change affects what the scheduler may plan in the space's conversations.
    fn affects_scheduling(&self, present: &Model) -> bool {
        self.status.is_some_and(|it| it != present.status)
            || self.reply_order.is_some_and(|it| it != present.reply_order)
            || self
                .auto_mode_enabled
                .is_some_and(|it| it != present.auto_mode_enabled)
            || self
                .humans_take_turns
                .is_some_and(|it| it != present.humans_take_turns)
    }
}

/// Why a space or a membership was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SpaceUpdateError<M: std::fmt::Debug> {
    #[error("not found")]
    NotFound,
    #[error("the settings were changed after they were read")]
    Stale(Box<M>),
    #[error("the name can be confused with that of another active member of the space")]
    NameTaken,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Creates a space with its owner as first member.
pub async fn create(
    db: &Db,
    owner: UserId,
    owner_name: String,
    rules: SpaceRules,
    now: Timestamp,
) -> Result<Model, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let mut row = new_model(Some(owner), now).into_active_model();
            row.id = NotSet;
            let space = apply_rules(row, rules).insert(tx).await?;
            let membership = roster_changes::new_human_row(
                space.id,
                owner,
                MembershipRole::Owner,
                owner_name,
                0,
                now,
            );
            membership::Entity::insert(membership).exec(tx).await?;
            Ok(space)
        })
    })
    .await
}

/// Returns the row of a space without owner, which an import fills before it becomes visible.
pub fn create_hidden(now: Timestamp) -> ActiveModel {
    let mut row = new_model(None, now).into_active_model();
    row.id = NotSet;
    row
}

fn new_model(owner: Option<UserId>, now: Timestamp) -> Model {
    Model {
        id: SpaceId(0), // assigned by the database
        name: String::new(),
        description: String::new(),
        owner_id: owner,
        status: space::SpaceStatus::Active,
        reply_order: space::ReplyOrder::Natural,
        replies_per_turn: space::RepliesPerTurn::One,
        card_handling_mode: space::CardHandlingMode::Swap,
        allow_self_responses: false,
        auto_mode_enabled: false,
        auto_mode_delay_ms: 5_000,
        auto_mode_max_turns: 8,
        during_generation_user_input_policy: space::InputPolicy::Queue,
        user_turn_debounce_ms: 0,
        slow_mode_s: 0,
        humans_take_turns: false,
        human_turn_timeout_s: 0,
        group_regenerate_mode: space::GroupRegenerateMode::SingleMessage,
        settings: serde_json::json!({}),
        settings_version: 0,
        unattributed_tokens: 0,
        roster_rev: 0,
        scripts_rev: 0,
        memory_version: 0,
        memory_reset_version: 0,
        memory_tokens_used: 0,
        embedding_model_id: None,
        translation_provider_id: None,
        director_provider_id: None,
        model_language: None,
        token_limit: 0,
        is_hidden: false,
        created_at: now,
    }
}

/// Changes a space. With a `version`, only if its settings still have that version.
pub async fn update(
    db: &Db,
    id: SpaceId,
    rules: SpaceRules,
    version: Option<i64>,
) -> Result<Model, SpaceUpdateError<Model>> {
    db.write(move |tx| {
        Box::pin(async move {
            let before = Entity::find_by_id(id).one(tx).await?;
            let before = before.ok_or(SpaceUpdateError::NotFound)?;
            let is_marked = rules.affects_scheduling(&before);
            if is_marked {
                needs_step::mark_all(tx, id).await?;
            }
            let present = space::lock(tx, id)
                .await?
                .ok_or(SpaceUpdateError::NotFound)?;
            if !is_marked && rules.affects_scheduling(&present) {
                needs_step::mark_all(tx, id).await?; // it was changed back in the meantime
            }
            if version.is_some_and(|it| it != present.settings_version) {
                return Err(SpaceUpdateError::Stale(Box::new(present)));
            }
            if present.slow_mode_s == 0 && rules.slow_mode_s.is_some_and(|it| it > 0) {
                slow_mode::load_last_posts(tx, id).await?;
            }
            let changes_settings = rules
                .settings
                .as_ref()
                .is_some_and(|it| *it != present.settings);
            let next_version = present.settings_version + i64::from(changes_settings);
            let mut row = apply_rules(present.clone().into_active_model(), rules);
            if changes_settings {
                row.settings_version = Set(next_version);
            }
            match row.is_changed() {
                true => Ok(row.update(tx).await?),
                false => Ok(present),
            }
        })
    })
    .await
}

/// Deletes a space with everything in it. Returns `false` if it does not exist.
///
/// Locks its conversations first, because a step and the deletion of a conversation lock the
/// conversation and then its space.
pub async fn delete(db: &Db, id: SpaceId) -> Result<bool, DbErr> {
    let deleted = db.write(move |tx| {
        Box::pin(async move {
            let conversations = Query::select()
                .column("id")
                .from("conversations")
                .and_where(Expr::col("space_id").eq(id))
                .order_by("id", Order::Asc)
                .lock(LockType::Update)
                .to_owned();
            tx.query_all(&conversations).await?;
            Entity::delete_by_id(id).exec(tx).await
        })
    });
    Ok(deleted.await?.rows_affected == 1)
}

/// Returns a page of the spaces in which the user is an active member.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    page.load(select_for_user(user), Column::Id, db).await
}

/// Selects the spaces in which the user is an active member.
pub fn select_for_user(user: UserId) -> Select<Entity> {
    let memberships = membership::Entity::find()
        .select_only()
        .column(membership::Column::SpaceId)
        .filter(membership::Column::UserId.eq(user))
        .filter(membership::Column::Status.eq(membership::MembershipStatus::Active));
    Entity::find()
        .filter(Column::Id.in_subquery(memberships.into_query()))
        .filter(Column::IsHidden.eq(false))
}

fn apply_rules(mut row: ActiveModel, rules: SpaceRules) -> ActiveModel {
    fn put<T: Into<sea_orm::Value> + PartialEq>(
        column: &mut sea_orm::ActiveValue<T>,
        value: Option<T>,
    ) {
        if let Some(value) = value {
            column.set_if_not_equals(value);
        }
    }
    put(&mut row.name, rules.name);
    put(&mut row.description, rules.description);
    put(&mut row.status, rules.status);
    put(&mut row.reply_order, rules.reply_order);
    put(&mut row.director_provider_id, rules.director_provider_id);
    put(&mut row.replies_per_turn, rules.replies_per_turn);
    put(&mut row.card_handling_mode, rules.card_handling_mode);
    put(&mut row.allow_self_responses, rules.allow_self_responses);
    put(&mut row.auto_mode_enabled, rules.auto_mode_enabled);
    put(&mut row.auto_mode_delay_ms, rules.auto_mode_delay_ms);
    put(&mut row.auto_mode_max_turns, rules.auto_mode_max_turns);
    put(
        &mut row.during_generation_user_input_policy,
        rules.during_generation_user_input_policy,
    );
    put(&mut row.user_turn_debounce_ms, rules.user_turn_debounce_ms);
    put(&mut row.slow_mode_s, rules.slow_mode_s);
    put(&mut row.humans_take_turns, rules.humans_take_turns);
    put(&mut row.human_turn_timeout_s, rules.human_turn_timeout_s);
    put(&mut row.group_regenerate_mode, rules.group_regenerate_mode);
    put(
        &mut row.translation_provider_id,
        rules.translation_provider_id,
    );
    put(&mut row.model_language, rules.model_language);
    put(&mut row.settings, rules.settings);
    put(&mut row.token_limit, rules.token_limit);
    row
}
