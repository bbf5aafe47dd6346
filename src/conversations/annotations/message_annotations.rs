//! Loads what a page of messages shows besides their rows: the messages that they answer, their
//! reactions and their pictures.

use std::collections::HashMap;

use base::ids::MessageId;
use sea_orm::{ConnectionTrait, DbErr};

use crate::attachments::attachment;
use crate::conversations::annotations::quoted_message::QuotedMessage;
use crate::conversations::annotations::reaction::ReactionView;
use crate::conversations::annotations::{quoted_message, reaction};
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{MessageView, Model, Visibility};

/// The quoted messages, the reactions and the pictures of some messages.
#[derive(Clone, Debug, Default)]
pub struct MessageAnnotations {
    quoted: HashMap<MessageId, QuotedMessage>,
    reactions: HashMap<MessageId, Vec<ReactionView>>,
    attachments: HashMap<MessageId, Vec<attachment::Model>>,
    /// The message that each reply answers.
    targets: HashMap<MessageId, MessageId>,
}

impl MessageAnnotations {
    /// Loads the annotations of these messages: with one query if any of them is a reply, one if
    /// any has reactions, and one if any has pictures. Hidden messages have none.
    ///
    /// # Errors
    /// Returns the database error if a query fails.
    pub async fn load<'a>(
        db: &impl ConnectionTrait,
        rows: impl IntoIterator<Item = &'a Model>,
    ) -> Result<Self, DbErr> {
        let (mut targets, mut with_reactions) = (HashMap::new(), Vec::new());
        let mut with_pictures = Vec::new();
        for row in rows {
            if row.visibility == Visibility::Hidden {
                continue;
            }
            targets.extend(row.reply_to_message_id.map(|it| (row.id, it)));
            with_reactions.extend(row.has_reactions.then_some(row.id));
            with_pictures.extend(row.has_attachments.then_some(row.id));
        }
        Ok(Self {
            quoted: quoted_message::load(db, targets.values().copied()).await?,
            reactions: reaction::load(db, with_reactions).await?,
            attachments: attachment::load(db, with_pictures).await?,
            targets,
        })
    }

    /// Returns the reactions of a message.
    pub fn reactions_of(&self, id: MessageId) -> &[ReactionView] {
        self.reactions.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns the pictures of a message.
    pub fn attachments_of(&self, id: MessageId) -> &[attachment::Model] {
        self.attachments.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns the message that a message answers.
    pub fn quoted(&self, id: MessageId) -> Option<&QuotedMessage> {
        self.targets.get(&id).and_then(|it| self.quoted.get(it))
    }

    /// Adds the annotations to the document of a message. It quotes only what the viewer sees.
    pub fn annotate(&self, mut view: MessageView, viewer: Viewer) -> MessageView {
        let quoted = self.quoted(view.id);
        let quoted = quoted.filter(|it| viewer.sees(it.audience.as_ref()));
        view.reply_to = quoted.map(QuotedMessage::view);
        view.reactions = self.reactions.get(&view.id).cloned().unwrap_or_default();
        let pictures = self.attachments_of(view.id).iter();
        view.attachments = pictures.map(attachment::Model::view).collect();
        view
    }
}
