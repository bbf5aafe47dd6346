//! Writes imported rows into the hidden space of an import: first its settings, memberships and
//! conversations, then messages in batches. `import_finalize.rs` has the last transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base::clock::Timestamp;
use base::display_name;
use base::ids::{ConversationId, MessageId, SpaceId};
use base::language_tag::LanguageTag;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QuerySelect,
};
use serde_json::json;

use crate::conversations::annotations::emoji::Emoji;
use crate::conversations::annotations::{quoted_message, reaction};
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::chats::{chat_import, import_job, import_writer};
use crate::conversations::{conversation, message, newest_messages};
use crate::db::connect::Db;
use crate::prompt::space_variable;
use crate::space_transfer::document;
use crate::space_transfer::import_data::{
    FileHead, IdMap, invalid_file, load_message_ids, object_or_empty,
};
use crate::spaces::membership::MembershipKind;
use crate::spaces::{membership, roster_changes, space};

/// Sets the settings of the hidden space, and creates its memberships, all unassigned, and its
/// conversations.
pub async fn create_contents(
    db: &Db,
    hidden: SpaceId,
    head: Arc<FileHead>,
    now: Timestamp,
) -> Result<IdMap, ChatImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            space_row(hidden, &head.space)?.update(tx).await?;
            space_variable::set(tx, hidden, head.variables.clone()).await?;
            let mut ids = IdMap::default();
            for membership in &head.memberships {
                let row = empty_membership(hidden, membership).insert(tx).await?;
                ids.memberships.insert(membership.key, row.id);
                if membership.kind == MembershipKind::Character {
                    ids.characters.insert(row.id);
                }
            }
            for it in &head.conversations {
                let parent = it.parent.map(|key| ids.conversations.get(&key).copied());
                let parent = match parent {
                    // A parent must precede its branches; an unknown or later parent is an error.
                    Some(None) => return Err(invalid_file(document::CONVERSATIONS)),
                    parent => parent.flatten(),
                };
                let summary_from_seq = first_summarized(it);
                let row = conversation::Model {
                    kind: it.kind,
                    title: display_name::truncate(&it.title, 200).unwrap_or_default(),
                    parent_conversation_id: parent,
                    last_seq: it.last_seq.max(0),
                    auto_mode_turns: it.auto_mode_turns.max(0),
                    settings: object_or_empty(&it.settings),
                    variables: object_or_empty(&it.variables),
                    created_at: it.created_at,
                    archived_at: it.archived_at,
                    summary_from_seq,
                    summary_goal_seq: summary_from_seq - 1,
                    ..chat_import::new_conversation(hidden, now)
                };
                let mut row = row.into_active_model();
                row.id = NotSet;
                ids.conversations.insert(it.key, row.insert(tx).await?.id);
            }
            Ok(ids)
        })
    })
    .await
}

/// Returns the first message of a conversation that may be summarized.
pub fn first_summarized(it: &document::ExportedConversation) -> i64 {
    it.summary_from_seq
        .clamp(1, it.last_seq.clamp(0, i64::MAX - 1) + 1)
}

fn space_row(
    id: SpaceId,
    space: &document::ExportedSpace,
) -> Result<space::ActiveModel, ChatImportError> {
    let name =
        display_name::truncate(&space.name, 100).ok_or_else(|| invalid_file(document::SPACE))?;
    Ok(space::ActiveModel {
        id: Set(id),
        name: Set(name),
        description: Set(space.description.clone()),
        reply_order: Set(space.reply_order),
        replies_per_turn: Set(space.replies_per_turn),
        card_handling_mode: Set(space.card_handling_mode),
        allow_self_responses: Set(space.allow_self_responses),
        // The author of a file must not start model calls at the importer's cost.
        auto_mode_enabled: Set(false),
        auto_mode_delay_ms: Set(space.auto_mode_delay_ms.clamp(0, 600_000)),
        auto_mode_max_turns: Set(space.auto_mode_max_turns.clamp(1, 100)),
        during_generation_user_input_policy: Set(space.during_generation_user_input_policy),
        user_turn_debounce_ms: Set(space.user_turn_debounce_ms.clamp(0, 60_000)),
        slow_mode_s: Set(space.slow_mode_s.clamp(0, 21_600)),
        humans_take_turns: Set(space.humans_take_turns),
        human_turn_timeout_s: Set(space.human_turn_timeout_s.clamp(0, 86_400)),
        group_regenerate_mode: Set(space.group_regenerate_mode),
        model_language: Set(space
            .model_language
            .as_deref()
            .and_then(LanguageTag::parse)
            .map(|it| it.to_string())),
        settings: Set(object_or_empty(&space.settings)),
        token_limit: Set(space.token_limit.max(0)),
        created_at: Set(space.created_at),
        ..Default::default()
    })
}

