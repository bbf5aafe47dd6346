//! Imports the run history of a conversation in batches: ended rounds and runs, their prompts, and
//! which run wrote which text. Requires that all messages exist.

use std::collections::HashMap;
use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{ConversationId, ImportId, MembershipId, MessageId, RoundId, RunId, SpaceId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{CaseStatement, Expr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter,
};

use crate::conversations::chats::import_job;
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::{message, swipe};
use crate::db::connect::Db;
use crate::prompt::record::run_prompt;
use crate::rounds::{round, slot};
use crate::runs::store::{queue, run};
use crate::space_transfer::document;
use crate::space_transfer::document::{ExportedAuthorship, ExportedHistory};
use crate::space_transfer::import_data::{IdMap, invalid_file, load_message_ids};

/// More rounds than any real conversation has; their ids are held in memory.
const MAX_ROUNDS: usize = 500_000;
/// The length of columns for short words.
const MAX_WORD_CHARS: usize = 64;
/// Rows per statement.
const ROWS_PER_STATEMENT: usize = 500;

/// The new ids of the rounds of a conversation.
#[derive(Debug, Default)]
pub struct RoundIds(HashMap<RoundId, RoundId>);

/// The target of a batch.
#[derive(Clone, Copy, Debug)]
pub struct HistoryTarget {
    pub space: SpaceId,
    /// The conversation's key in the file.
    pub conversation: i64,
    /// The number of imported messages of all conversations.
    pub n_messages: i64,
    pub now: Timestamp,
}

impl RoundIds {
    /// Gives the rounds of a batch new ids, and updates its runs. A run whose round is not in the
    /// file gets no round.
    fn assign(&mut self, batch: &mut [ExportedHistory]) -> Result<(), ChatImportError> {
        for it in batch {
            match it {
                ExportedHistory::Round(it) => {
                    let new = RoundId::new();
                    if self.0.insert(it.key, new).is_some() || self.0.len() > MAX_ROUNDS {
                        return Err(invalid_file("the rounds"));
                    }
                    it.key = new;
                }
                ExportedHistory::Run(it) => {
                    it.round = it.round.and_then(|key| self.0.get(&key).copied());
                    it.slot_position = it.round.and(it.slot_position);
                }
            }
        }
        Ok(())
    }
}

/// Writes a batch.
///
/// # Errors
/// Returns an error if the batch is invalid, the import was canceled, or the database fails.
pub async fn write_batch(
    db: &Db,
    import: ImportId,
    target: HistoryTarget,
    id_map: Arc<IdMap>,
    rounds: &mut RoundIds,
    mut batch: Vec<ExportedHistory>,
) -> Result<(), ChatImportError> {
    rounds.assign(&mut batch)?;
    db.write(move |tx| {
        Box::pin(async move {
            if !import_job::save_progress(tx, import, 0, target.n_messages).await? {
                return Err(ChatImportError::Canceled);
            }
            let conversation = id_map.conversations[&target.conversation];
            let named = batch.iter().flat_map(referenced_seqs).collect();
            let ids = load_message_ids(tx, conversation, named).await?;
            let history_ids = HistoryIdMap {
                space: target.space,
                conversation,
                map: &id_map,
                messages: &ids,
            };
            let mut rows = HistoryRows::default();
            for it in batch {
                match it {
                    ExportedHistory::Round(it) => rows.add_round(&history_ids, it)?,
                    ExportedHistory::Run(it) => rows.add_run(&history_ids, *it)?,
                }
            }
            rows.insert(tx, conversation).await?;
            set_run_ids(tx, &id_map, rows.authorships).await
        })
    })
    .await
}

/// Returns the `seq` of the messages that an entry refers to.
fn referenced_seqs(entry: &ExportedHistory) -> Vec<i64> {
    match entry {
        ExportedHistory::Round(it) => it.trigger_seq.into_iter().collect(),
        ExportedHistory::Run(it) => {
            let debug = [
                it.trigger_seq,
                it.target_seq,
                it.expected_last_seq,
                it.superseded_by_seq,
            ];
            let texts = it.prompt.iter().flat_map(|it| it.record.recorded_texts());
            let texts = texts.map(|it| it.message.0);
            debug.into_iter().flatten().chain(texts).collect()
        }
    }
}

/// Maps the references of a file to new ids.
struct HistoryIdMap<'a> {
    space: SpaceId,
    conversation: ConversationId,
    map: &'a IdMap,
    messages: &'a HashMap<i64, MessageId>,
}

