//! Loads the stored prompt of a run, with the current texts of the messages that it refers to.

use std::collections::HashMap;

use base::ids::{MessageId, RunId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::conversations::{message, swipe};
use crate::prompt::blocks::RecordedText;
use crate::prompt::record::run_prompt;
use crate::prompt::record::sent_prompt::{SentPrompt, TextState};

/// The number of messages in one query.
const PAGE_SIZE: usize = 1_000;

/// Returns the prompt of a run with its messages, or `None` if none is stored.
pub async fn load_for_run(
    db: &impl ConnectionTrait,
    run: RunId,
) -> Result<Option<(SentPrompt, MessageTexts)>, DbErr> {
    let Some(row) = run_prompt::Entity::find_by_id(run).one(db).await? else {
        return Ok(None);
    };
    let mut texts = MessageTexts::default();
    for piece in row.record.recorded_texts().chunks(PAGE_SIZE) {
        texts.load_texts(db, piece, row.created_at).await?;
    }
    Ok(Some((row.record, texts)))
}

/// The current texts of messages.
#[derive(Debug, Default)]
pub struct MessageTexts(HashMap<RecordedText, TextState>);

impl MessageTexts {
    /// Returns the current text, or `None` if the message was deleted.
    pub fn get(&self, source: RecordedText) -> Option<TextState> {
        self.0.get(&source).cloned()
    }

    async fn load_texts(
        &mut self,
        db: &impl ConnectionTrait,
        all: &[RecordedText],
        sent_at: base::clock::Timestamp,
    ) -> Result<(), DbErr> {
        let ids = all.iter().map(|it| it.message);
        let messages = message::Entity::find()
            .filter(message::Column::Id.is_in(ids))
            .filter(message::Column::Visibility.ne(message::Visibility::Hidden))
            .all(db)
            .await?;
        let messages: HashMap<MessageId, message::Model> =
            messages.into_iter().map(|it| (it.id, it)).collect();
        let is_changed = |at: Option<_>| at.is_some_and(|at| at > sent_at);
        let mut other_swipes = Vec::new();
        for source in all {
            match messages.get(&source.message) {
                Some(it) if it.active_swipe == source.swipe => {
                    let present = TextState {
                        text: it.content.clone(),
                        is_changed: is_changed(it.edited_at),
                    };
                    self.0.insert(*source, present);
                }
                Some(it) => other_swipes.push(it.id),
                None => {}
            }
        }
        let swipes = swipe::Entity::find()
            .filter(swipe::Column::MessageId.is_in(other_swipes.iter().copied()))
            .all(db)
            .await?;
        for it in swipes {
            let source = RecordedText {
                message: it.message_id,
                swipe: it.position,
            };
            let present = TextState {
                is_changed: is_changed(it.edited_at),
                text: it.content,
            };
            self.0.entry(source).or_insert(present);
        }
        Ok(())
    }
}
