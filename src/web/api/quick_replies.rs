//! The quick replies of a space: texts and commands that its members post with a button.

use base::message_text;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::web::api::setting_checks::invalid_setting;
use crate::web::error::ApiResult;

const MAX_REPLIES: usize = 20;
const MAX_LABEL_CHARS: usize = 40;
const MAX_TEXT_CHARS: usize = 2_000;

/// A text that a member posts with a button.
#[derive(Deserialize, ToSchema)]
pub struct QuickReply {
    /// The text of the button; not blank.
    #[schema(min_length = 1, max_length = 40)]
    label: String,
    /// What is posted, as if it was typed: a text or a command of the web client; not blank.
    #[schema(min_length = 1, max_length = 2_000)]
    text: String,
}

/// Checks the number and the lengths of quick replies.
///
/// # Errors
/// Returns 422 `invalid_value`, naming the field.
pub fn require_valid(replies: &[QuickReply]) -> ApiResult<()> {
    if replies.len() > MAX_REPLIES {
        let message = format!("A space can have at most {MAX_REPLIES} quick replies.");
        return Err(invalid_setting("quick_replies", message));
    }
    for (at, reply) in replies.iter().enumerate() {
        let fields = [
            ("label", &reply.label, MAX_LABEL_CHARS),
            ("text", &reply.text, MAX_TEXT_CHARS),
        ];
        for (field, value, most) in fields {
            if message_text::is_blank(value) || value.chars().count() > most {
                let message = format!("Must have 1 to {most} characters, and must not be blank.");
                return Err(invalid_setting(
                    &format!("quick_replies.{at}.{field}"),
                    message,
                ));
            }
        }
    }
    Ok(())
}
