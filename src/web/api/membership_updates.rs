//! `PATCH /api/memberships/{membership_id}`: checks and stores changes of a member of a space (such
//! as role, position, persona, copilot or settings), publishes them, notifies the run engine, and
//! returns the membership.

use actix_web::web::{Data, Json, Path};
use base::ids::{ConversationId, MembershipId, PersonaId, PresetId, ProviderId};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::accounts::user;
use crate::app::App;
use crate::spaces::lifecycle::SpaceUpdateError;
use crate::spaces::membership::{
    CopilotMode, MembershipKind, MembershipRole, Participation, TranslationChoice,
};
use crate::spaces::membership_update::MembershipUpdate;
use crate::spaces::permissions::Action;
use crate::spaces::posts::heard_messages::ONLY_HEARD;
use crate::spaces::{events, membership, membership_update};
use crate::web::api::engine_error::api_error;
use crate::web::api::{
    account_input, copilot_update, membership_announcements, membership_fields, memberships,
    personas, presets, space_settings, spaces,
};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access::SpaceAccess;

/// The keys in `settings.memory` that every person may change for themselves.
const MEMORY_SWITCHES: [&str; 2] = ["learn", "recall"];

/// Changes to a membership.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = MembershipChange)]
pub struct UpdateMembership {
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    role: Option<MembershipRole>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0)]
    position: Option<i64>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    participation: Option<Participation>,
    /// Whether a person is away and gets no turns; moderators may set it for others.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    is_away: Option<bool>,
    /// The name of the caller's own membership in this space; null: the account's name.
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<DisplayNameSchema>)]
    display_name: Option<Option<String>>,
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<String>, max_length = 20_000)]
    persona: Option<Option<String>>,
    /// The persona of the caller's posts in this space; null: their default persona, if any.
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<PersonaId>)]
    active_persona_id: Option<Option<PersonaId>>,
    /// When the caller sees the messages of others in translation; only in one's own membership.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    translate: Option<TranslationChoice>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(value_type = Vec<DisplayNameSchema>, max_items = 50)]
    aliases: Option<Vec<String>>,
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    talkativeness: Option<Option<f64>>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(value_type = space_settings::KnownSettings)]
    settings: Option<Map<String, Value>>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    settings_version: Option<i64>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    copilot_mode: Option<CopilotMode>,
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 10)]
    copilot_remaining_steps: Option<Option<i64>>,
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<ConversationId>)]
    copilot_conversation_id: Option<Option<ConversationId>>,
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<ProviderId>)]
    llm_provider_id: Option<Option<ProviderId>>,
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<PresetId>)]
    preset_id: Option<Option<PresetId>>,
}

