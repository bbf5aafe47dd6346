//! Endpoints that list, create, show, change and delete spaces.

use std::collections::HashMap;

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::SpaceId;
use llm::registry::ProviderKind;
use serde_json::{Value, json};

use crate::accounts::user;
use crate::app::App;
use crate::conversations::chats::import_job;
use crate::conversations::{conversation, root_conversation, token_usage};
use crate::db::reading::page::{PageOf, PageQuery};
use crate::memories::models::model_setting::MemoryModelSetting;
use crate::providers::provider;
use crate::runs::conversation_start::NewConversation;
use crate::runs::store::run::RunCancelReason;
use crate::spaces::lifecycle::{SpaceRules, SpaceUpdateError};
use crate::spaces::permissions::{Access, Action};
use crate::spaces::{events, lifecycle, membership, space};
use crate::web::api::engine_error::api_error;
use crate::web::api::jobs::JobStarted;
use crate::web::api::space_bodies::{CreateSpace, UPDATE_ONLY_FIELDS, UpdateSpace};
use crate::web::api::{account_input, jobs, membership_announcements, memory_embedding, presets};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access::SpaceAccess;
use crate::web::extract::{pagination, space_access};

/// Lists the caller's spaces; with `all=true` every space, for admins.
#[utoipa::path(
    get,
    path = "/api/spaces",
    tag = "spaces",
    params(PageQuery, ("all" = Option<bool>, Query, description = "Lists every space; for admins only.")),
    responses((status = 200, body = PageOf<space::SpaceView>), (status = 403))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    request: HttpRequest,
    page: PageQuery,
) -> ApiResult<Json<PageOf<space::SpaceView>>> {
    let wants_all = pagination::parse_value(request.query_string(), "all")?.unwrap_or(false);
    if wants_all && !caller.is_admin() {
        return Err(ApiError::forbidden("Only an admin can list all spaces."));
    }
    let db = app.db.reader();
    let found = match wants_all {
        true => import_job::list_visible_spaces(db, page).await?,
        false => lifecycle::list_for_user(db, caller.id(), page).await?,
    };
    let ids: Vec<SpaceId> = found.data.iter().map(|it| it.id).collect();
    let roots = root_conversation::list_for_spaces(db, ids.iter().copied()).await?;
    let tokens_used = token_usage::list_for_spaces(db, ids.iter().copied()).await?;
    let memberships = membership::list_for_users(db, [caller.id()], ids).await?;
    let memberships: HashMap<_, _> = memberships
        .into_iter()
        .map(|it| (it.space_id, it))
        .collect();
    Ok(Json(found.map(|it| {
        let access = Access::for_member(memberships.get(&it.id), caller.is_admin());
        let root = roots.get(&it.id).copied();
        let tokens_used = tokens_used.get(&it.id).copied().unwrap_or_default();
        it.view(tokens_used, root, access.map(Access::code))
    })))
}

/// Creates a space with its root conversation.
#[utoipa::path(
    post,
    path = "/api/spaces",
    tag = "spaces",
    request_body = CreateSpace,
    responses((status = 201, body = space::SpaceView))
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: JsonBody<UpdateSpace>,
) -> ApiResult<HttpResponse> {
    caller.require_registered()?;
    let body = body.read().await?;
    let is_given = [body.status.is_some(), body.settings_version.is_some()];
    for (is_said, field) in is_given.into_iter().zip(UPDATE_ONLY_FIELDS) {
        if is_said {
            let message = "This field cannot be set on a new space.";
            return Err(ApiError::new(400, "unknown_field", message).with_param(field));
        }
    }
    if body.name.is_none() {
        let message = "A space requires a name.";
        return Err(ApiError::new(400, "missing_field", message).with_param("name"));
    }
    let rules = body.validate()?;
    presets::require_usable_in_settings(&app, &caller, &rules).await?;
    require_memory_models(&app, &rules, &Value::Null).await?;
    memory_embedding::require_usable_in_settings(&app, &rules, None).await?;
    require_translation_provider(&app, &rules, None).await?;
    require_director_provider(&app, &rules, None).await?;
    let view = create_space(&app, &caller.user, rules).await?;
    Ok(HttpResponse::Created().json(view))
}

