//! Endpoints that preview the next prompt of a conversation and return the prompt of a run, both
//! without the text of cards that the caller may not read.

use actix_web::web::{Data, Json, Path, Query};
use base::ids::{CharacterId, ConversationId, MembershipId, RunId, SpaceId};
use llm::compatibility::role_handling::RoleHandling;
use llm::request::Message;
use serde::{Deserialize, Serialize};
use tavern::import_warning::ImportWarning;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::prompt::blocks::{BlockPicture, PromptBlock};
use crate::prompt::lore::LoreReport;
use crate::prompt::record::hidden_cards::HiddenCards;
use crate::prompt::record::prompt_prefix::PromptPrefix;
use crate::prompt::record::sent_prompt::SentPrompt;
use crate::prompt::record::stop_strings::{RecordedStops, StopStrings};
use crate::prompt::record::{prompt_prefix, sent_prompt_loader};
use crate::prompt::text_completion::text_prompt;
use crate::prompt::text_completion::text_prompt::TextRecord;
use crate::prompt::{blocks, lore};
use crate::providers::role_handling;
use crate::regex_scripts::script_report::AppliedScript;
use crate::runs::reading::prompt_preview;
use crate::runs::store::run;
use crate::spaces::permissions::Action;
use crate::spaces::{card_rights, membership};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;
use crate::web::extract::space_access::ConversationAccess;

/// The speaker whose prompt is shown.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PreviewRequest {
    /// Defaults to the likely next speaker.
    #[param(inline)]
    pub speaker_id: Option<MembershipId>,
}

/// A prompt as the model receives it.
#[derive(Serialize, ToSchema)]
#[schema(as = Prompt)]
pub struct PromptView {
    pub model: String,
    /// The messages sent to the model, oldest first.
    pub messages: Vec<Message>,
    /// All blocks in order, including dropped ones.
    pub blocks: Vec<PromptBlock>,
    /// The activated lorebook entries, with reasons.
    pub lore: Vec<lore::ReportedEntry>,
    /// Entries that were activated but exceeded the budget.
    pub lore_dropped: Vec<lore::ReportedEntry>,
    /// Problems of the lorebooks and of the templates, as sentences.
    pub warnings: Vec<String>,
    /// The same warnings, in the same order, as codes. Empty for runs that were stored before codes
    /// existed.
    pub warnings_coded: Vec<ImportWarning>,
    /// What the regex scripts did to the messages and the lore that were sent. The prompt of a run shows
    /// messages without these changes.
    pub scripts: Vec<AppliedScript>,
    /// The pictures of all messages, without their bytes.
    pub pictures: Vec<BlockPicture>,
    /// The instruct template of a text completion; null: the prompt is sent as messages.
    pub template: Option<String>,
    /// The text of a text completion; null also if a part of it is withheld.
    pub text: Option<String>,
    /// How the roles of the messages are arranged for the model: `native`, `merge_consecutive`,
    /// `no_system_after_first` or `strict_alternation`; null: the API accepts only one arrangement, or the
    /// prompt is one text.
    pub role_handling: Option<RoleHandling>,
    /// The texts that end the reply. Empty if they are withheld.
    pub stop: StopStrings,
    pub total_tokens: i64,
    pub limit_tokens: i64,
    /// The number of loaded history messages that did not fit.
    pub dropped_messages: usize,
    /// How much of it equals the beginning of the previous prompt of this conversation and model, which a
    /// provider with a prompt cache does not process again; null if no such prompt is stored.
    pub cache: Option<PromptPrefix>,
}

/// Previews the next prompt. Nothing is stored.
///
/// The text of a card that the caller may not read is omitted; its blocks have `withheld: true`. Whispers
/// that the caller did not hear are absent, and so is what comes from them.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/prompt",
    tag = "conversations",
    params(PreviewRequest),
    responses(
        (status = 200, body = PromptView),
        (status = 403),
        (status = 422, description = "`no_speaker`; `context_overflow`; `invalid_macro`.")
    )
)]
pub async fn preview(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    query: Query<PreviewRequest>,
) -> ApiResult<Json<PromptView>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_action(Action::ManageConversation)?;
    let id = at.conversation.id;
    let speaker = find_speaker(&app, &at, query.speaker_id).await?;
    let reader = at.viewer();
    let shown = prompt_preview::load(app.engine.context(), id, (speaker, reader), None).await?;
    let (provider, built) = shown.ok_or_else(no_speaker)?;
    let built = built.map_err(|error| ApiError::new(422, error.code(), error.to_string()))?;
    let max_stops = app.models.create(&provider);
    let max_stops = max_stops.map_or(usize::MAX, |it| it.max_stops());
    let record = SentPrompt::from_built(&provider.model, &built, max_stops);
    let cache = prompt_prefix::load(app.db.reader(), id, None, &record).await?;
    let hidden = hidden_cards(&app, &caller, at.space.id).await?;
    let (mut blocks, mut lore, mut scripts) = (built.blocks, built.lore, built.scripts);
    hidden.withhold_scripts(&mut scripts, Some(&built.cards));
    hidden.withhold(&mut blocks, &mut lore, Some(&built.cards));
    let figures = PromptTotals {
        total_tokens: built.total_tokens,
        limit_tokens: built.limit_tokens,
        dropped_messages: built.dropped_messages,
        cache,
        scripts,
    };
    let details = TextDetails {
        role_handling: role_handling::of_provider(&provider, built.text.is_some()),
        text: built.text.map(|it| it.record),
        stop: RecordedStops {
            stops: StopStrings::divide(&built.preset.stop, max_stops),
            card_use: built.stop_card_use,
        },
    };
    let details = details.withheld_by(&hidden, Some(&built.cards));
    Ok(Json(prompt_view(
        provider.model,
        blocks,
        lore,
        figures,
        details,
    )))
}

