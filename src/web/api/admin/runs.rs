//! Endpoint that lists the runs of all spaces with their speaker, node and heartbeat age, for
//! admins who monitor the run queue.
//!
//! **Invariant:** no conversation text is returned, only its length.

use std::collections::{HashMap, HashSet};

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Query};
use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, RunId, SpaceId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::conversations::conversation;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::runs::reading::history::RunQuery;
use crate::runs::store::run;
use crate::runs::store::run_view::{PrivateRunView, RunView};
use crate::spaces::{membership, space};
use crate::web::error::ApiResult;
use crate::web::extract::authentication::Admin;
use crate::web::extract::pagination;

/// Filters of the list; the error code is parsed separately.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AdminRunFilter {
    #[param(inline)]
    status: Option<run::RunStatus>,
    #[param(inline)]
    kind: Option<run::RunKind>,
    // Any number is accepted; an unknown id has no runs.
    #[param(value_type = Option<i64>)]
    space_id: Option<SpaceId>,
    #[param(value_type = Option<i64>)]
    conversation_id: Option<ConversationId>,
}

/// A run as an admin sees it; of the run of a whisper only that it exists.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdminRun)]
#[serde(untagged)]
pub enum AdminRunView {
    Whole(Box<AdminWholeRun>),
    Private(AdminPrivateRun),
}

/// A run for everyone.
#[derive(Debug, Serialize, ToSchema)]
pub struct AdminWholeRun {
    #[serde(flatten)]
    run: RunView,
    space_id: SpaceId,
    space_name: String,
    conversation_title: String,
    speaker_name: String,
    /// The node that executes it, or executed it last.
    worker_id: Option<String>,
    /// The age of its last heartbeat; null unless it is running.
    heartbeat_age_ms: Option<i64>,
    /// The text generated so far; null unless it is running on the responding node.
    live: Option<StreamProgress>,
}

/// The run of a whisper.
#[derive(Debug, Serialize, ToSchema)]
pub struct AdminPrivateRun {
    #[serde(flatten)]
    run: PrivateRunView,
    space_id: SpaceId,
    space_name: String,
    conversation_title: String,
    /// The node that executes it, or executed it last.
    worker_id: Option<String>,
    /// The age of its last heartbeat; null unless it is running.
    heartbeat_age_ms: Option<i64>,
}

/// The length of a growing text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LiveText)]
pub struct StreamProgress {
    chars: usize,
}

/// Lists the runs of all spaces, newest first.
#[utoipa::path(
    get,
    path = "/api/admin/runs",
    tag = "admin",
    operation_id = "list_runs",
    params(
        AdminRunFilter,
        ("error_code" = Option<String>, Query, description = "The error code of failed runs, such as `upstream_timeout`."),
        PageQuery<RunId>
    ),
    responses((status = 200, body = PageOf<AdminRunView>), (status = 403))
)]
pub async fn list(
    app: Data<App>,
    _admin: Admin,
    request: HttpRequest,
    filter: Query<AdminRunFilter>,
    page: PageQuery<RunId>,
) -> ApiResult<Json<PageOf<AdminRunView>>> {
    let wanted = RunQuery {
        conversation: filter.conversation_id,
        space: filter.space_id,
        status: filter.status,
        kind: filter.kind,
        error_code: pagination::parse_text(request.query_string(), "error_code")?,
    };
    let found = wanted.list(app.db.reader(), app.db.backend(), page).await?;
    let names = RunLabels::load(&app, &found.data).await?;
    let now = app.clock.now();
    let views = found.data.iter().filter_map(|it| names.view(&app, it, now));
    Ok(Json(PageOf {
        data: views.collect(),
        has_more: found.has_more,
        cursor: found.cursor,
    }))
}

/// The conversations of some runs with their spaces, and the names of the speakers.
struct RunLabels {
    conversations: HashMap<ConversationId, (conversation::Model, space::Model)>,
    speakers: HashMap<MembershipId, String>,
}

impl RunLabels {
    async fn load(app: &App, runs: &[run::Model]) -> ApiResult<Self> {
        let db = app.db.reader();
        let ids: HashSet<_> = runs.iter().map(|it| it.conversation_id).collect();
        let conversations = conversation::list_with_spaces(db, ids).await?;
        let ids: HashSet<_> = runs
            .iter()
            .filter_map(|it| it.speaker_space_membership_id)
            .collect();
        Ok(Self {
            conversations: conversations.into_iter().map(|it| (it.0.id, it)).collect(),
            speakers: membership::list_display_names(db, ids).await?,
        })
    }

    /// Builds the view; `None` if the conversation was deleted in the meantime, and its runs with
    /// it.
    fn view(&self, app: &App, run: &run::Model, now: Timestamp) -> Option<AdminRunView> {
        let (conversation, space) = self.conversations.get(&run.conversation_id)?;
        let is_running = run.status == run::RunStatus::Running;
        let heartbeat = run.heartbeat_at.filter(|_| is_running);
        // The clocks of two machines may differ slightly.
        let heartbeat_age_ms = heartbeat.map(|at| now.ms_since(at).max(0));
        let (space_id, space_name) = (space.id, space.name.clone());
        let conversation_title = conversation.title.clone();
        let worker_id = run.worker_id.clone();
        if run.audience.is_some() {
            return Some(AdminRunView::Private(AdminPrivateRun {
                run: run.private_view(),
                space_id,
                space_name,
                conversation_title,
                worker_id,
                heartbeat_age_ms,
            }));
        }
        let speaker = run.speaker_space_membership_id;
        let speaker = speaker.and_then(|it| self.speakers.get(&it));
        Some(AdminRunView::Whole(Box::new(AdminWholeRun {
            run: run.view(),
            space_id,
            space_name,
            conversation_title,
            speaker_name: speaker.cloned().unwrap_or_default(),
            worker_id,
            heartbeat_age_ms,
            live: stream_progress(app, run),
        })))
    }
}

fn stream_progress(app: &App, run: &run::Model) -> Option<StreamProgress> {
    let written = app.engine.live_text(run.conversation_id)?;
    (written.run_id == run.id).then(|| StreamProgress {
        chars: written.text.chars().count(),
    })
}