impl HistoryIdMap<'_> {
    fn speaker(&self, key: Option<i64>) -> Result<Option<MembershipId>, ChatImportError> {
        let find = |key| self.map.memberships.get(&key).copied();
        let known = |key| find(key).ok_or_else(|| invalid_file("the speaker of a run"));
        key.map(known).transpose()
    }

    fn message(&self, seq: Option<i64>) -> Option<MessageId> {
        seq.and_then(|it| self.messages.get(&it).copied())
    }
}

fn parse_word(text: Option<String>) -> Result<Option<String>, ChatImportError> {
    match text {
        Some(text) if text.chars().count() > MAX_WORD_CHARS => Err(invalid_file("the rounds")),
        text => Ok(text),
    }
}

/// The rows of a batch.
#[derive(Default)]
struct HistoryRows {
    rounds: Vec<round::ActiveModel>,
    runs: Vec<run::Model>,
    prompts: Vec<run_prompt::ActiveModel>,
    authorships: Vec<(RunId, ExportedAuthorship)>,
}

impl HistoryRows {
    fn add_round(
        &mut self,
        ids: &HistoryIdMap,
        round: document::ExportedRound,
    ) -> Result<(), ChatImportError> {
        if round.status == round::RoundStatus::Active {
            return Err(invalid_file("the rounds"));
        }
        let audience = ids.map.audience_of_round(&round)?;
        let mut slots = Vec::with_capacity(round.slots.len());
        for slot in round.slots {
            slots.push(slot::Slot {
                position: slot.position,
                space_membership_id: ids.speaker(slot.membership)?,
                status: slot.status,
                message_id: ids.message(slot.message_seq),
                skip_reason: parse_word(slot.skip_reason)?,
                chosen_because: slot.chosen_because,
                forced: slot.forced,
            });
        }
        // Slots of deleted memberships are not exported, so positions may be missing.
        let positions = || slots.iter().map(|it| it.position);
        if !positions().is_sorted_by(|a, b| a < b) || positions().any(|it| it < 0) {
            return Err(invalid_file("the rounds"));
        }
        let row = round::Model {
            id: round.key,
            conversation_id: ids.conversation,
            status: round.status,
            kind: round.kind,
            state: round.state,
            cursor: round.cursor,
            trigger_message_id: ids.message(round.trigger_seq),
            audience,
            seed: round.seed,
            ended_reason: parse_word(round.ended_reason)?,
            turn_started_at: None,
            deadline_at: None,
            created_at: round.created_at,
            slots: slot::Slots(slots),
        };
        self.rounds.push(row.into_active_model());
        Ok(())
    }

    fn add_run(
        &mut self,
        ids: &HistoryIdMap,
        run: document::ExportedRun,
    ) -> Result<(), ChatImportError> {
        if !run.status.is_final() {
            return Err(invalid_file("the runs"));
        }
        let id = RunId::new();
        let speaker = ids.speaker(run.membership)?;
        let wrote = run.wrote.iter().map(|wrote| (id, *wrote));
        self.authorships.extend(wrote);
        if let Some(prompt) = run.prompt {
            let named = |seq: MessageId| ids.message(Some(seq.0));
            let mut record = prompt.record.remap_messages(named).without_memories();
            // Characters have other ids on this server.
            record.cards = None;
            // Lorebook entries have other ids on this server.
            for entry in record.lore.fired.iter_mut().chain(&mut record.lore.dropped) {
                entry.entry_id = None;
            }
            self.prompts.push(run_prompt::ActiveModel {
                run_id: Set(id),
                conversation_id: Set(ids.conversation),
                record: Set(record),
                created_at: Set(prompt.created_at),
            });
        }
        let debug = run::RunDebug {
            chosen_because: run.chosen_because,
            trigger_message_id: ids.message(run.trigger_seq),
            target_message_id: ids.message(run.target_seq),
            expected_last_message_id: ids.message(run.expected_last_seq),
            skipped_because: run.skipped_because,
            in_place: run.in_place,
            instruction: None,
            prompt: run.figures,
        };
        self.runs.push(run::Model {
            id,
            conversation_id: ids.conversation,
            run_seq: 0, // assigned on insert
            space_id: ids.space,
            round_id: run.round,
            slot_position: run.slot_position,
            kind: run.kind,
            status: run.status,
            reason: run.reason,
            speaker_space_membership_id: speaker,
            audience: ids.map.audience(run.audience.as_deref(), speaker),
            run_after: run.run_after,
            burst_started_at: run.burst_started_at,
            created_at: run.created_at,
            cancel_requested_at: run.cancel_requested_at,
            keep_partial: run.keep_partial,
            started_at: run.started_at,
            finished_at: run.finished_at,
            heartbeat_at: run.heartbeat_at,
            worker_id: None,
            attempt: run.attempt.max(1),
            lease: 0,
            waiting_for: None,
            cutoff_seq: run.cutoff_seq,
            error: run.error,
            usage: run.usage,
            debug,
            canceled_because: run.canceled_because,
            superseded_by_message_id: ids.message(run.superseded_by_seq),
        });
        Ok(())
    }

