//! Endpoints that list, search, create, show, change, delete and forget the memories of a space, and
//! return those of a run's prompt.

use actix_web::web::{Data, Json, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{ConversationId, MembershipId, MemoryId, MessageId, RunId, SpaceId};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::memories::events::memory_announcer::MemoryAnnouncer;
use crate::memories::memory::{MemoryFilter, MemoryKind, MemoryOrigin, MemoryView};
use crate::memories::memory_deletion::DeletionScope;
use crate::memories::memory_store::{MemoryEdit, MemoryUpdate, NewMemory};
use crate::memories::{memory, memory_deletion, memory_store};
use crate::prompt::record::sent_prompt_loader;
use crate::runs::store::run;
use crate::spaces::membership;
use crate::spaces::permissions::Action;
use crate::web::api::memory_bodies::{
    CreateMemory, ForgetMemories, ForgottenView, ListedMemory, RecalledList, RecalledView,
    UpdateMemory, because, parse_content, parse_importance,
};
use crate::web::api::memory_checks::{
    require_change, require_member, require_owner, require_scope,
};
use crate::web::api::memory_recalls::LastRecalls;
use crate::web::api::{membership_announcements, memory_search};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access::SpaceAccess;
use crate::web::extract::{pagination, space_access};

/// The importance of a memory that a person writes.
const DEFAULT_IMPORTANCE: f64 = 0.5;

/// The memory in a path. Its fields have the parameters' names, so that their types are in the API
/// document.
#[derive(Clone, Copy, Deserialize)]
pub struct MemoryPath {
    space_id: SpaceId,
    memory_id: MemoryId,
}

/// Which memories to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MemoryQuery {
    /// A search: the best matches come first, on one page.
    #[serde(rename = "q")]
    #[param(max_length = 2_000)]
    _q: Option<String>,
    /// Only the memories of this member.
    #[param(inline)]
    pub membership_id: Option<MembershipId>,
    /// Only memories about this member.
    #[param(inline)]
    pub about: Option<MembershipId>,
    #[param(inline)]
    pub kind: Option<MemoryKind>,
    #[param(inline)]
    pub origin: Option<MemoryOrigin>,
    /// Only what was learned in this conversation.
    #[param(inline)]
    pub conversation_id: Option<ConversationId>,
    /// Only what was learned from this message, alone or with others.
    #[param(inline)]
    pub source_message_id: Option<MessageId>,
    pub pinned: Option<bool>,
}

impl MemoryQuery {
    /// Checks that the ids exist in principle: there is none below 1.
    fn require_ids(&self) -> ApiResult<()> {
        let ids = [
            ("membership_id", self.membership_id.map(|it| it.0)),
            ("about", self.about.map(|it| it.0)),
            ("conversation_id", self.conversation_id.map(|it| it.0)),
            ("source_message_id", self.source_message_id.map(|it| it.0)),
        ];
        match ids.iter().find(|(_, id)| id.is_some_and(|it| it < 1)) {
            Some((name, _)) => Err(ApiError::invalid_value(name, "Must be at least 1.")),
            None => Ok(()),
        }
    }
}

/// Lists the memories of a space that the caller may see, newest first: those of everyone, of the
/// characters and of the caller. With `q`, searches them.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/memories",
    tag = "memories",
    params(MemoryQuery, PageQuery),
    responses(
        (status = 200, body = PageOf<ListedMemory>),
        (status = 422, description = "`invalid_value`: the search is too long.")
    )
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    request: HttpRequest,
    space: Path<SpaceId>,
    query: Query<MemoryQuery>,
    page: PageQuery,
) -> ApiResult<Json<PageOf<ListedMemory>>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    let query = query.into_inner();
    query.require_ids()?;
    let filter = MemoryFilter {
        viewer: at.membership.as_ref().map(|it| it.id),
        membership: query.membership_id,
        about: query.about,
        kind: query.kind,
        origin: query.origin,
        conversation: query.conversation_id,
        source_message: query.source_message_id,
        is_pinned: query.pinned,
    };
    let text = pagination::parse_text(request.query_string(), "q")?;
    if let Some(text) = text.filter(|it| !it.trim().is_empty()) {
        return memory_search::search(&app, at, text, &filter, page.limit).await;
    }
    let found = memory::list_for_space(app.db.reader(), at.space.id, &filter, page).await?;
    let recalls = LastRecalls::load(&app, at.space.id, &found.data, at.viewer()).await?;
    Ok(Json(found.map(|it| recalls.listed(&it, None))))
}