fn empty_membership(
    space: SpaceId,
    membership: &document::ExportedMembership,
) -> membership::ActiveModel {
    let name = display_name::truncate(&membership.name, 100).unwrap_or_else(|| "?".to_owned());
    let mut row = roster_changes::removed_member(
        space,
        membership.kind,
        name,
        membership.position,
        membership.created_at,
    );
    row.participation = Set(membership.participation);
    row.aliases = Set(json!(membership.aliases));
    row.persona = Set(membership.persona.clone());
    row.talkativeness = Set(membership.talkativeness.map(|it| it.clamp(0.0, 1.0)));
    row.settings = Set(object_or_empty(&membership.settings));
    row
}

/// The target of a batch.
#[derive(Clone, Copy, Debug)]
pub struct SpaceTarget {
    pub conversation: ConversationId,
    pub parent: Option<ConversationId>,
    /// The `seq` of the last message written so far.
    pub last_seq: i64,
    /// The number of messages of all conversations, including this batch.
    pub n_messages: i64,
    pub now: Timestamp,
}

/// Writes a batch; returns the `seq` of its last message.
pub async fn write_messages(
    db: &Db,
    import: base::ids::ImportId,
    target: SpaceTarget,
    ids: Arc<IdMap>,
    batch: Vec<document::ExportedMessage>,
) -> Result<i64, ChatImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            if !import_job::save_progress(tx, import, 0, target.n_messages).await? {
                return Err(ChatImportError::Canceled);
            }
            let origins = load_origins(tx, target, &batch).await?;
            let mut last = target.last_seq;
            let mut lines = Vec::new();
            let annotations = ImportedAnnotations::from_batch(&batch);
            for line in batch {
                if line.seq <= last {
                    return Err(invalid_file("the order of messages"));
                }
                last = line.seq;
                let origin = origins.get(&line.seq).copied();
                lines.push(message_row(target.conversation, &ids, origin, line)?);
            }
            import_writer::insert_messages(tx, target.conversation, target.last_seq, lines).await?;
            annotations.insert(tx, &target, &ids).await?;
            newest_messages::refresh(tx, target.conversation).await?;
            Ok(last)
        })
    })
    .await
}

/// Returns the parent's messages that these were copied from: a copy keeps its `seq`.
async fn load_origins(
    tx: &impl ConnectionTrait,
    target: SpaceTarget,
    batch: &[document::ExportedMessage],
) -> Result<HashMap<i64, MessageId>, DbErr> {
    let clones = batch.iter().filter(|it| it.is_clone).map(|it| it.seq);
    let clones: Vec<i64> = clones.collect();
    let (Some(parent), false) = (target.parent, clones.is_empty()) else {
        return Ok(HashMap::new());
    };
    let found: Vec<(i64, MessageId)> = message::Entity::find()
        .select_only()
        .column(message::Column::Seq)
        .column(message::Column::Id)
        .filter(message::Column::ConversationId.eq(parent))
        .filter(message::Column::Seq.is_in(clones))
        .into_tuple()
        .all(tx)
        .await?;
    Ok(found.into_iter().collect())
}

