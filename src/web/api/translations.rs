//! The endpoint that returns a message in the language of its reader.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{Data, Path, Query};
use agent::permits::fair_permits::PermitOwner;
use base::ids::MessageId;
use base::language_tag::LanguageTag;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::conversations::message;
use crate::conversations::translations::message_translation::TranslationKey;
use crate::conversations::translations::translation_events::TranslationView;
use crate::conversations::translations::translation_model;
use crate::conversations::translations::translation_model::TranslationSource;
use crate::conversations::translations::translation_tasks::{
    TranslationFailure, TranslationOutcome,
};
use crate::spaces::permissions::Action;
use crate::web::api::language_input;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;

/// How long a request waits for a translation, so that a quick one needs no event.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Into which language to translate.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TranslationRequest {
    /// A language tag (BCP 47); default: the language of the caller.
    #[param(inline, value_type = Option<LanguageTag>)]
    pub language: Option<String>,
}

/// A translation that is being made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PendingTranslation)]
pub struct PendingView {
    message_id: MessageId,
    /// The version of the message that is translated.
    version: i64,
    language: String,
}

/// Returns a message in translation.
///
/// If the translation does not exist, it is made once for everyone. If it is not ready in a moment, the
/// response is 202, and the caller receives the event `message_translated` or `translation_failed`. An archived
/// space returns the translations that exist.
#[utoipa::path(
    get,
    path = "/api/messages/{message_id}/translation",
    operation_id = "translation",
    tag = "messages",
    params(TranslationRequest),
    responses(
        (status = 200, body = TranslationView),
        (status = 202, description = "It is being made; an event follows.", body = PendingView),
        (status = 403, description = "`space_archived`; `token_limit_exceeded`: the space has used up its tokens."),
        (status = 404, description = "`not_found`; `no_translation_provider`: the space has no provider that translates."),
        (status = 409, description = "`message_changed`: the message was changed in the meantime."),
        (status = 422, description = "`invalid_value`: no language tag."),
        (status = 429, description = "`rate_limited`: too many translations in a minute."),
        (status = 502, description = "`upstream_error`: the model has not translated it. The next request tries again."),
        (status = 503, description = "`unavailable`: the server stops or its database fails.")
    )
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MessageId>,
    query: Query<TranslationRequest>,
) -> ApiResult<HttpResponse> {
    let (row, at) = space_access::load_message_access(&app, &caller, id.into_inner()).await?;
    if row.visibility == message::Visibility::Hidden {
        return Err(ApiError::not_found());
    }
    let language = match &query.language {
        Some(text) => Some(language_input::parse("language", text)?),
        None => caller.user.reading_language(),
    };
    let missing = || ApiError::invalid_value("language", "Choose the language in which you read.");
    let key = TranslationKey {
        message: row.id,
        version: row.version,
        language: language.ok_or_else(missing)?,
    };
    let translations = &app.engine.context().translations;
    if let Some(stored) = translations.find(&key).await? {
        return Ok(HttpResponse::Ok().json(stored));
    }
    let provider = translation_model::find_provider(app.db.reader(), &at.space).await?;
    let provider = provider.ok_or_else(no_translation_provider)?;
    at.require_write(Action::Read)?;
    require_rate(&app, &caller).await?;
    let source = TranslationSource {
        text: row.content,
        language: key.language.clone(),
        space: at.space.id,
        provider,
        owner: PermitOwner::User(caller.id()),
    };
    let mut pending = translations.start(key.clone(), source);
    let ended = match pending.wait(MAX_WAIT).await {
        None => pending.announce_to(caller.id()),
        ended => ended,
    };
    match ended {
        Some(outcome) => answer(outcome),
        None => Ok(HttpResponse::Accepted().json(PendingView {
            message_id: key.message,
            version: key.version,
            language: key.language.to_string(),
        })),
    }
}

fn answer(outcome: TranslationOutcome) -> ApiResult<HttpResponse> {
    let translation = outcome?;
    Ok(HttpResponse::Ok().json(translation))
}

async fn require_rate(app: &App, caller: &CurrentUser) -> ApiResult<()> {
    let permit = app.limits.translations.acquire(caller.id()).await;
    let message = "Too many translations. Wait, then try again.";
    permit
        .map(drop)
        .map_err(|wait| ApiError::rate_limited(wait.0, message))
}

fn no_translation_provider() -> ApiError {
    let message = "This space has no provider that translates. Its owner can choose one.";
    ApiError::new(404, "no_translation_provider", message)
}

impl From<TranslationFailure> for ApiError {
    fn from(failure: TranslationFailure) -> Self {
        let code = failure.code();
        match failure {
            TranslationFailure::ModelFailed => Self::new(
                502,
                code,
                "The model has not translated this message. Try again.",
            ),
            TranslationFailure::TokenLimitReached => Self::new(
                403,
                code,
                "This space has used up its token limit. Its owner can raise it.",
            ),
            TranslationFailure::MessageChanged => {
                Self::conflict(code, "The message was changed in the meantime. Try again.")
            }
            TranslationFailure::Unavailable => {
                Self::new(503, code, "The translation was interrupted. Try again.")
            }
        }
    }
}
