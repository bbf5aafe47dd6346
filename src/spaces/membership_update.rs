//! Updates the role, position, name or settings of a membership, and the memberships affected by
//! it: a move shifts other members, and a new owner makes the previous one a moderator.

use base::ids::{ConversationId, MembershipId, PersonaId, PresetId, ProviderId};
use sea_orm::ActiveValue::Set;
use sea_orm::{
    ActiveModelTrait, ActiveValue, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
};
use serde_json::{Value, json};

use crate::accounts::user;
use crate::db::connect::Db;
use crate::spaces::lifecycle::SpaceUpdateError;
use crate::spaces::membership::{
    ActiveModel, CopilotMode, Entity, MembershipRole, MembershipStatus, Model, Participation,
    TranslationChoice,
};
use crate::spaces::{membership, needs_step, roster_changes, space};

/// Changes of a membership; `None` leaves the value unchanged.
#[derive(Clone, Debug, Default)]
pub struct MembershipUpdate {
    /// [`MembershipRole::Owner`] transfers the space.
    pub role: Option<MembershipRole>,
    /// The position in the roster, counted from 0; later members shift.
    pub position: Option<i64>,
    pub participation: Option<Participation>,
    pub is_away: Option<bool>,
    /// A user's name for this space; `Some(None)` resets it to the account's.
    pub own_display_name: Option<Option<String>>,
    pub persona: Option<Option<String>>,
    pub active_persona_id: Option<Option<PersonaId>>,
    pub translate: Option<TranslationChoice>,
    pub aliases: Option<Vec<String>>,
    pub talkativeness: Option<Option<f64>>,
    pub settings: Option<Value>,
    /// The value of `settings.memory`; the other settings stay as they are.
    pub memory: Option<Value>,
    pub copilot_mode: Option<CopilotMode>,
    pub copilot_remaining_steps: Option<Option<i64>>,
    pub copilot_conversation_id: Option<Option<ConversationId>>,
    pub llm_provider_id: Option<Option<ProviderId>>,
    pub preset_id: Option<Option<PresetId>>,
}

impl MembershipUpdate {
    /// Returns whether the change affects the scheduler.
    pub fn affects_scheduling(&self) -> bool {
        self.participation.is_some()
            || self.is_away.is_some()
            || self.copilot_mode.is_some()
            || self.copilot_remaining_steps.is_some()
            || self.copilot_conversation_id.is_some()
    }
}

/// A membership after an update.
#[derive(Clone, Debug)]
pub struct UpdatedMembership {
    pub membership: Model,
    /// Other memberships that changed as a consequence.
    pub others: Vec<Model>,
    /// The space, if it has a new owner.
    pub space_with_new_owner: Option<space::Model>,
}

/// Updates a membership. With a `version`, only if its settings still have that version.
pub async fn update(
    db: &Db,
    id: MembershipId,
    change: MembershipUpdate,
    version: Option<i64>,
) -> Result<UpdatedMembership, SpaceUpdateError<Model>> {
    db.write(move |tx| {
        Box::pin(async move {
            let membership = Entity::find_by_id(id).one(tx).await?;
            let membership = membership.ok_or(SpaceUpdateError::NotFound)?;
            let space_id = membership.space_id;
            if change.affects_scheduling() {
                needs_step::mark_for_member(tx, &membership).await?;
            }
            let space = space::lock(tx, space_id)
                .await?
                .ok_or(SpaceUpdateError::NotFound)?;
            let memberships = membership::list_active(tx, space_id).await?;
            let present = memberships
                .iter()
                .find(|it| it.id == id && it.status == MembershipStatus::Active)
                .ok_or(SpaceUpdateError::NotFound)?;
            if version.is_some_and(|it| it != present.settings_version) {
                return Err(SpaceUpdateError::Stale(Box::new(present.clone())));
            }
            let shown_name = match &change.own_display_name {
                Some(own) => Some(resolve_display_name(tx, present, own.clone()).await?),
                None => None,
            };
            let mut others = Vec::new();
            let becomes_owner =
                change.role == Some(MembershipRole::Owner) && present.role != MembershipRole::Owner;
            let handed_over = match becomes_owner {
                true => {
                    Some(transfer_ownership(tx, space, present, &memberships, &mut others).await?)
                }
                false => None,
            };
            if let Some(position) = change.position {
                others.extend(reorder(tx, &memberships, id, position).await?);
            }
            let row = Entity::find_by_id(id)
                .one(tx)
                .await?
                .ok_or(SpaceUpdateError::NotFound)?;
            let mut row = apply_update(row, change);
            if let Some(name) = shown_name {
                row.cached_display_name.set_if_not_equals(name);
            }
            let membership = match row.is_changed() {
                true => row.update(tx).await?,
                false => row.try_into()?,
            };
            Ok(UpdatedMembership {
                membership,
                others,
                space_with_new_owner: handed_over,
            })
        })
    })
    .await
}

