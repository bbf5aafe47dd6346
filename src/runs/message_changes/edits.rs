//! The operations of the engine that change the text of a message, its shown swipe, its visibility and its
//! marks.

use base::ids::{ConversationId, MembershipId, MessageId};
use tavern::regex_scripts::script_use::{ScriptPlacement, ScriptPurpose};

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message;
use crate::conversations::message::MessageRole;
use crate::regex_scripts::writer_scripts::WriterScripts;
use crate::runs::engine::RunEngine;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::{Command, MessageEdit};
use crate::spaces::space;

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

    /// Runs the scripts that act on the edited text of an AI's message.
    ///
    /// # Errors
    /// Returns the database's error when it fails.
    pub async fn run_scripts_on_edit(
        &self,
        space: &space::Model,
        row: &message::Model,
        edit: MessageEdit,
    ) -> Result<MessageEdit, EngineError> {
        if row.role != MessageRole::Assistant {
            return Ok(edit);
        }
        let (db, cache) = (
            self.context.db.reader(),
            &self.context.prompt_caches.scripts,
        );
        let scripts = cache.load(db, space.id, space.into()).await?;
        let own = scripts.and_then(|it| {
            let scripts = it.of_member(row.space_membership_id)?.clone();
            let user = it.user.clone();
            Some(WriterScripts { scripts, user })
        });
        let Some(own) = own else {
            return Ok(edit);
        };
        let (placement, purpose) = (ScriptPlacement::AiOutput, ScriptPurpose::Edit);
        let content = edit.content.clone();
        let changing = (self.context.shutdown.main())
            .spawn_blocking(move || own.change(placement, purpose, &content).changed);
        Ok(match changing.await? {
            Some(changed) => MessageEdit {
                unscripted: Some(edit.content),
                content: changed,
                ..edit
            },
            None => edit,
        })
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
