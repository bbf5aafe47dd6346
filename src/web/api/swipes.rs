//! Endpoint that lists the swipes (alternative texts) of a message, in pages of limited size.

use std::sync::Arc;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{MessageId, RunId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::conversations::display::display_scripts::{DisplayScripts, ShownText};
use crate::conversations::display::markdown::Markdown;
use crate::conversations::display::message_authors;
use crate::conversations::display::message_authors::MessageAuthors;
use crate::conversations::timeline_page::PageBudget;
use crate::conversations::{message, swipe, timeline_page};
use crate::db::reading::page::{PageKeys, PageOf, PageQuery};
use crate::db::reading::row_slices;
use crate::regex_scripts::script_cache::ScriptRevisions;
use crate::spaces::space;
use crate::web::api::messages;
use crate::web::encoded_page;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;

/// The size of a list without its entries, in bytes.
const FRAME_BYTES: usize = 64;

/// A swipe of a message.
#[derive(Serialize, ToSchema)]
#[schema(as = Swipe)]
pub struct SwipeView {
    position: i64,
    content: String,
    /// `content` as safe HTML. Null unless it was requested.
    #[schema(value_type = Option<String>)]
    html: Option<Arc<str>>,
    conversation_run_id: Option<RunId>,
}

impl SwipeView {
    fn from_model(it: swipe::Model, renderer: Option<&SwipeRenderer>) -> Self {
        Self {
            position: it.position,
            html: renderer.map(|renderer| renderer.render(&it.content)),
            content: it.content,
            conversation_run_id: it.conversation_run_id,
        }
    }
}

/// Renders the texts of one message, each as if the message showed it.
struct SwipeRenderer {
    markdown: Arc<Markdown>,
    scripts: DisplayScripts,
    message: message::Model,
    author_name: String,
}

impl SwipeRenderer {
    async fn load(app: &App, row: &message::Model, space: &space::Model) -> ApiResult<Self> {
        let services = app.engine.context();
        let (db, cache) = (app.db.reader(), &services.prompt_caches.scripts);
        let of_space = (space.id, ScriptRevisions::from(space));
        let authors = match space.scripts_rev {
            0 => MessageAuthors::default(), // no script needs the name
            _ => message_authors::load(db, [row.space_membership_id]).await?,
        };
        let author_name = authors.names.get(&row.space_membership_id).cloned();
        Ok(Self {
            markdown: services.markdown.clone(),
            scripts: DisplayScripts::load(db, cache, of_space, row.conversation_id).await?,
            message: row.clone(),
            author_name: author_name.unwrap_or_default(),
        })
    }

    fn render(&self, content: &str) -> Arc<str> {
        let shown = ShownText {
            content,
            ..ShownText::of_message(&self.message, &self.author_name)
        };
        self.scripts.render(&self.markdown, shown)
    }
}

/// Lists the swipes of a message by position, from 0.
///
/// A cursor is a position. A page ends before 2 MiB of JSON, but has at least one swipe.
#[utoipa::path(
    get,
    path = "/api/messages/{message_id}/swipes",
    operation_id = "swipes",
    tag = "messages",
    params(
        PageQuery,
        ("html" = inline(Option<bool>), Query, description = "Whether each swipe includes its HTML.")
    ),
    responses((status = 200, body = PageOf<SwipeView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
    page: PageQuery,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (row, at) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    if row.visibility == message::Visibility::Hidden {
        return Err(ApiError::not_found());
    }
    let renderer = match messages::wants_html(&request)? {
        true => Some(Arc::new(SwipeRenderer::load(&app, &row, &at.space).await?)),
        false => None,
    };
    let db = app.db.reader();
    let is_backwards = page.is_backwards();
    let PageKeys { rows, mut has_more } = swipe::load_keys(db, row.id, page).await?;
    let mut shown = SwipePage::new(renderer);
    if rows.is_empty() && swipe::count_by_message(db, &[row.id]).await?.is_empty() {
        if contains_position(page, 0) {
            shown.push_all(&app, vec![unstored_swipe(row)]).await?;
        }
    } else {
        for slice in row_slices::split_into_slices(&rows, row_slices::SLICE_BYTES) {
            let positions = slice.iter().map(|(position, _)| *position);
            let texts = swipe::list_at(db, row.id, positions, is_backwards).await?;
            if !shown.push_all(&app, texts).await? {
                has_more = true;
                break;
            }
        }
    }
    let cursor = shown.last;
    if is_backwards {
        shown.entries.reverse();
    }
    Ok(encoded_page::json_page(shown.entries, has_more, cursor))
}

/// Returns whether a position is between the cursors.
fn contains_position(page: PageQuery, position: i64) -> bool {
    page.after.is_none_or(|it| it < position) && page.before.is_none_or(|it| it > position)
}

/// The swipe of a message that never had a second one.
fn unstored_swipe(row: message::Model) -> swipe::Model {
    swipe::Model {
        id: base::ids::SwipeId(0), // not stored
        message_id: row.id,
        position: 0,
        content: row.content,
        conversation_run_id: row.conversation_run_id,
        metadata: row.metadata,
        token_count: row.token_count,
        edited_at: row.edited_at,
        edited_by: row.edited_by,
    }
}

/// A page that is being built.
struct SwipePage {
    renderer: Option<Arc<SwipeRenderer>>,
    budget: PageBudget,
    entries: Vec<String>,
    /// The position of the last entry.
    last: Option<i64>,
}

impl SwipePage {
    fn new(renderer: Option<Arc<SwipeRenderer>>) -> Self {
        Self {
            renderer,
            budget: PageBudget::new(timeline_page::MAX_BYTES - FRAME_BYTES),
            entries: Vec::new(),
            last: None,
        }
    }

    /// Adds swipes; returns whether all of them fit.
    async fn push_all(&mut self, app: &App, texts: Vec<swipe::Model>) -> ApiResult<bool> {
        let (renderer, mut budget) = (self.renderer.clone(), self.budget);
        let encode = move || -> Result<_, serde_json::Error> {
            let mut encoded = Vec::with_capacity(texts.len());
            for text in texts {
                let position = text.position;
                let mut json =
                    serde_json::to_string(&SwipeView::from_model(text, renderer.as_deref()))?;
                // The JSON stays in memory until a slow client has received it.
                json.shrink_to_fit();
                if !budget.try_add(json.len()) {
                    return Ok((encoded, None));
                }
                encoded.push((position, json));
            }
            Ok((encoded, Some(budget)))
        };
        // Rendering long texts would block a web worker.
        let encoding = app.shutdown.main().spawn_blocking(encode);
        let (encoded, left) = encoding
            .await
            .map_err(ApiError::internal)?
            .map_err(ApiError::internal)?;
        self.last = encoded.last().map(|(at, _)| *at).or(self.last);
        self.entries.extend(encoded.into_iter().map(|(_, it)| it));
        match left {
            Some(left) => self.budget = left,
            None => return Ok(false),
        }
        Ok(true)
    }
}
