//! Endpoint that requests to learn from messages of a conversation now.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use base::ids::{ConversationId, SpaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::conversations::conversation;
use crate::memories::learning::message_learning::MAX_MESSAGES;
use crate::memories::memory_settings::MemorySettings;
use crate::memories::tasks::learning_request;
use crate::memories::tasks::learning_request::RequestedMessages;
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// The messages to learn from, at most 256: those from `from_seq` to `to_seq`. If `from_seq` is missing, the
/// 256 messages up to `to_seq`; if `to_seq` is missing, the 256 messages from `from_seq` on. Without both,
/// all messages that were not learned from; if there are none, the newest 256.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LearnFromMessages)]
pub struct LearnBody {
    #[schema(minimum = 1, value_type = i64)]
    pub conversation_id: ConversationId,
    /// The first message.
    #[schema(minimum = 1)]
    pub from_seq: Option<i64>,
    /// The last message.
    #[schema(minimum = 1)]
    pub to_seq: Option<i64>,
}

/// The messages are being learned from in the background.
#[derive(Serialize, ToSchema)]
pub struct LearningRequested {}

/// Requests to learn from messages of a conversation now. Memories that exist already are not stored
/// twice.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/memories/learn",
    operation_id = "learn_from_messages",
    tag = "memories",
    request_body = LearnBody,
    responses(
        (status = 202, body = LearningRequested),
        (status = 409, description = "`memory_off`: memory or learning is off in this space; \
            `nothing_to_learn`: there are no such messages, or they were forgotten."),
        (status = 422, description = "`invalid_value`.")
    )
)]
pub async fn learn(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<LearnBody>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let body = body.read().await?;
    let requested = parse_messages(body.from_seq, body.to_seq)?;
    let id = body.conversation_id;
    let found = conversation::find_in_space(app.db.reader(), at.space.id, id);
    if found.await?.is_none() {
        let message = "Must be a conversation of this space.";
        return Err(ApiError::invalid_value("conversation_id", message));
    }
    if !MemorySettings::of_space(&at.space.settings).learns() {
        let message = "Learning from messages is turned off in this space.";
        return Err(ApiError::new(409, "memory_off", message));
    }
    match learning_request::request_now(&app.db, id, requested, app.clock.now()).await? {
        true => Ok(HttpResponse::Accepted().json(LearningRequested {})),
        false => {
            let message = "There are no such messages, or they were forgotten.";
            Err(ApiError::new(409, "nothing_to_learn", message))
        }
    }
}

fn parse_messages(from: Option<i64>, to: Option<i64>) -> ApiResult<RequestedMessages> {
    let (from, to) = match (from, to) {
        (None, None) => return Ok(RequestedMessages::Unlearned),
        (Some(from), Some(to)) => (from, to),
        (Some(from), None) => (from, from.saturating_add(MAX_MESSAGES - 1)),
        (None, Some(to)) => (to.saturating_sub(MAX_MESSAGES - 1).max(1), to),
    };
    if from < 1 {
        return Err(ApiError::invalid_value("from_seq", "Must be at least 1."));
    }
    if !(from..=from.saturating_add(MAX_MESSAGES - 1)).contains(&to) {
        let message = format!("Must be at least `from_seq`, for at most {MAX_MESSAGES} messages.");
        return Err(ApiError::invalid_value("to_seq", message));
    }
    Ok(RequestedMessages::Range(from, to))
}

#[cfg(test)]
mod tests {
    use super::parse_messages;
    use crate::memories::tasks::learning_request::RequestedMessages;

    #[test]
    fn an_invalid_range_names_the_wrong_end() {
        let wrong = |from, to| parse_messages(from, to).unwrap_err().param.unwrap();

        assert_eq!(wrong(Some(0), Some(1)), "from_seq");
        assert_eq!(wrong(Some(i64::MIN), None), "from_seq");
        assert_eq!(wrong(None, Some(0)), "to_seq");
        assert_eq!(wrong(None, Some(i64::MIN)), "to_seq");
        assert_eq!(wrong(Some(2), Some(1)), "to_seq");
        assert_eq!(wrong(Some(1), Some(257)), "to_seq");
    }

    #[test]
    fn a_range_has_at_most_256_messages() {
        let range = |from, to| parse_messages(from, to).unwrap();
        let last = i64::MAX;

        assert_eq!(range(None, None), RequestedMessages::Unlearned);
        assert_eq!(range(Some(1), Some(256)), RequestedMessages::Range(1, 256));
        assert_eq!(range(Some(5), None), RequestedMessages::Range(5, 260));
        assert_eq!(range(None, Some(300)), RequestedMessages::Range(45, 300));
        assert_eq!(range(None, Some(3)), RequestedMessages::Range(1, 3));
        assert_eq!(
            range(Some(last), None),
            RequestedMessages::Range(last, last)
        );
    }
}