fn message_row(
    conversation: ConversationId,
    ids: &IdMap,
    origin: Option<MessageId>,
    line: document::ExportedMessage,
) -> Result<import_writer::MessageRow, ChatImportError> {
    let membership = |key: i64| ids.memberships.get(&key).copied();
    let author =
        membership(line.membership).ok_or_else(|| invalid_file("the author of a message"))?;
    let audience = ids.audience(line.audience.as_deref(), [author]);
    let active = usize::try_from(line.active_swipe).unwrap_or(usize::MAX);
    let shown = match line.texts.get(active) {
        Some(text) => text.content.clone(),
        None if line.texts.is_empty() && active == 0 => line.content,
        None => return Err(invalid_file("the texts of a message")),
    };
    let message = message::Model {
        id: MessageId(0), // assigned by the database
        conversation_id: conversation,
        seq: line.seq,
        space_membership_id: author,
        persona_id: None,
        persona_name: line.persona.and_then(|it| display_name::truncate(&it, 100)),
        persona_avatar: None,
        role: line.role,
        content: shown,
        visibility: line.visibility,
        is_remembered: line.remember,
        is_ooc: line.is_ooc && line.role == message::MessageRole::User,
        is_for_people: ids.is_for_people(audience.as_ref()),
        audience,
        conversation_run_id: None,
        active_swipe: line.active_swipe,
        swipe_chosen_by: line.swipe_chosen_by.and_then(membership),
        client_id: None,
        origin_message_id: origin,
        reply_to_message_id: None, // set when the batch has ids
        has_reactions: !line.reactions.is_empty(),
        has_attachments: false, // set when the pictures are stored
        created_at: line.created_at,
        edited_at: line.edited_at,
        edited_by: line.edited_by.and_then(membership),
        version: line.version.max(1),
        rev: import_writer::FIRST_REV,
        token_count: line.token_count.max(0),
        metadata: object_or_empty(&line.metadata),
    };
    let texts = line
        .texts
        .into_iter()
        .map(|it| crate::conversations::swipe::SwipeText {
            content: it.content,
            token_count: it.token_count.max(0),
            run: None,
            metadata: object_or_empty(&it.metadata),
            edited_at: it.edited_at,
            edited_by: it.edited_by.and_then(membership),
        });
    Ok(import_writer::MessageRow {
        message,
        texts: texts.collect(),
    })
}

/// What the messages of a batch answer, and the reactions to them, by `seq`.
#[derive(Debug)]
struct ImportedAnnotations {
    answered: Vec<(i64, i64)>,
    reactions: Vec<(i64, Timestamp, Vec<document::ExportedReaction>)>,
}

impl ImportedAnnotations {
    fn from_batch(batch: &[document::ExportedMessage]) -> Self {
        let visible = || {
            let hidden = message::Visibility::Hidden;
            batch.iter().filter(move |it| it.visibility != hidden)
        };
        let answered = visible().filter_map(|it| Some((it.seq, it.reply_to?)));
        let with_reactions = visible().filter(|it| !it.reactions.is_empty());
        Self {
            answered: answered.filter(|(seq, to)| to < seq).collect(),
            reactions: with_reactions
                .map(|it| (it.seq, it.created_at, it.reactions.clone()))
                .collect(),
        }
    }

    /// Inserts them after the messages of the batch. Invalid emoji and unknown members are left out.
    async fn insert(
        self,
        tx: &impl ConnectionTrait,
        target: &SpaceTarget,
        ids: &IdMap,
    ) -> Result<(), DbErr> {
        let seqs: BTreeSet<i64> = self.named_seqs().collect();
        if seqs.is_empty() {
            return Ok(());
        }
        let messages = load_message_ids(tx, target.conversation, seqs).await?;
        let answers = self.answered.iter();
        let answers =
            answers.filter_map(|(seq, to)| Some((*messages.get(seq)?, *messages.get(to)?)));
        quoted_message::set_targets(tx, answers.collect()).await?;
        reaction::insert_all(tx, self.reaction_rows(&messages, ids)).await
    }

    fn named_seqs(&self) -> impl Iterator<Item = i64> {
        let answered = self.answered.iter().flat_map(|(seq, to)| [*seq, *to]);
        answered.chain(self.reactions.iter().map(|(seq, ..)| *seq))
    }

    fn reaction_rows(
        &self,
        messages: &HashMap<i64, MessageId>,
        ids: &IdMap,
    ) -> Vec<reaction::Model> {
        let mut rows = BTreeMap::new();
        for (seq, created_at, reactions) in &self.reactions {
            let Some(message_id) = messages.get(seq).copied() else {
                continue;
            };
            for it in reactions.iter().take(reaction::MAX_EMOJI) {
                let Some(emoji) = Emoji::parse(&it.emoji) else {
                    continue;
                };
                let known = |key| ids.memberships.get(key).copied();
                for space_membership_id in it.memberships.iter().filter_map(known) {
                    let row = reaction::Model {
                        message_id,
                        space_membership_id,
                        emoji: emoji.as_str().to_owned(),
                        created_at: *created_at,
                    };
                    rows.insert((message_id.0, space_membership_id.0, it.emoji.clone()), row);
                }
            }
        }
        rows.into_values().collect()
    }
}
