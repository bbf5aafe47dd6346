//! Chooses the persona of a post before its step.

use base::ids::ConversationId;
use sea_orm::ConnectionTrait;

use crate::conversations::timeline;
use crate::personas::persona_choice;
use crate::personas::persona_choice::PersonaChoiceError;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::CommandError;
use crate::runs::scheduling::messages::new_post::NewPost;
use crate::spaces::membership;

/// Returns the post with its persona, and with its text without the prefix that names the persona. The
/// request of a message that exists already is not refused: its persona was chosen when it was posted.
///
/// # Errors
/// Returns `Rejected` with `UnknownPersona` or `BlankMessage`, and `Database` when the database fails.
pub async fn choose(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    author: &membership::Model,
    post: NewPost,
) -> Result<NewPost, EngineError> {
    let Some(user) = author.user_id else {
        return Ok(post);
    };
    let requested = &post.requested;
    let of_user = (user, author.active_persona_id);
    let chosen = persona_choice::choose(
        db,
        of_user,
        requested.persona,
        (&requested.content, !post.attachments.is_empty()),
    )
    .await;
    let refusal = match chosen {
        Ok(chosen) => {
            return Ok(NewPost {
                content: chosen.text,
                persona: chosen.persona,
                ..post
            });
        }
        Err(PersonaChoiceError::Unknown) => CommandError::UnknownPersona,
        Err(PersonaChoiceError::BlankText) => CommandError::BlankMessage,
        Err(PersonaChoiceError::Db(error)) => return Err(error.into()),
    };
    let first = match &post.client_id {
        Some(id) => timeline::find_by_client_id(db, conversation, author.id, id).await?,
        None => None,
    };
    match first {
        Some(_) => Ok(post),
        None => Err(refusal.into()),
    }
}