/// Stores a memory. The same content of the same owner is stored once.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/memories",
    tag = "memories",
    request_body = CreateMemory,
    responses(
        (status = 201, body = MemoryView),
        (status = 200, description = "It exists already.", body = MemoryView),
        (status = 422, description = "`invalid_value`.")
    )
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<CreateMemory>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_action(Action::Read)?;
    let body = body.read().await?;
    require_change(&at, body.about_membership_id)?;
    require_owner(&app, &at, body.membership_id).await?;
    require_member(&app, &at, "about_membership_id", body.about_membership_id).await?;
    let new = NewMemory {
        owner: body.membership_id,
        about: body.about_membership_id,
        source: None,
        kind: body.kind,
        origin: MemoryOrigin::Person,
        content: parse_content(&body.content)?,
        importance: parse_importance(body.importance.unwrap_or(DEFAULT_IMPORTANCE))?,
        is_pinned: body.pinned.unwrap_or(false),
        created_by: Some(caller.id()),
    };
    let (space, owner, content) = (at.space.id, new.owner, new.content.clone());
    if let Some(row) = memory_store::insert_one(&app.db, space, new, app.clock.now()).await? {
        memory_events(&app).memories_changed(space, row.space_version);
        return Ok(HttpResponse::Created().json(row.view()));
    }
    let known = memory_store::find_by_content(app.db.reader(), space, owner, &content).await?;
    let known = known.ok_or_else(ApiError::not_found)?;
    Ok(HttpResponse::Ok().json(known.view()))
}

/// Returns a memory.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/memories/{memory_id}",
    tag = "memories",
    responses((status = 200, body = MemoryView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    path: Path<MemoryPath>,
) -> ApiResult<Json<MemoryView>> {
    let (_, row) = load_memory(&app, &caller, path.into_inner()).await?;
    Ok(Json(row.view()))
}

/// Changes a memory. The server does not replace a memory whose content a person has changed.
#[utoipa::path(
    patch,
    path = "/api/spaces/{space_id}/memories/{memory_id}",
    tag = "memories",
    request_body = UpdateMemory,
    responses(
        (status = 200, body = MemoryView),
        (status = 409, description = "`edit_conflict`: `error.current` is the current memory; `already_exists`: another memory has this content."),
        (status = 422, description = "`invalid_value`.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    path: Path<MemoryPath>,
    body: JsonBody<UpdateMemory>,
) -> ApiResult<Json<MemoryView>> {
    let (at, row) = load_memory(&app, &caller, path.into_inner()).await?;
    require_change(&at, row.about_membership_id)?;
    let body = body.read().await?;
    let about = body.about_membership_id.flatten();
    require_member(&app, &at, "about_membership_id", about).await?;
    if body.about_membership_id.is_some() {
        require_change(&at, about)?;
    }
    let change = MemoryEdit {
        content: body.content.as_deref().map(parse_content).transpose()?,
        kind: body.kind,
        importance: body.importance.map(parse_importance).transpose()?,
        is_pinned: body.pinned,
        about: body.about_membership_id,
    };
    let by = (caller.id(), body.expected_version);
    let now = app.clock.now();
    let updated = memory_store::update(&app.db, at.space.id, row.id, change, by, now).await?;
    match updated.ok_or_else(ApiError::not_found)? {
        MemoryUpdate::Updated(row) => {
            memory_events(&app).memories_changed(at.space.id, row.space_version);
            Ok(Json(row.view()))
        }
        MemoryUpdate::Stale(row) => {
            let message = "This memory was changed since you loaded it.";
            let mut error = ApiError::new(409, "edit_conflict", message);
            error.current = Some(Box::new(json!(row.view())));
            Err(error)
        }
        MemoryUpdate::Duplicate => {
            let message = "Another memory has this content.";
            Err(ApiError::new(409, "already_exists", message).with_param("content"))
        }
    }
}

/// Deletes a memory.
#[utoipa::path(
    delete,
    path = "/api/spaces/{space_id}/memories/{memory_id}",
    tag = "memories",
    responses((status = 204))
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    path: Path<MemoryPath>,
) -> ApiResult<HttpResponse> {
    let (at, row) = load_memory(&app, &caller, path.into_inner()).await?;
    require_change(&at, row.about_membership_id)?;
    delete_in_scope(&app, at.space.id, DeletionScope::Memory(row.id)).await?;
    memory_events(&app).memories_changed(at.space.id, at.space.memory_version + 1);
    Ok(HttpResponse::NoContent().finish())
}

/// Deletes memories completely: those about a member, of the member and learned from the member's messages,
/// those learned in a conversation, or all of a space. They are in no table afterwards.
///
/// For a member, this also sets `settings.memory.learn` of the membership to false: no memories are made
/// from its messages until it is set to true again.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/memories/forget",
    tag = "memories",
    request_body = ForgetMemories,
    responses(
        (status = 200, body = ForgottenView),
        (status = 400, description = "`missing_field`."),
        (status = 422, description = "`invalid_value`.")
    )
)]
pub async fn forget(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<ForgetMemories>,
) -> ApiResult<Json<ForgottenView>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    let body = body.read().await?;
    let scope = match (body.about_membership_id, body.conversation_id, body.all) {
        (Some(id), None, None | Some(false)) => DeletionScope::Member(id),
        (None, Some(id), None | Some(false)) => DeletionScope::Conversation(id),
        (None, None, Some(true)) => DeletionScope::All,
        (None, None, _) => {
            let message = "Give `about_membership_id`, `conversation_id` or `all`.";
            let error = ApiError::new(400, "missing_field", message);
            return Err(error.with_param("about_membership_id"));
        }
        _ => {
            let message = "Give one of `about_membership_id`, `conversation_id` and `all`.";
            return Err(ApiError::invalid_value("all", message));
        }
    };
    require_scope(&app, &at, scope).await?;
    let own = at.membership.as_ref().map(|it| it.id);
    match scope {
        DeletionScope::Member(id) if Some(id) == own => {}
        _ => at.require_action(Action::Moderate)?,
    }
    // The memories of other people are deleted, too, but their number is not shown.
    let n = memory_deletion::count_in_scope(app.db.reader(), at.space.id, scope, own).await?;
    if body.dry_run != Some(true) {
        let n_public = memory_deletion::count_in_scope(app.db.reader(), at.space.id, scope, None);
        let n_public = n_public.await?;
        delete_in_scope(&app, at.space.id, scope).await?;
        memory_events(&app).memories_forgotten(at.space.id, n_public);
        if let DeletionScope::Member(id) = scope {
            let changed = membership::find(app.db.reader(), id).await?;
            if let Some(changed) = changed {
                membership_announcements::announce(&app, &changed);
            }
        }
    }
    let deleted = usize::try_from(n).unwrap_or(usize::MAX);
    Ok(Json(ForgottenView { deleted }))
}

