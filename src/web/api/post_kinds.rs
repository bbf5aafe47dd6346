//! The kinds of posts besides a person's own text: the text of a narrator, a text in the name of a
//! character, and dice; and the right that each requires.

use agent::tools::dice_roll::{DiceError, DiceNotation};
use base::ids::MembershipId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::runs::scheduling::messages::new_post::PostKind;
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::space_access::ConversationAccess;

/// As what a message is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PostKind)]
pub enum RequestedKind {
    /// The text of a narrator, of role `system`.
    Narrator,
    /// A text in the name of a character, of role `assistant`.
    Character,
    /// Dice that the server rolls, of role `system`.
    Roll,
}

/// Returns the kind of a post with this text.
///
/// # Errors
/// Returns 422 `invalid_value` for a speaker without the kind `character` or the reverse, and for a text
/// that does not name dice.
pub fn parse(
    kind: Option<RequestedKind>,
    speaker: Option<MembershipId>,
    text: &str,
) -> ApiResult<PostKind> {
    match (kind, speaker) {
        (Some(RequestedKind::Character), Some(speaker)) => Ok(PostKind::Character(speaker)),
        (Some(RequestedKind::Character), None) => Err(ApiError::invalid_value(
            "speaker_id",
            "Name the character in whose name it is posted.",
        )),
        (_, Some(_)) => Err(ApiError::invalid_value(
            "speaker_id",
            "Only with `kind` `character`.",
        )),
        (None, None) => Ok(PostKind::Own),
        (Some(RequestedKind::Narrator), None) => Ok(PostKind::Narrator),
        (Some(RequestedKind::Roll), None) => {
            let dice: Result<DiceNotation, DiceError> = text.parse();
            let invalid = |it: DiceError| ApiError::invalid_value("content", it.to_string());
            dice.map(PostKind::Roll).map_err(invalid)
        }
    }
}

/// Requires the right to post this kind.
///
/// # Errors
/// Returns 403 `forbidden`.
pub fn require_right(at: &ConversationAccess, kind: PostKind) -> ApiResult<()> {
    match kind {
        PostKind::Own | PostKind::Roll(_) => Ok(()),
        // A model follows it like an author's note of the conversation.
        PostKind::Narrator => at.require_action(Action::ManageConversation),
        PostKind::Character(_) => at.require_action(Action::EditAnyMessage),
    }
}

/// Requires that a post has nothing that only a person's own text can have.
///
/// # Errors
/// Returns 422 `invalid_value`, naming the field.
pub fn require_plain(has_pictures: bool, is_ooc: bool, has_persona: bool) -> ApiResult<()> {
    let message = "Not with this `kind`.";
    let fields = [
        (has_pictures, "attachment_ids"),
        (is_ooc, "is_ooc"),
        (has_persona, "persona_id"),
    ];
    match fields.iter().find(|(is_given, _)| *is_given) {
        Some((_, field)) => Err(ApiError::invalid_value(field, message)),
        None => Ok(()),
    }
}