/// Returns the cards of a space that the caller may not read.
///
/// # Errors
/// Returns 500 when a query fails.
pub async fn hidden_cards(
    app: &App,
    caller: &CurrentUser,
    space: SpaceId,
) -> ApiResult<HiddenCards> {
    if caller.is_admin() {
        return Ok(HiddenCards::default());
    }
    let db = app.db.reader();
    let memberships = membership::list_for_space(db, space).await?;
    let ids = memberships.iter().filter_map(|it| it.character_id);
    let hidden = card_rights::list_hidden_cards(db, caller.id(), ids).await?;
    Ok(HiddenCards::new(hidden))
}

/// Returns the prompt of a run. It is kept for the newest runs of a conversation; its history shows
/// the messages as they are now, without whispers that the caller did not hear and what comes from them.
#[utoipa::path(
    get,
    path = "/api/runs/{run_id}/prompt",
    operation_id = "sent",
    tag = "runs",
    responses(
        (status = 200, body = PromptView),
        (status = 403),
        (status = 404, description = "No prompt is stored, or the run is private to others.")
    )
)]
pub async fn show_sent(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<RunId>,
) -> ApiResult<Json<PromptView>> {
    let db = app.db.reader();
    let run = run::find(db, id.into_inner()).await?;
    let run = run.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_conversation_access(&app, &caller, run.conversation_id).await?;
    if !at.viewer().sees(run.audience.as_ref()) {
        return Err(ApiError::not_found());
    }
    at.require_action(Action::ManageConversation)?;
    let kept = sent_prompt_loader::load_for_run(db, at.space.id, run.id, at.viewer()).await?;
    let (record, texts) = kept.ok_or_else(ApiError::not_found)?;
    let hidden = hidden_cards(&app, &caller, at.space.id).await?;
    let (model, mut lore) = (record.model.clone(), record.lore.clone());
    let entered = record.cards.clone();
    let mut scripts = record.scripts.clone();
    hidden.withhold_scripts(&mut scripts, entered.as_deref());
    let figures = PromptTotals {
        total_tokens: record.total_tokens,
        limit_tokens: record.limit_tokens,
        dropped_messages: record.dropped_messages,
        cache: prompt_prefix::load(db, at.conversation.id, Some(run.run_seq), &record).await?,
        scripts,
    };
    let details = TextDetails {
        role_handling: record.role_handling,
        text: record.text.clone(),
        stop: record.stop.clone(),
    };
    let details = details.withheld_by(&hidden, entered.as_deref());
    let mut blocks = record.into_blocks(&texts);
    if run
        .debug
        .prompt
        .as_ref()
        .is_some_and(|it| it.pictures_refused)
    {
        let pictures = blocks.iter_mut().flat_map(|it| &mut it.pictures);
        pictures.for_each(|it| it.sent = false);
    }
    hidden.withhold(&mut blocks, &mut lore, entered.as_deref());
    Ok(Json(prompt_view(model, blocks, lore, figures, details)))
}

/// What is shown of the text and of the end of a reply.
struct TextDetails {
    role_handling: Option<RoleHandling>,
    text: Option<TextRecord>,
    stop: RecordedStops,
}

impl TextDetails {
    /// Removes what comes from cards that the user may not read.
    fn withheld_by(mut self, hidden: &HiddenCards, entered: Option<&[CharacterId]>) -> Self {
        if let Some(text) = &mut self.text
            && hidden.hides(text.card_use, entered)
        {
            text.layout = None;
        }
        if hidden.hides(self.stop.card_use, entered) {
            self.stop = RecordedStops::default();
        }
        self
    }
}

struct PromptTotals {
    total_tokens: i64,
    limit_tokens: i64,
    dropped_messages: usize,
    cache: Option<PromptPrefix>,
    scripts: Vec<AppliedScript>,
}

fn prompt_view(
    model: String,
    blocks: Vec<PromptBlock>,
    lore: LoreReport,
    figures: PromptTotals,
    details: TextDetails,
) -> PromptView {
    let text = details.text.as_ref();
    PromptView {
        model,
        template: text.map(|it| it.template.clone()),
        text: text.and_then(|it| text_prompt::shown_text(it, &blocks)),
        role_handling: details.role_handling,
        stop: details.stop.stops,
        messages: blocks::to_messages(&blocks),
        pictures: blocks
            .iter()
            .filter(|it| !it.dropped)
            .flat_map(|it| it.pictures.clone())
            .collect(),
        blocks,
        lore: lore.fired,
        lore_dropped: lore.dropped,
        warnings: lore.warnings,
        warnings_coded: lore.warnings_coded,
        total_tokens: figures.total_tokens,
        limit_tokens: figures.limit_tokens,
        dropped_messages: figures.dropped_messages,
        cache: figures.cache,
        scripts: figures.scripts,
    }
}

/// Returns the member whose prompt is built: the requested one, or the likely next speaker.
///
/// # Errors
/// Returns 422 `no_speaker` if nobody can speak, and 500 if a query fails.
pub async fn find_speaker(
    app: &App,
    at: &ConversationAccess,
    requested: Option<MembershipId>,
) -> ApiResult<MembershipId> {
    if let Some(speaker) = requested {
        return Ok(speaker);
    }
    let likely = app.engine.likely_speaker(at.conversation.id, at.viewer());
    likely.await?.ok_or_else(no_speaker)
}

/// Returns the error for a conversation in which nobody can speak.
pub fn no_speaker() -> ApiError {
    ApiError::new(422, "no_speaker", "No member here can use a model.").with_param("speaker_id")
}
