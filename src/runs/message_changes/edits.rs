//! The operations of the engine that change the text of a message, its shown swipe, its visibility and its
//! marks.

use base::ids::{ConversationId, MembershipId, MessageId};

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message;
use crate::runs::engine::RunEngine;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::{Command, MessageEdit};

impl RunEngine {
    /// Replaces the text of a message; the token count of `edit` is filled in here.
    ///
    /// # Errors
    /// Returns [`CommandError::EditConflict`] when the message was changed since the version that
    /// `edit` names, [`CommandError::MessageBeingWritten`] while a run writes into it, or
    /// [`EngineError::StorageFull`].
    pub async fn edit_message(
        &self,
        (conversation, viewer): (ConversationId, Viewer),
        edit: MessageEdit,
    ) -> Result<message::MessageView, EngineError> {
        let (db, quota) = (self.context.db.reader(), &self.context.quota);
        quota
            .require_for_post(db, conversation, &edit.content)
            .await?;
        let token_count = self.count_tokens(edit.content.clone()).await?;
        let command = Command::EditMessage(MessageEdit {
            token_count,
            ..edit
        });
        self.step_for_message(conversation, viewer, command).await
    }

    /// Shows a message, excludes it from prompts, or deletes it for everyone.
    ///
    /// # Errors
    /// Returns [`CommandError::ForkPoint`] when the message has branches.
    pub async fn set_visibility(
        &self,
        (conversation, viewer): (ConversationId, Viewer),
        message: MessageId,
        visibility: message::Visibility,
    ) -> Result<message::MessageView, EngineError> {
        let command = Command::SetVisibility {
            message,
            visibility,
        };
        self.step_for_message(conversation, viewer, command).await
    }

    /// Sets whether the memory may use a message. To switch it off also deletes the memories that were made
    /// from this message alone; to switch it on restores them and learns from the message again.
    ///
    /// # Errors
    /// Returns [`CommandError::NotFound`] when the message does not exist or is hidden.
    pub async fn set_remembered(
        &self,
        (conversation, viewer): (ConversationId, Viewer),
        message: MessageId,
        remember: bool,
    ) -> Result<message::MessageView, EngineError> {
        let command = Command::SetRemembered { message, remember };
        self.step_for_message(conversation, viewer, command).await
    }

    /// Sets whether a person's message is out of character: shown, but in no prompt and no memory. The
    /// schedule does not change.
    ///
    /// # Errors
    /// Returns [`CommandError::NotFound`] when the message does not exist or is hidden,
    /// [`CommandError::NotOfPerson`] when a model wrote it, and [`CommandError::GenerationLocked`] for
    /// the newest message while the space refuses posts.
    pub async fn set_out_of_character(
        &self,
        (conversation, viewer): (ConversationId, Viewer),
        message: MessageId,
        is_ooc: bool,
    ) -> Result<message::MessageView, EngineError> {
        let command = Command::SetOutOfCharacter { message, is_ooc };
        self.step_for_message(conversation, viewer, command).await
    }

    /// Shows another swipe of a message; `by` is the membership that selects it.
    ///
    /// # Errors
    /// Returns `EditConflict` when `expected_version` is not the current version,
    /// `MessageBeingWritten` while a run writes into the message, or `NoSuchSwipe`.
    pub async fn select_swipe(
        &self,
        (conversation, viewer): (ConversationId, Viewer),
        message: MessageId,
        (position, expected_version): (i64, Option<i64>),
        by: Option<MembershipId>,
    ) -> Result<message::MessageView, EngineError> {
        let command = Command::SelectSwipe {
            message,
            position,
            expected_version,
            by,
        };
        self.step_for_message(conversation, viewer, command).await
    }
}