    async fn insert(
        &mut self,
        tx: &impl ConnectionTrait,
        conversation: ConversationId,
    ) -> Result<(), DbErr> {
        let rounds = std::mem::take(&mut self.rounds);
        if !rounds.is_empty() {
            round::Entity::insert_many(rounds)
                .exec_without_returning(tx)
                .await?;
        }
        queue::restore(tx, conversation, std::mem::take(&mut self.runs)).await?;
        run_prompt::restore(tx, conversation, std::mem::take(&mut self.prompts)).await
    }
}

/// Sets at each text which run wrote it.
async fn set_run_ids(
    tx: &impl ConnectionTrait,
    id_map: &IdMap,
    authorships: Vec<(RunId, ExportedAuthorship)>,
) -> Result<(), ChatImportError> {
    let mut by_conversation: HashMap<i64, Vec<(RunId, ExportedAuthorship)>> = HashMap::new();
    for it in authorships {
        let of_conversation = by_conversation.entry(it.1.conversation).or_default();
        of_conversation.push(it);
    }
    for (key, signed) in by_conversation {
        let conversation = id_map.conversations.get(&key).copied();
        let conversation = conversation.ok_or_else(|| invalid_file("what runs wrote"))?;
        let seqs = signed.iter().map(|(_, it)| it.seq).collect();
        let ids = load_message_ids(tx, conversation, seqs).await?;
        for piece in signed.chunks(ROWS_PER_STATEMENT) {
            set_message_run_ids(tx, &ids, piece).await?;
            set_swipe_run_ids(tx, &ids, piece).await?;
        }
    }
    Ok(())
}

async fn set_message_run_ids(
    tx: &impl ConnectionTrait,
    ids: &HashMap<i64, MessageId>,
    authorships: &[(RunId, ExportedAuthorship)],
) -> Result<(), DbErr> {
    use message::Column;
    let mut run = CaseStatement::new();
    let mut touched = Vec::new();
    for (id, wrote) in authorships {
        if let (None, Some(message)) = (wrote.position, ids.get(&wrote.seq)) {
            run = run.case(Column::Id.eq(*message), Expr::value(*id));
            touched.push(*message);
        }
    }
    if touched.is_empty() {
        return Ok(());
    }
    message::Entity::update_many()
        .col_expr(Column::ConversationRunId, run.into())
        .filter(Column::Id.is_in(touched))
        .exec(tx)
        .await
        .map(|_| ())
}

async fn set_swipe_run_ids(
    tx: &impl ConnectionTrait,
    ids: &HashMap<i64, MessageId>,
    authorships: &[(RunId, ExportedAuthorship)],
) -> Result<(), DbErr> {
    use swipe::Column;
    let mut run = CaseStatement::new();
    let mut touched = Vec::new();
    for (id, wrote) in authorships {
        if let (Some(position), Some(message)) = (wrote.position, ids.get(&wrote.seq)) {
            let is_swipe = Condition::all()
                .add(Column::MessageId.eq(*message))
                .add(Column::Position.eq(position));
            run = run.case(is_swipe, Expr::value(*id));
            touched.push(*message);
        }
    }
    if touched.is_empty() {
        return Ok(());
    }
    let run = run.finally(Expr::col(Column::ConversationRunId));
    swipe::Entity::update_many()
        .col_expr(Column::ConversationRunId, run.into())
        .filter(Column::MessageId.is_in(touched))
        .exec(tx)
        .await
        .map(|_| ())
}
