//! Loads the caller's access to a space, or to the space of a conversation or message, and checks
//! whether it allows an action.
//!
//! **Invariant:** callers who may not see a space get the same response as if it did not exist.

use std::ops::Deref;

use base::ids::{ConversationId, MessageId, SpaceId};

use crate::app::App;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::chats::import_job;
use crate::conversations::{conversation, message};
use crate::spaces::permissions::{Access, Action};
use crate::spaces::{membership, space};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;

/// A caller with access to a space.
#[derive(Clone, Debug)]
pub struct SpaceAccess {
    pub space: space::Model,
    /// The caller's own membership; an admin may have access without one.
    pub membership: Option<membership::Model>,
    pub access: Access,
}

/// A caller with access to a conversation of a space.
#[derive(Clone, Debug)]
pub struct ConversationAccess {
    pub conversation: conversation::Model,
    pub space_access: SpaceAccess,
}

impl Deref for ConversationAccess {
    type Target = SpaceAccess;

    fn deref(&self) -> &SpaceAccess {
        &self.space_access
    }
}

impl SpaceAccess {
    /// Checks that the caller may do this.
    ///
    /// # Errors
    /// Returns 403 `forbidden`.
    pub fn require_action(&self, action: Action) -> ApiResult<()> {
        match self.access.can(action) {
            true => Ok(()),
            false => Err(ApiError::forbidden(
                "Your role in this space does not allow this.",
            )),
        }
    }

    /// Checks that the caller may do this, which changes data.
    ///
    /// # Errors
    /// Returns 403 `forbidden`, or 403 `space_archived`.
    pub fn require_write(&self, action: Action) -> ApiResult<()> {
        self.require_action(action)?;
        match self.space.status {
            space::SpaceStatus::Active => Ok(()),
            space::SpaceStatus::Archived => Err(ApiError::new(
                403,
                "space_archived",
                "This space is archived. Its owner can reactivate it.",
            )),
        }
    }

    /// Returns the membership under which the caller writes.
    ///
    /// # Errors
    /// Returns 403 for an admin who has not joined.
    pub fn own_membership(&self) -> ApiResult<&membership::Model> {
        self.membership
            .as_ref()
            .ok_or_else(|| ApiError::forbidden("Join this space to write in it."))
    }

    /// Returns for whom messages are read: the caller's membership. An admin is no exception.
    pub fn viewer(&self) -> Viewer {
        self.membership.as_ref().map(|it| it.id).into()
    }

    /// Returns the caller's display name in this space.
    pub fn display_name(&self, caller: &CurrentUser) -> String {
        let membership_name = self.membership.as_ref().map(|it| &it.cached_display_name);
        membership_name.unwrap_or(&caller.user.display_name).clone()
    }

    /// Checks that the caller may hide a message, exclude it from prompts, or show it again.
    ///
    /// # Errors
    /// Returns 403 `forbidden`, or 403 `space_archived`.
    pub fn require_change_message(&self, row: &message::Model) -> ApiResult<()> {
        self.require_write(if self.is_author(row) {
            Action::ChangeOwnMessage
        } else {
            Action::Moderate
        })
    }

    /// Checks that the caller may edit a message: their own, or any as a moderator.
    ///
    /// # Errors
    /// Returns 403 `forbidden`, or 403 `space_archived`.
    pub fn require_edit_message(&self, row: &message::Model) -> ApiResult<()> {
        self.require_write(if self.is_author(row) {
            Action::ChangeOwnMessage
        } else {
            Action::EditAnyMessage
        })
    }

    /// Checks that the caller may choose which swipe of a message is shown.
    ///
    /// # Errors
    /// Returns 403 `forbidden`, or 403 `space_archived`.
    pub fn require_select_swipe(&self, row: &message::Model) -> ApiResult<()> {
        self.require_write(if self.is_author(row) {
            Action::ChangeOwnMessage
        } else {
            Action::SwitchSwipes
        })
    }

    fn is_author(&self, row: &message::Model) -> bool {
        self.membership
            .as_ref()
            .is_some_and(|it| it.id == row.space_membership_id)
    }
}

/// Loads the caller's access to a space.
///
/// # Errors
/// Returns 404 if it does not exist, or the caller may not see it.
pub async fn load_space_access(
    app: &App,
    caller: &CurrentUser,
    id: SpaceId,
) -> ApiResult<SpaceAccess> {
    let space = space::find_visible(app.db.reader(), id).await?;
    let space = space.ok_or_else(ApiError::not_found)?;
    access_in(app, caller, space).await
}

/// Loads the caller's access to a space that is not hidden.
async fn access_in(app: &App, caller: &CurrentUser, space: space::Model) -> ApiResult<SpaceAccess> {
    let db = app.db.reader();
    let membership = membership::find_for_user(db, space.id, caller.id())
        .await?
        .filter(|it| it.status == membership::MembershipStatus::Active);
    // An unfinished import is hidden from everyone.
    if membership.is_none() && caller.is_admin() && import_job::is_hidden(db, space.id).await? {
        return Err(ApiError::not_found());
    }
    let access = Access::for_member(membership.as_ref(), caller.is_admin());
    Ok(SpaceAccess {
        space,
        membership,
        access: access.ok_or_else(ApiError::not_found)?,
    })
}

/// Loads the caller's access to a conversation.
///
/// # Errors
/// Returns 404 if it does not exist, or the caller may not see it.
pub async fn load_conversation_access(
    app: &App,
    caller: &CurrentUser,
    id: ConversationId,
) -> ApiResult<ConversationAccess> {
    let found = conversation::find_with_space(app.db.reader(), id).await?;
    let found = found.filter(|(conversation, space)| !conversation.is_hidden && !space.is_hidden);
    let (conversation, space) = found.ok_or_else(ApiError::not_found)?;
    Ok(ConversationAccess {
        conversation,
        space_access: access_in(app, caller, space).await?,
    })
}

/// Loads the caller's access to the conversation of a message.
///
/// # Errors
/// Returns 404 if it does not exist, or the caller may not see it: its space, or a whisper.
pub async fn load_message_access(
    app: &App,
    caller: &CurrentUser,
    id: MessageId,
) -> ApiResult<(message::Model, ConversationAccess)> {
    let found = message::find(app.db.reader(), id).await?;
    let row = found.ok_or_else(ApiError::not_found)?;
    let conversation_access = load_conversation_access(app, caller, row.conversation_id).await?;
    match conversation_access.viewer().sees(row.audience.as_ref()) {
        true => Ok((row, conversation_access)),
        false => Err(ApiError::not_found()),
    }
}
