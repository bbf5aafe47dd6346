//! Checks whether a caller may write a memory, and whether what it names is in its space.

use base::ids::MembershipId;

use crate::app::App;
use crate::conversations::conversation;
use crate::memories::memory_deletion::DeletionScope;
use crate::spaces::membership;
use crate::spaces::membership::MembershipKind;
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::space_access::SpaceAccess;

/// Checks that the caller may write or change a memory about this member: a guest only about
/// themselves.
///
/// # Errors
/// Returns 403.
pub fn require_change(at: &SpaceAccess, about: Option<MembershipId>) -> ApiResult<()> {
    let own = at.membership.as_ref().map(|it| it.id);
    match about.is_some() && about == own {
        true => at.require_write(Action::Read),
        false => at.require_write(Action::ManageConversation),
    }
}

/// Checks that the caller may write a memory of this owner.
///
/// # Errors
/// Returns 422 `invalid_value`.
pub async fn require_owner(
    app: &App,
    at: &SpaceAccess,
    owner: Option<MembershipId>,
) -> ApiResult<()> {
    let Some(id) = owner else {
        return Ok(());
    };
    let found = membership::find(app.db.reader(), id).await?;
    let found = found.filter(|it| it.space_id == at.space.id);
    let is_own = at.membership.as_ref().is_some_and(|it| it.id == id);
    match found.is_some_and(|it| is_own || it.kind == MembershipKind::Character) {
        true => Ok(()),
        false => {
            let message = "Must be a character of this space, or yourself.";
            Err(ApiError::invalid_value("membership_id", message))
        }
    }
}

/// Checks that the member or conversation to forget is one of the space.
///
/// # Errors
/// Returns 422 `invalid_value`.
pub async fn require_scope(app: &App, at: &SpaceAccess, scope: DeletionScope) -> ApiResult<()> {
    match scope {
        DeletionScope::Member(id) => require_member(app, at, "about_membership_id", Some(id)).await,
        DeletionScope::Conversation(id) => {
            let db = app.db.reader();
            let found = conversation::find_in_space(db, at.space.id, id).await?;
            let message = "Must be a conversation of this space.";
            found
                .map(drop)
                .ok_or_else(|| ApiError::invalid_value("conversation_id", message))
        }
        DeletionScope::Memory(_) | DeletionScope::All => Ok(()),
    }
}

/// Checks that a membership is one of the space.
///
/// # Errors
/// Returns 422 `invalid_value`.
pub async fn require_member(
    app: &App,
    at: &SpaceAccess,
    param: &'static str,
    id: Option<MembershipId>,
) -> ApiResult<()> {
    let Some(id) = id else {
        return Ok(());
    };
    let found = membership::find(app.db.reader(), id).await?;
    match found.is_some_and(|it| it.space_id == at.space.id) {
        true => Ok(()),
        false => Err(ApiError::invalid_value(
            param,
            "Must be a member of this space.",
        )),
    }
}
