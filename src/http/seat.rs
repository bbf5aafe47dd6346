//! In which seat a caller sits: proven once for each request, before anything else is told.
//!
//! **Invariant:** who may not see a space gets the same answer as for one that does not exist.

use crate::app::App;
use crate::conversations::conversation;
use crate::conversations::import_job;
use crate::conversations::message;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::ids::ConversationId;
use crate::ids::MessageId;
use crate::ids::SpaceId;
use crate::spaces::membership;
use crate::spaces::permissions::Act;
use crate::spaces::permissions::Standing;
use crate::spaces::space;
use sea_orm::EntityTrait;
use std::ops::Deref;

/// A caller inside a space.
#[derive(Clone, Debug)]
pub struct InSpace {
    pub space: space::Model,
    /// The caller's own seat; an admin may be inside without one.
    pub seat: Option<membership::Model>,
    pub standing: Standing,
}

/// A caller inside a space, at one of its conversations.
#[derive(Clone, Debug)]
pub struct InConversation {
    pub conversation: conversation::Model,
    pub within: InSpace,
}

impl Deref for InConversation {
    type Target = InSpace;

    fn deref(&self) -> &InSpace {
        &self.within
    }
}

impl InSpace {
    /// Whether the caller may do this.
    ///
    /// # Errors
    /// 403.
    pub fn may(&self, act: Act) -> ApiResult<()> {
        match self.standing.may(act) {
            true => Ok(()),
            false => Err(ApiError::forbidden(
                "Your seat in this space does not allow that.",
            )),
        }
    }

    /// Whether the caller may do this, which changes something.
    ///
    /// # Errors
    /// 403 `forbidden`, 403 `space_archived`.
    pub fn may_write(&self, act: Act) -> ApiResult<()> {
        self.may(act)?;
        match self.space.status {
            space::SpaceStatus::Active => Ok(()),
            space::SpaceStatus::Archived => Err(ApiError::new(
                403,
                "space_archived",
                "This space is archived. Its owner can open it again.",
            )),
        }
    }

    /// The seat from which the caller speaks.
    ///
    /// # Errors
    /// 403 for an admin who has not joined.
    pub fn own_seat(&self) -> ApiResult<&membership::Model> {
        self.seat
            .as_ref()
            .ok_or_else(|| ApiError::forbidden("Join this space to write in it."))
    }

    /// How people here know the caller.
    pub fn display_name(&self, caller: &CurrentUser) -> String {
        let seat = self.seat.as_ref().map(|it| &it.cached_display_name);
        seat.unwrap_or(&caller.user.display_name).clone()
    }

    /// Whether the caller may hide a message, dim it, or show it again.
    ///
    /// # Errors
    /// 403.
    pub fn may_change_message(&self, row: &message::Model) -> ApiResult<()> {
        self.may_write(if self.wrote(row) {
            Act::ChangeOwnMessage
        } else {
            Act::Moderate
        })
    }

    /// Whether the caller may change the text of a message: their own, or an AI's.
    ///
    /// # Errors
    /// 403.
    pub fn may_edit_message(&self, row: &message::Model) -> ApiResult<()> {
        match (self.wrote(row), row.role) {
            (true, _) => self.may_write(Act::ChangeOwnMessage),
            (false, message::MessageRole::Assistant) => self.may_write(Act::EditAiText),
            (false, _) => Err(ApiError::forbidden("Only its author may change this text.")),
        }
    }

    /// Whether the caller may choose which text of a message is shown.
    ///
    /// # Errors
    /// 403.
    pub fn may_switch_swipes(&self, row: &message::Model) -> ApiResult<()> {
        self.may_write(if self.wrote(row) {
            Act::ChangeOwnMessage
        } else {
            Act::SwitchSwipes
        })
    }

    fn wrote(&self, row: &message::Model) -> bool {
        self.seat
            .as_ref()
            .is_some_and(|it| it.id == row.space_membership_id)
    }
}

/// The caller inside a space.
///
/// # Errors
/// 404 when it is not there, or not for the caller to see.
pub async fn in_space(app: &App, caller: &CurrentUser, id: SpaceId) -> ApiResult<InSpace> {
    let db = app.db.reader();
    let space = space::Entity::find_by_id(id).one(db).await?;
    let space = space.filter(|it| !it.is_hidden);
    let space = space.ok_or_else(ApiError::not_found)?;
    let seat = membership::of_user(db, id, caller.id())
        .await?
        .filter(|it| it.status == membership::MembershipStatus::Active);
    // What is being put together is nobody's to see yet.
    if seat.is_none() && caller.is_admin() && import_job::is_hidden(db, id).await? {
        return Err(ApiError::not_found());
    }
    let standing = Standing::of(seat.as_ref(), caller.is_admin());
    Ok(InSpace {
        space,
        seat,
        standing: standing.ok_or_else(ApiError::not_found)?,
    })
}

/// The caller at a conversation.
///
/// # Errors
/// 404 when it is not there, or not for the caller to see.
pub async fn in_conversation(
    app: &App,
    caller: &CurrentUser,
    id: ConversationId,
) -> ApiResult<InConversation> {
    let found = conversation::Entity::find_by_id(id)
        .one(app.db.reader())
        .await?;
    let conversation = found.filter(|it| !it.is_hidden);
    let conversation = conversation.ok_or_else(ApiError::not_found)?;
    let within = in_space(app, caller, conversation.space_id).await?;
    Ok(InConversation {
        conversation,
        within,
    })
}

/// The caller at the conversation of a message.
///
/// # Errors
/// 404 when it is not there, or not for the caller to see.
pub async fn at_message(
    app: &App,
    caller: &CurrentUser,
    id: MessageId,
) -> ApiResult<(message::Model, InConversation)> {
    let found = message::Entity::find_by_id(id).one(app.db.reader()).await?;
    let row = found.ok_or_else(ApiError::not_found)?;
    let at = in_conversation(app, caller, row.conversation_id).await?;
    Ok((row, at))
}
