//! Endpoint that starts the generation of copilot candidates: suggestions for the caller's next
//! message, which only the caller's sockets receive.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use base::ids::{ConversationId, GenerationId, MembershipId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::runs::execution::candidates;
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

const MAX_INSTRUCTION_CHARS: usize = 2_000;

/// A request for reply suggestions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CandidatesWanted)]
pub struct CreateCandidates {
    /// The caller's own membership.
    membership_id: MembershipId,
    #[schema(minimum = 1, maximum = 4)]
    count: i64,
    /// What the suggestions should say.
    #[schema(max_length = 2_000)]
    instruction: Option<String>,
}

/// Suggestions that are being generated.
#[derive(Serialize, ToSchema)]
#[schema(as = CandidatesBegun)]
pub struct CandidatesStarted {
    /// The id in the events `copilot_candidate` and `copilot_candidate_error`.
    generation_id: GenerationId,
}

/// Generates suggestions for the caller's next message.
///
/// The suggestions are sent only to the caller's sockets. A newer request for the same membership
/// replaces the older one.
#[utoipa::path(
    post,
    path = "/api/conversations/{conversation_id}/copilot_candidates",
    tag = "conversations",
    request_body = CreateCandidates,
    responses(
        (status = 202, body = CandidatesStarted),
        (status = 422, description = "`invalid_value`."),
        (status = 429, description = "`rate_limited`: too many messages in a minute; each suggestion counts as one.")
    )
)]
pub async fn suggest(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    body: JsonBody<CreateCandidates>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    at.require_action(Action::Post)?;
    let own = at.own_membership()?;
    let body = body.read().await?;
    if body.membership_id != own.id {
        return Err(ApiError::forbidden("This is not your own membership."));
    }
    if !(1..=4).contains(&body.count) {
        return Err(ApiError::invalid_value("count", "Must be between 1 and 4."));
    }
    let instruction = body
        .instruction
        .map(parse_instruction)
        .transpose()?
        .flatten();
    charge_posts(&app, caller.id(), body.count).await?;
    let generation_id = app.engine.suggest_candidates(candidates::CandidateRequest {
        conversation: at.conversation.id,
        space: at.space.id,
        membership: own.id,
        user: caller.id(),
        count: body.count,
        instruction,
    });
    Ok(HttpResponse::Accepted().json(CandidatesStarted { generation_id }))
}

/// Charges one post for each suggestion; charges all of them or none.
async fn charge_posts(app: &App, user: UserId, count: i64) -> ApiResult<()> {
    let posts = &app.limits.posts;
    let mut taken = Vec::new();
    for _ in 0..count {
        match posts.acquire(user).await {
            Ok(place) => taken.push(place),
            Err(wait) => {
                taken.into_iter().for_each(|it| posts.refund(it));
                let message = "Too many messages. Wait, then try again.";
                return Err(ApiError::rate_limited(wait.0, message));
            }
        }
    }
    Ok(())
}

/// Returns the instruction of a user for a text; `None` if it is blank.
///
/// # Errors
/// Returns 422 `invalid_value` when it is too long.
pub fn parse_instruction(text: String) -> ApiResult<Option<String>> {
    let text = text.trim();
    match text.chars().count() <= MAX_INSTRUCTION_CHARS {
        true => Ok(Some(text.to_owned()).filter(|it| !it.is_empty())),
        false => Err(ApiError::invalid_value(
            "instruction",
            format!("Must have at most {MAX_INSTRUCTION_CHARS} characters."),
        )),
    }
}
