//! Validates the copilot fields of a membership change (mode, remaining steps, conversation), and
//! sets those that follow from the mode.

use base::ids::ConversationId;

use crate::app::App;
use crate::conversations::{conversation, root_conversation};
use crate::spaces::membership;
use crate::spaces::membership::{CopilotMode, MembershipKind};
use crate::spaces::membership_update::MembershipUpdate;
use crate::spaces::space::ReplyOrder;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::space_access::SpaceAccess;

/// Validates the copilot fields of `change` and fills in the omitted ones.
///
/// # Errors
/// Returns 422 with the invalid field.
pub async fn validate(
    app: &App,
    at: &SpaceAccess,
    target: &membership::Model,
    change: &mut MembershipUpdate,
) -> ApiResult<()> {
    let steps = change.copilot_remaining_steps.flatten();
    if steps.is_some_and(|it| !(1..=10).contains(&it)) {
        return Err(invalid_steps("Must be between 1 and 10."));
    }
    if let Some(id) = change.copilot_conversation_id.flatten() {
        require_in_space(app, at, id).await?;
    }
    match change.copilot_mode.unwrap_or(target.copilot_mode) {
        CopilotMode::Full => validate_enabled(app, at, target, change).await,
        CopilotMode::None if steps.is_some() => {
            Err(invalid_steps("Steps require an active copilot."))
        }
        CopilotMode::None => {
            if change.copilot_mode.is_some() {
                change.copilot_remaining_steps = Some(None);
                change.copilot_conversation_id = Some(None);
            }
            Ok(())
        }
    }
}

async fn validate_enabled(
    app: &App,
    at: &SpaceAccess,
    target: &membership::Model,
    change: &mut MembershipUpdate,
) -> ApiResult<()> {
    let refused = |message: &str| Err(ApiError::invalid_value("copilot_mode", message));
    let turns_on = change.copilot_mode.is_some();
    if target.kind == MembershipKind::Character {
        return refused("A character cannot have a copilot.");
    }
    if turns_on && at.space.reply_order == ReplyOrder::Manual {
        return refused("The manual reply order triggers no replies. Choose another one first.");
    }
    let was_on = target.copilot_mode == CopilotMode::Full;
    let steps = change.copilot_remaining_steps;
    match steps {
        Some(Some(_)) => {}
        None if was_on => {}
        _ => return Err(invalid_steps("The number of steps, 1 to 10, is required.")),
    }
    let conversation = change.copilot_conversation_id;
    if conversation == Some(None) || (conversation.is_none() && !was_on) {
        let root = root_conversation::find_for_space(app.db.reader(), at.space.id).await?;
        change.copilot_conversation_id = Some(root);
    }
    Ok(())
}

async fn require_in_space(app: &App, at: &SpaceAccess, id: ConversationId) -> ApiResult<()> {
    match conversation::find_in_space(app.db.reader(), at.space.id, id).await? {
        Some(_) => Ok(()),
        None => Err(ApiError::invalid_value(
            "copilot_conversation_id",
            "This space has no such conversation.",
        )),
    }
}

fn invalid_steps(message: &str) -> ApiError {
    ApiError::invalid_value("copilot_remaining_steps", message)
}