/// Returns the name to show if `own` is the user's name for this space.
async fn resolve_display_name(
    tx: &impl ConnectionTrait,
    membership: &Model,
    own: Option<String>,
) -> Result<String, SpaceUpdateError<Model>> {
    let account = match membership.user_id {
        Some(id) => user::find(tx, id).await?,
        None => None,
    };
    let account = account.map(|it| it.display_name);
    let name = own.or(account).ok_or(SpaceUpdateError::NotFound)?;
    let spaces = [membership.space_id];
    match roster_changes::has_confusable_name(tx, &spaces, membership.user_id, &name).await? {
        true => Err(SpaceUpdateError::NameTaken),
        false => Ok(name),
    }
}

async fn transfer_ownership(
    tx: &impl ConnectionTrait,
    space: space::Model,
    new_owner: &Model,
    memberships: &[Model],
    others: &mut Vec<Model>,
) -> Result<space::Model, DbErr> {
    for owner in memberships
        .iter()
        .filter(|it| it.role == MembershipRole::Owner)
    {
        let mut row = owner.clone().into_active_model();
        row.role = Set(MembershipRole::Moderator);
        others.push(row.update(tx).await?);
    }
    let mut row = space.into_active_model();
    row.owner_id = Set(new_owner.user_id);
    row.update(tx).await
}

/// Moves a membership to its new position and renumbers the roster; returns the others that moved.
async fn reorder(
    tx: &impl ConnectionTrait,
    memberships: &[Model],
    id: MembershipId,
    position: i64,
) -> Result<Vec<Model>, DbErr> {
    let mut moved = Vec::new();
    for (membership, new_position) in new_positions(memberships, id, position) {
        if membership.position != new_position {
            let mut row = ActiveModel {
                id: ActiveValue::Unchanged(membership.id),
                ..Default::default()
            };
            row.position = Set(new_position);
            moved.push(row.update(tx).await?);
        }
    }
    moved.retain(|it| it.id != id);
    Ok(moved)
}

/// Returns each membership with its position after `id` has moved to `position`.
fn new_positions(memberships: &[Model], id: MembershipId, position: i64) -> Vec<(&Model, i64)> {
    let (moved, mut order): (Vec<_>, Vec<_>) = memberships.iter().partition(|it| it.id == id);
    let at = usize::try_from(position).unwrap_or(0).min(order.len());
    order.splice(at..at, moved);
    order.into_iter().zip(0..).collect()
}

fn apply_update(membership: Model, change: MembershipUpdate) -> ActiveModel {
    fn put<T: Into<sea_orm::Value> + PartialEq>(column: &mut ActiveValue<T>, value: Option<T>) {
        if let Some(value) = value {
            column.set_if_not_equals(value);
        }
    }
    let with_memory = |it: Value| with_memory(&membership.settings, it);
    let settings = change.settings.or_else(|| change.memory.map(with_memory));
    let changes_settings = settings
        .as_ref()
        .is_some_and(|it| *it != membership.settings);
    let is_on = change.copilot_mode.unwrap_or(membership.copilot_mode) == CopilotMode::Full;
    let next_version = membership.settings_version + i64::from(changes_settings);
    let mut row = membership.into_active_model();
    put(&mut row.role, change.role);
    put(&mut row.participation, change.participation);
    put(&mut row.is_away, change.is_away);
    put(&mut row.own_display_name, change.own_display_name);
    put(&mut row.persona, change.persona);
    put(&mut row.active_persona_id, change.active_persona_id);
    put(&mut row.translate, change.translate);
    put(&mut row.aliases, change.aliases.map(|it| json!(it)));
    put(&mut row.talkativeness, change.talkativeness);
    put(&mut row.settings, settings);
    put(&mut row.settings_version, Some(next_version));
    put(&mut row.copilot_mode, change.copilot_mode);
    // When the copilot is off, its steps are cleared: the last one may have been used in the
    // meantime.
    let steps = match is_on {
        true => change.copilot_remaining_steps,
        false => Some(None),
    };
    put(&mut row.copilot_remaining_steps, steps);
    put(
        &mut row.copilot_conversation_id,
        change.copilot_conversation_id,
    );
    put(&mut row.llm_provider_id, change.llm_provider_id);
    put(&mut row.preset_id, change.preset_id);
    row
}

/// Returns settings with this value of `memory`, or without it if it is null.
fn with_memory(settings: &Value, memory: Value) -> Value {
    let mut changed = settings.as_object().cloned().unwrap_or_default();
    match memory.is_null() {
        true => changed.remove("memory"),
        false => changed.insert("memory".to_owned(), memory),
    };
    Value::Object(changed)
}

/// Switches learning from a member's messages off. The caller has locked the space.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn disable_learning(tx: &impl ConnectionTrait, id: MembershipId) -> Result<(), DbErr> {
    let Some(row) = membership::find(tx, id).await? else {
        return Ok(());
    };
    let mut memory = row.settings["memory"].clone();
    if !memory.is_object() {
        memory = json!({});
    }
    memory["learn"] = json!(false);
    let change = MembershipUpdate {
        memory: Some(memory),
        ..MembershipUpdate::default()
    };
    let row = apply_update(row, change);
    if row.is_changed() {
        row.update(tx).await?;
    }
    Ok(())
}
