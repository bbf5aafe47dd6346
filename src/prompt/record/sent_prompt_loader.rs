//! Loads the stored prompt of a run, with the current texts of the messages, memories and summaries that
//! it refers to.

use std::collections::{HashMap, HashSet};

use base::clock::Timestamp;
use base::ids::{AttachmentId, MemoryId, MessageId, RunId, SpaceId, SummaryId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::attachments::{attachment, picture_text};
use crate::conversations::audience::seen_messages;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::translations::message_translation;
use crate::conversations::{message, swipe};
use crate::memories::memory;
use crate::memories::summaries::summary;
use crate::prompt::blocks::{RecordedSummary, RecordedText};
use crate::prompt::history::summary_block;
use crate::prompt::memory_block;
use crate::prompt::memory_block::MemoryLine;
use crate::prompt::record::recorded_block::{CurrentTexts, TextState};
use crate::prompt::record::run_prompt;
use crate::prompt::record::sent_prompt::SentPrompt;

/// The number of messages in one query.
const PAGE_SIZE: usize = 1_000;

/// Returns the prompt of a run of this space as a reader sees it, with its texts, or `None` if none is
/// stored.
pub async fn load_for_run(
    db: &impl ConnectionTrait,
    space: SpaceId,
    run: RunId,
    reader: Viewer,
) -> Result<Option<(SentPrompt, RecordedTexts)>, DbErr> {
    let Some(row) = run_prompt::Entity::find_by_id(run).one(db).await? else {
        return Ok(None);
    };
    let memories = match row.record.memories() {
        ids if ids.is_empty() => Vec::new(),
        ids => memory::list_in_space(db, space, ids).await?,
    };
    let summaries = match row.record.summaries() {
        ids if ids.is_empty() => Vec::new(),
        ids => summary::list(db, row.conversation_id, ids).await?,
    };
    let mut texts = RecordedTexts {
        messages: HashMap::new(),
        pictures: HashMap::new(),
        unheard: HashSet::new(),
        memories: memories.into_iter().map(|it| (it.id, it)).collect(),
        summaries: summaries.into_iter().map(|it| (it.id, it)).collect(),
        translations: HashMap::new(),
        sent_at: row.created_at,
    };
    for piece in row.record.recorded_texts().chunks(PAGE_SIZE) {
        texts.load_messages(db, piece, reader).await?;
    }
    for (language, messages) in row.record.translations() {
        for piece in messages.chunks(PAGE_SIZE) {
            texts.load_translations(db, language, piece).await?;
        }
    }
    for whispers in row.record.whispers.chunks(PAGE_SIZE) {
        texts.load_audiences(db, whispers, reader).await?;
    }
    let record = row.record.heard_by_reader(&texts);
    Ok(Some((record, texts)))
}

/// The current texts of messages, memories and summaries.
#[derive(Debug)]
pub struct RecordedTexts {
    messages: HashMap<RecordedText, TextState>,
    pictures: HashMap<MessageId, Vec<attachment::Model>>,
    /// By message and language.
    translations: HashMap<(MessageId, String), TextState>,
    /// The whispers among the messages that the reader did not hear.
    unheard: HashSet<MessageId>,
    memories: HashMap<MemoryId, memory::Model>,
    summaries: HashMap<SummaryId, summary::Model>,
    sent_at: Timestamp,
}

impl CurrentTexts for RecordedTexts {
    fn message(&self, source: RecordedText) -> Option<TextState> {
        self.messages.get(&source).cloned()
    }

    fn quoted(&self, source: RecordedText) -> Option<TextState> {
        let mut now = self.message(source)?;
        let pictures = self.pictures.get(&source.message);
        if let Some(pictures) = pictures.filter(|_| now.text.trim().is_empty()) {
            now.text = picture_text::of_all(pictures);
        }
        Some(now)
    }

    fn picture(&self, message: MessageId, id: AttachmentId) -> Option<String> {
        let pictures = self.pictures.get(&message)?;
        pictures.iter().find(|it| it.id == id).map(picture_text::of)
    }

    fn translation(&self, message: MessageId, language: &str) -> Option<TextState> {
        let key = (message, language.to_owned());
        self.translations.get(&key).cloned()
    }

    fn memory_block(&self, ids: &[MemoryId]) -> TextState {
        let found: Vec<_> = ids.iter().filter_map(|it| self.memory(*it)).collect();
        let lines: Vec<_> = found.iter().map(|it| MemoryLine::from(*it)).collect();
        let is_edited = found.iter().any(|it| it.updated_at > self.sent_at);
        TextState {
            text: memory_block::render(&lines, self.sent_at).unwrap_or_default(),
            is_changed: is_edited || found.len() < ids.len(),
        }
    }

    fn summary_block(&self, source: RecordedSummary) -> TextState {
        let find = |id: Option<SummaryId>| id.and_then(|it| self.summaries.get(&it));
        let (version, facts) = (find(source.version), find(source.facts));
        let content = version.map_or("", |it| it.content.as_str());
        let mut facts = facts.map(summary::Model::facts).unwrap_or_default();
        facts.truncate(facts.len().saturating_sub(source.n_facts_left_out));
        TextState {
            text: summary_block::render(content, &facts).unwrap_or_default(),
            is_changed: source.version.is_some() && version.is_none(),
        }
    }

    fn is_unheard(&self, message: MessageId) -> bool {
        self.unheard.contains(&message)
    }
}

impl RecordedTexts {
    /// Returns a memory, unless it was deleted.
    pub fn memory(&self, id: MemoryId) -> Option<&memory::Model> {
        self.memories.get(&id)
    }

    async fn load_translations(
        &mut self,
        db: &impl ConnectionTrait,
        language: &str,
        messages: &[MessageId],
    ) -> Result<(), DbErr> {
        let messages = messages.iter().copied();
        let found = message_translation::load(db, messages, language).await?;
        for (id, row) in found {
            let present = TextState {
                is_changed: row.created_at > self.sent_at,
                text: row.text.unwrap_or_default(),
            };
            self.translations.insert((id, row.language), present);
        }
        Ok(())
    }

    /// Determines which whispers the reader did not hear. A whisper that does not exist is one of them.
    async fn load_audiences(
        &mut self,
        db: &impl ConnectionTrait,
        whispers: &[MessageId],
        reader: Viewer,
    ) -> Result<(), DbErr> {
        let heard = seen_messages::list_seen(db, whispers.iter().copied(), reader).await?;
        let unheard = whispers.iter().filter(|it| !heard.contains(it));
        self.unheard.extend(unheard);
        Ok(())
    }

    async fn load_messages(
        &mut self,
        db: &impl ConnectionTrait,
        all: &[RecordedText],
        reader: Viewer,
    ) -> Result<(), DbErr> {
        let sent_at = self.sent_at;
        let ids = all.iter().map(|it| it.message);
        let messages = message::Entity::find()
            .filter(message::Column::Id.is_in(ids))
            .all(db)
            .await?;
        // Those of hidden whispers, too: a block without text names its author.
        let unheard = messages
            .iter()
            .filter(|it| !reader.sees(it.audience.as_ref()));
        self.unheard.extend(unheard.map(|it| it.id));
        let messages: HashMap<MessageId, message::Model> = messages
            .into_iter()
            .filter(|it| it.visibility != message::Visibility::Hidden)
            .filter(|it| !self.unheard.contains(&it.id))
            .map(|it| (it.id, it))
            .collect();
        let with_pictures = messages.values().filter(|it| it.has_attachments);
        let with_pictures = with_pictures.map(|it| it.id);
        self.pictures
            .extend(attachment::load(db, with_pictures).await?);
        let is_changed = |at: Option<_>| at.is_some_and(|at| at > sent_at);
        let mut other_swipes = Vec::new();
        for source in all {
            match messages.get(&source.message) {
                Some(it) if it.active_swipe == source.swipe => {
                    let present = TextState {
                        text: it.content.clone(),
                        is_changed: is_changed(it.edited_at),
                    };
                    self.messages.insert(*source, present);
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
            self.messages.entry(source).or_insert(present);
        }
        Ok(())
    }
}