/// Changes a membership.
///
/// People change their own name, persona, copilot, whether they are away, and in `settings` only `memory`
/// (with `learn` and `recall`). Position, participation and the absence of others require the right to
/// moderate; the other fields require the right to
/// configure the space.
#[utoipa::path(
    patch,
    path = "/api/memberships/{membership_id}",
    operation_id = "change",
    tag = "memberships",
    request_body = UpdateMembership,
    responses(
        (status = 200, body = membership::MembershipView),
        (status = 409, description = "`stale_settings`: `error.current` is the current membership; `already_finished`; `name_taken_here`.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MembershipId>,
    body: JsonBody<UpdateMembership>,
) -> ApiResult<Json<membership::MembershipView>> {
    let (target, at) = memberships::load_membership(&app, &caller, id.into_inner()).await?;
    memberships::require_active(&target)?;
    at.require_write(Action::Read)?;
    let body = body.read().await?;
    authorize_update(&at, &target, &body)?;
    if body.role == Some(MembershipRole::Owner) {
        require_registered(&app, &target).await?;
    }
    let version = body.settings_version;
    let starts_copilot = body.copilot_mode == Some(CopilotMode::Full);
    let change = validate(&app, &caller, &at, &target, body).await?;
    let changes_who_speaks = change.affects_scheduling();
    let turns_copilot = change.copilot_mode.is_some() || change.copilot_remaining_steps.is_some();
    let changed = match membership_update::update(&app.db, target.id, change, version).await {
        Ok(changed) => changed,
        Err(SpaceUpdateError::Stale(present)) => {
            return Err(spaces::stale_settings_error(serde_json::json!(
                present.view_for(caller.id())
            )));
        }
        Err(SpaceUpdateError::NotFound) => return Err(ApiError::not_found()),
        Err(SpaceUpdateError::NameTaken) => return Err(account_input::name_taken_error()),
        Err(SpaceUpdateError::Db(error)) => return Err(error.into()),
    };
    for membership in std::iter::once(&changed.membership).chain(&changed.others) {
        membership_announcements::announce(&app, membership);
    }
    if let Some(space) = &changed.space_with_new_owner {
        spaces::announce(&app, space).await?;
    }
    if let Some(event) = events::copilot_updated(&changed.membership).filter(|_| turns_copilot) {
        app.hub.publish(event);
    }
    if changes_who_speaks {
        let event = app.engine.member_changed(at.space.id, target.id).await;
        event.map_err(api_error)?;
    }
    if let Some(conversation) = changed
        .membership
        .copilot_conversation_id
        .filter(|_| starts_copilot)
    {
        let started = app.engine.start_copilot(conversation, target.id).await;
        started.map_err(api_error)?;
    }
    Ok(Json(changed.membership.view_for(caller.id())))
}

/// Checks the caller's rights: name, persona and copilot belong to the person; the other fields
/// require a right in the space.
fn authorize_update(
    at: &SpaceAccess,
    target: &membership::Model,
    body: &UpdateMembership,
) -> ApiResult<()> {
    let is_own = memberships::is_own(at, target);
    let is_person = target.kind == MembershipKind::Human;
    let touches_self = body.persona.is_some()
        || body.active_persona_id.is_some()
        || body.translate.is_some()
        || body.copilot_mode.is_some()
        || body.copilot_remaining_steps.is_some()
        || body.copilot_conversation_id.is_some();
    if touches_self && is_person && !is_own {
        return Err(ApiError::forbidden(
            "Only the person can change their persona, translations and copilot.",
        ));
    }
    if body.display_name.is_some() {
        authorize_rename(is_own, target)?;
    }
    let moderates = body.position.is_some()
        || body.participation.is_some()
        || (body.is_away.is_some() && !is_own);
    if moderates {
        at.require_action(Action::Moderate)?;
    }
    let touches_words = touches_self || body.aliases.is_some();
    let configures = body.role.is_some()
        || body.talkativeness.is_some()
        || (body.settings.is_some() && !(is_own && changes_only_memory(target, body)))
        || body.llm_provider_id.is_some()
        || body.preset_id.is_some()
        || (touches_words && !is_own);
    if configures {
        at.require_action(Action::Configure)?;
    }
    match body.role {
        Some(role) if role != target.role => authorize_role(at, target, role),
        _ => Ok(()),
    }
}

/// Returns whether the new settings differ from the current ones only in the switches of the memory.
fn changes_only_memory(target: &membership::Model, body: &UpdateMembership) -> bool {
    let without_memory = |settings: &Map<String, Value>| {
        let mut others = settings.clone();
        others.remove("memory");
        others
    };
    let Some(new) = &body.settings else {
        return false;
    };
    let present = target.settings.as_object().cloned().unwrap_or_default();
    let has_only_switches = match new.get("memory") {
        Some(Value::Object(memory)) => memory.keys().all(|it| MEMORY_SWITCHES.contains(&&**it)),
        other => other.is_none_or(Value::is_null),
    };
    has_only_switches && without_memory(new) == without_memory(&present)
}

/// Only the person can change their name in a space; a character always has its card's name.
fn authorize_rename(is_own: bool, target: &membership::Model) -> ApiResult<()> {
    match (target.kind, is_own) {
        (MembershipKind::Human, true) => Ok(()),
        (MembershipKind::Human, false) => Err(ApiError::forbidden(
            "Only the person can change their name in this space.",
        )),
        (MembershipKind::Character, _) => Err(ApiError::invalid_value(
            "display_name",
            "A character always has the name of its card.",
        )),
    }
}

fn authorize_role(
    at: &SpaceAccess,
    target: &membership::Model,
    role: MembershipRole,
) -> ApiResult<()> {
    if target.kind != MembershipKind::Human {
        return Err(ApiError::invalid_value("role", "Only people have roles."));
    }
    match (target.role, role) {
        (_, MembershipRole::Owner) => at.require_action(Action::AdministerSpace),
        (MembershipRole::Owner, _) => Err(ApiError::forbidden(
            "The owner must transfer the space to another member instead.",
        )),
        _ => Ok(()),
    }
}

/// A guest must not own a space, because it would have no owner after the guest's session ends.
async fn require_registered(app: &App, new_owner: &membership::Model) -> ApiResult<()> {
    let Some(id) = new_owner.user_id else {
        return Ok(());
    };
    let user = user::find(app.db.reader(), id).await?;
    match user.is_some_and(|it| !it.is_guest()) {
        true => Ok(()),
        false => Err(ApiError::invalid_value(
            "role",
            "A guest cannot own a space. They must set a username and a password first.",
        )),
    }
}

/// Validates every value of the change.
async fn validate(
    app: &App,
    caller: &CurrentUser,
    at: &SpaceAccess,
    target: &membership::Model,
    body: UpdateMembership,
) -> ApiResult<MembershipUpdate> {
    if body.position.is_some_and(|it| it < 0) {
        return Err(ApiError::invalid_value("position", "Must be at least 0."));
    }
    let talkativeness = body.talkativeness.flatten();
    if talkativeness.is_some_and(|it| !(0.0..=1.0).contains(&it)) {
        return Err(ApiError::invalid_value(
            "talkativeness",
            "Must be between 0 and 1.",
        ));
    }
    let is_person = target.kind == MembershipKind::Human;
    for (field, is_set, message) in [
        (
            "translate",
            body.translate.is_some(),
            "Only people read translations.",
        ),
        (
            "is_away",
            body.is_away.is_some(),
            "Only people can be away. Mute the character instead.",
        ),
    ] {
        if is_set && !is_person {
            return Err(ApiError::invalid_value(field, message));
        }
    }
    if let Some(id) = body.active_persona_id.flatten() {
        personas::require_usable(app, caller, target, id).await?;
    }
    membership_fields::require_provider(app, body.llm_provider_id.flatten()).await?;
    if let Some(id) = body.preset_id.flatten() {
        presets::require_usable(app, caller, id, "preset_id").await?;
    }
    // Only the switches are written, because another person may change the other settings meanwhile.
    let is_memory = memberships::is_own(at, target) && changes_only_memory(target, &body);
    let settings = body.settings.map(space_settings::parse).transpose()?;
    let limits_memory = settings
        .as_ref()
        .is_some_and(|it| it[ONLY_HEARD] == Value::Bool(true));
    if limits_memory && target.kind == MembershipKind::Human {
        return Err(ApiError::invalid_value(
            &format!("settings.{ONLY_HEARD}"),
            "Only a character can have this setting.",
        ));
    }
    let (settings, memory) = match settings {
        Some(new) if is_memory => (None, Some(new["memory"].clone())),
        settings => (settings, None),
    };
    let mut change = MembershipUpdate {
        role: body.role,
        position: body.position,
        participation: body.participation,
        is_away: body.is_away,
        own_display_name: body
            .display_name
            .map(membership_fields::parse_own_name)
            .transpose()?,
        persona: body
            .persona
            .map(membership_fields::parse_persona)
            .transpose()?,
        active_persona_id: body.active_persona_id,
        translate: body.translate,
        aliases: body
            .aliases
            .map(membership_fields::parse_aliases)
            .transpose()?,
        talkativeness: body.talkativeness,
        settings,
        memory,
        copilot_mode: body.copilot_mode,
        copilot_remaining_steps: body.copilot_remaining_steps,
        copilot_conversation_id: body.copilot_conversation_id,
        llm_provider_id: body.llm_provider_id,
        preset_id: body.preset_id,
    };
    copilot_update::validate(app, at, target, &mut change).await?;
    Ok(change)
}