/// Creates a space with its root conversation.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn create_space(
    app: &App,
    owner: &user::Model,
    rules: SpaceRules,
) -> ApiResult<space::SpaceView> {
    let owner_name = owner.display_name.clone();
    let now = app.clock.now();
    let space = lifecycle::create(&app.db, owner.id, owner_name, rules, now).await?;
    let root = NewConversation {
        title: None,
        kind: conversation::ConversationKind::Root,
        parent: None,
    };
    let root = app.engine.create_conversation(space.id, root).await;
    if root.is_err() {
        // A space without a conversation is useless.
        lifecycle::delete(&app.db, space.id).await?;
    }
    let root = root.map_err(api_error)?;
    Ok(space.view(0, Some(root.id), Some("owner")))
}

/// Returns a space as the caller sees it.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}",
    tag = "spaces",
    responses((status = 200, body = space::SpaceView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<SpaceId>,
) -> ApiResult<Json<space::SpaceView>> {
    let at = space_access::load_space_access(&app, &caller, id.into_inner()).await?;
    Ok(Json(space_view(&app, &at.space, Some(at.access)).await?))
}

async fn space_view(
    app: &App,
    space: &space::Model,
    access: Option<Access>,
) -> ApiResult<space::SpaceView> {
    let db = app.db.reader();
    let root = root_conversation::find_for_space(db, space.id).await?;
    let tokens_used = token_usage::find_for_space(db, space.id).await?;
    Ok(space.view(tokens_used, root, access.map(Access::code)))
}

/// Changes a space.
///
/// The only change of an archived space is to reactivate it. Only the owner can archive or
/// reactivate it.
#[utoipa::path(
    patch,
    path = "/api/spaces/{space_id}",
    operation_id = "change",
    tag = "spaces",
    request_body = UpdateSpace,
    responses(
        (status = 200, body = space::SpaceView),
        (status = 409, description = "`stale_settings`: `error.current` is the current space.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<SpaceId>,
    body: JsonBody<UpdateSpace>,
) -> ApiResult<Json<space::SpaceView>> {
    let at = space_access::load_space_access(&app, &caller, id.into_inner()).await?;
    at.require_action(Action::Configure)?;
    let body = body.read().await?;
    authorize_update(&at, &body)?;
    let archives = body.status == Some(space::SpaceStatus::Archived);
    let changes_who_speaks = body.reply_order.is_some() || body.auto_mode_enabled.is_some();
    let version = body.settings_version;
    let rules = body.validate()?;
    presets::require_usable_in_settings(&app, &caller, &rules).await?;
    require_memory_models(&app, &rules, &at.space.settings).await?;
    memory_embedding::require_usable_in_settings(&app, &rules, Some(&at.space)).await?;
    require_translation_provider(&app, &rules, Some(&at.space)).await?;
    require_director_provider(&app, &rules, Some(&at.space)).await?;
    let changed = lifecycle::update(&app.db, at.space.id, rules, version).await;
    let changed = match changed {
        Ok(changed) => changed,
        Err(SpaceUpdateError::Stale(present)) => {
            return Err(stale_settings_error(json!(
                space_view(&app, &present, Some(at.access)).await?
            )));
        }
        Err(SpaceUpdateError::NotFound) => return Err(ApiError::not_found()),
        Err(SpaceUpdateError::NameTaken) => return Err(account_input::name_taken_error()),
        Err(SpaceUpdateError::Db(error)) => return Err(error.into()),
    };
    if archives {
        app.engine
            .space_closed(changed.id, RunCancelReason::Archived)
            .await
            .map_err(api_error)?;
    } else if changes_who_speaks {
        let result = app.engine.settings_changed(changed.id).await;
        result.map_err(api_error)?;
    }
    memory_embedding::apply_settings(&app, &at.space, &changed).await?;
    announce(&app, &changed).await?;
    Ok(Json(space_view(&app, &changed, Some(at.access)).await?))
}

/// Checks the caller's rights: an archived space can only be reactivated, and only the owner can
/// change the status.
fn authorize_update(at: &SpaceAccess, body: &UpdateSpace) -> ApiResult<()> {
    if body.status.is_some() {
        at.require_action(Action::AdministerSpace)?;
    }
    match body.status {
        Some(space::SpaceStatus::Active) => Ok(()),
        _ => at.require_write(Action::Configure),
    }
}

/// Checks that the providers of the memory's models exist. One that was deleted since it was chosen is
/// accepted, so that other settings can be changed.
async fn require_memory_models(app: &App, rules: &SpaceRules, present: &Value) -> ApiResult<()> {
    let Some(settings) = &rules.settings else {
        return Ok(());
    };
    for path in ["/memory/model", "/memory/summaries/model"] {
        let chosen = |it: &Value| it.pointer(path).and_then(MemoryModelSetting::from_json);
        let Some(model) = chosen(settings) else {
            continue;
        };
        let is_present = chosen(present).is_some_and(|it| it.provider_id == model.provider_id);
        let found = provider::find(app.db.reader(), model.provider_id);
        if !is_present && found.await?.is_none() {
            let param = format!("settings{}.provider_id", path.replace('/', "."));
            let message = "This provider does not exist.";
            return Err(ApiError::invalid_value(&param, message));
        }
    }
    Ok(())
}

/// Checks that the provider of translations exists and can translate. The present one is accepted, so that
/// other settings can be changed.
async fn require_translation_provider(
    app: &App,
    rules: &SpaceRules,
    present: Option<&space::Model>,
) -> ApiResult<()> {
    let Some(Some(id)) = rules.translation_provider_id else {
        return Ok(());
    };
    if present.is_some_and(|it| it.translation_provider_id == Some(id)) {
        return Ok(());
    }
    let message = match provider::find(app.db.reader(), id).await? {
        Some(found) if found.kind == ProviderKind::Demo => "The demo model cannot translate.",
        Some(_) => return Ok(()),
        None => "This provider does not exist.",
    };
    Err(ApiError::invalid_value("translation_provider_id", message))
}

/// Checks that the provider of the director exists. The present one is accepted, so that other settings can
/// be changed.
async fn require_director_provider(
    app: &App,
    rules: &SpaceRules,
    present: Option<&space::Model>,
) -> ApiResult<()> {
    let Some(Some(id)) = rules.director_provider_id else {
        return Ok(());
    };
    let is_present = present.is_some_and(|it| it.director_provider_id == Some(id));
    if is_present || provider::find(app.db.reader(), id).await?.is_some() {
        return Ok(());
    }
    let message = "This provider does not exist.";
    Err(ApiError::invalid_value("director_provider_id", message))
}

/// 409 with the current document.
pub fn stale_settings_error(present: Value) -> ApiError {
    let message = "The settings were changed in the meantime. Reload and try again.";
    let mut error = ApiError::conflict("stale_settings", message);
    error.current = Some(Box::new(present));
    error
}

/// Publishes a space to its subscribers.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn announce(app: &App, space: &space::Model) -> ApiResult<()> {
    let view = space_view(app, space, None).await?;
    app.hub.publish(events::space_updated(view));
    Ok(())
}

/// Deletes a space with all its conversations.
#[utoipa::path(
    delete,
    path = "/api/spaces/{space_id}",
    tag = "spaces",
    responses(
        (status = 204),
        (status = 202, description = "More than 2,000 messages: a job deletes them.", body = JobStarted)
    )
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<SpaceId>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, id.into_inner()).await?;
    at.require_action(Action::AdministerSpace)?;
    let id = at.space.id;
    let memberships = membership::list_active(app.db.reader(), id).await?;
    // Archive the space first: new posts are then rejected, so no new run starts.
    let archived = SpaceRules {
        status: Some(space::SpaceStatus::Archived),
        ..SpaceRules::default()
    };
    match lifecycle::update(&app.db, id, archived, None).await {
        Err(SpaceUpdateError::Db(error)) => return Err(error.into()),
        Err(_) => return Err(ApiError::not_found()),
        Ok(_) => {}
    }
    let deleted = app.engine.delete_space(id, caller.id()).await;
    let deletion = deleted
        .map_err(api_error)?
        .ok_or_else(ApiError::not_found)?;
    app.hub.publish(events::space_deleted(id));
    let users = memberships.iter().filter_map(|it| it.user_id);
    membership_announcements::request_access_review(&app, id, users.chain([caller.id()]));
    Ok(match app.engine.wait_for_deletion(deletion).await? {
        None => HttpResponse::NoContent().finish(),
        Some(job) => jobs::accepted_response(&job),
    })
}