fn memory_events(app: &App) -> &MemoryAnnouncer {
    &app.engine.context().memory_events
}

async fn delete_in_scope(app: &App, space: SpaceId, scope: DeletionScope) -> ApiResult<()> {
    memory_deletion::delete(&app.db, space, scope, app.clock.now()).await?;
    Ok(())
}

/// Returns which memories the prompt of a run contained and why, and which came close. Those that were
/// deleted since are missing. The list is empty for those who did not hear all whispers of the prompt.
#[utoipa::path(
    get,
    path = "/api/runs/{run_id}/memories",
    operation_id = "list_recalled",
    tag = "runs",
    responses((status = 200, body = RecalledList))
)]
pub async fn list_for_run(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<RunId>,
) -> ApiResult<Json<RecalledList>> {
    let db = app.db.reader();
    let run = run::find(db, id.into_inner()).await?;
    let run = run.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_conversation_access(&app, &caller, run.conversation_id).await?;
    if !at.viewer().sees(run.audience.as_ref()) {
        return Err(ApiError::not_found());
    }
    let kept = sent_prompt_loader::load_for_run(db, at.space.id, run.id, at.viewer()).await?;
    let (record, texts) = kept.ok_or_else(ApiError::not_found)?;
    let data = record.recalls.iter().filter_map(|it| {
        Some(RecalledView {
            memory: texts.memory(it.memory)?.view(),
            rank: it.rank,
            score: it.score,
            vector_score: it.vector_score,
            text_score: it.text_score,
            because: because(&it.matched, it.vector_score, it.is_pinned),
        })
    });
    Ok(Json(RecalledList {
        data: data.collect(),
    }))
}

/// Loads a memory that the caller may see.
async fn load_memory(
    app: &App,
    caller: &CurrentUser,
    MemoryPath {
        space_id,
        memory_id,
    }: MemoryPath,
) -> ApiResult<(SpaceAccess, memory::Model)> {
    let at = space_access::load_space_access(app, caller, space_id).await?;
    let viewer = MemoryFilter {
        viewer: at.membership.as_ref().map(|it| it.id),
        ..MemoryFilter::default()
    };
    let found = memory::list_matching(app.db.reader(), at.space.id, &viewer, [memory_id]).await?;
    let row = found.into_iter().next().ok_or_else(ApiError::not_found)?;
    Ok((at, row))
}
