//! The endpoint that expands the macros of a text, so that an author can test them.

use actix_web::web::{Data, Json, Path};
use base::ids::{ConversationId, MembershipId, PresetId};
use llm::tokens;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tavern::macros::environment::{InvalidMacro, MacroEnvironment};
use tavern::macros::syntax::unknown_macros;
use utoipa::ToSchema;

use crate::app::App;
use crate::presets::resolve;
use crate::presets::resolve::PresetLayers;
use crate::prompt::macro_values::tester;
use crate::prompt::macro_values::tester::TestedText;
use crate::runs::reading::prompt_preview;
use crate::spaces::permissions::Action;
use crate::web::api::{presets, prompts};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// The maximum length of a text, in characters; that of an entry of a preset.
const MAX_TEXT_CHARS: usize = 100_000;

/// A text with macros.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MacroTest)]
pub struct ExpandText {
    #[schema(max_length = 100_000)]
    pub text: String,
    /// The conversation whose values are inserted. Without one, `{{user}}` is the caller, `{{char}}` is
    /// `Character`, and most other values are empty.
    pub conversation_id: Option<ConversationId>,
    /// The member that speaks; the likely next speaker if it is missing.
    pub speaker_id: Option<MembershipId>,
}

/// The text with its macros expanded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MacroTestResult)]
pub struct ExpandedText {
    pub text: String,
    /// The names of the macros that are left as they are, each once.
    pub unknown: Vec<String>,
}

/// Expands a text as an entry of this preset would be expanded. Nothing is stored.
///
/// In a conversation this requires the permission to see its prompts.
#[utoipa::path(
    post,
    path = "/api/presets/{preset_id}/expand",
    tag = "presets",
    request_body = ExpandText,
    responses(
        (status = 200, body = ExpandedText),
        (status = 403, description = "`forbidden`; `card_not_shared`: the result contains text of a card that the caller may not read."),
        (status = 422, description = "`invalid_value`; `no_speaker`; `invalid_macro`.")
    )
)]
pub async fn expand(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PresetId>,
    body: JsonBody<ExpandText>,
) -> ApiResult<Json<ExpandedText>> {
    let preset = presets::find_visible(&app, &caller, id.into_inner()).await?;
    let body = body.read().await?;
    if body.text.chars().count() > MAX_TEXT_CHARS {
        let message = format!("Must have at most {MAX_TEXT_CHARS} characters.");
        return Err(ApiError::invalid_value("text", message));
    }
    let unknown = unknown_macros::find(&body.text).into_iter().collect();
    let text = match (body.conversation_id, body.speaker_id) {
        (Some(conversation), speaker) => {
            expand_in(&app, &caller, preset.id, conversation, speaker, body.text).await?
        }
        (None, None) => {
            let environment = MacroEnvironment {
                now: Some(app.clock.now()),
                generation_type: "normal",
                ..MacroEnvironment::default()
            };
            let user = &caller.user.display_name;
            tester::expand_alone(&body.text, user, &environment).map_err(to_api_error)?
        }
        (None, Some(_)) => {
            let message = "Requires a conversation.";
            return Err(ApiError::invalid_value("speaker_id", message));
        }
    };
    Ok(Json(ExpandedText { text, unknown }))
}

/// Expands a text with the values of a conversation.
async fn expand_in(
    app: &App,
    caller: &CurrentUser,
    preset: PresetId,
    conversation: ConversationId,
    speaker: Option<MembershipId>,
    text: String,
) -> ApiResult<String> {
    let at = space_access::load_conversation_access(app, caller, conversation).await?;
    at.require_action(Action::ManageConversation)?;
    let speaker = prompts::find_speaker(app, &at, speaker).await?;
    let services = app.engine.context();
    let context = prompt_preview::load_context(services, conversation, (speaker, at.viewer()));
    let mut context = context.await?.ok_or_else(prompts::no_speaker)?;
    let layers = PresetLayers {
        membership: &Value::Null,
        membership_preset: Some(preset),
        space: &Value::Null,
        provider: &Value::Null,
    };
    context.preset = resolve::resolve(app.db.reader(), layers).await?;
    // Lorebooks are scanned for outlets, which is CPU-bound.
    let main = services.shutdown.main();
    let expanding = main.spawn_blocking(move || tester::expand_in(&context, &text, &tokens::count));
    let expanded = expanding.await.map_err(ApiError::internal)?;
    let TestedText {
        text,
        card_use,
        cards,
    } = expanded.map_err(to_api_error)?;
    let hidden = prompts::hidden_cards(app, caller, at.space.id).await?;
    match hidden.hides(card_use, Some(&cards)) {
        true => {
            let message = "The result contains text of a card that you may not read.";
            Err(ApiError::new(403, "card_not_shared", message))
        }
        false => Ok(text),
    }
}

fn to_api_error(error: InvalidMacro) -> ApiError {
    ApiError::new(422, "invalid_macro", error.to_string())
}
