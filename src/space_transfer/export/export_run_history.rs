//! Returns the run history of a conversation for an export, one page at a time: the ended rounds,
//! and the ended runs with their prompts and references to the texts that they wrote.
//!
//! **Invariant:** queued and running runs are not exported, nor are unfinished rounds: a copied
//! space must not start to generate.

use std::collections::{BTreeSet, HashMap};

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, RoundId, RunId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use tavern::chats::line_reader::MAX_LINE;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{message, swipe};
use crate::db::reading::row_slices;
use crate::prompt::record::hidden_cards::HiddenCards;
use crate::prompt::record::run_prompt;
use crate::rounds::{round, slot};
use crate::runs::store::run;
use crate::space_transfer::document;
use crate::space_transfer::document::{ExportedAuthorship, ExportedHistory};
use crate::space_transfer::export::export_documents::audience_keys;
use crate::spaces::membership;

/// Rounds or runs held in memory; of runs, as many as fit together with their prompts.
const PAGE_SIZE: u64 = 50;
/// Messages per query.
const IDS_PER_QUERY: usize = 1_000;

const ENDED_RUNS: [run::RunStatus; 4] = [
    run::RunStatus::Succeeded,
    run::RunStatus::Failed,
    run::RunStatus::Canceled,
    run::RunStatus::Skipped,
];

/// The texts that each run wrote; collected while the messages are exported.
#[derive(Debug, Default)]
pub struct WrittenTexts(HashMap<RunId, Vec<ExportedAuthorship>>);

impl WrittenTexts {
    /// Records which run wrote a message, and each of its swipes.
    pub fn record_text(&mut self, row: &message::Model, texts: &[swipe::Model]) {
        let shown = (None, row.conversation_run_id);
        let texts = texts.iter();
        let texts = texts.map(|it| (Some(it.position), it.conversation_run_id));
        for (position, run) in std::iter::once(shown).chain(texts) {
            if let Some(run) = run {
                self.0.entry(run).or_default().push(ExportedAuthorship {
                    conversation: row.conversation_id.0,
                    seq: row.seq,
                    position,
                });
            }
        }
    }
}

/// The progress of exporting the history of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct HistoryCursor<'a> {
    conversation_id: ConversationId,
    /// Who exports it: rounds, runs and messages that they do not see are left out.
    viewer: Viewer,
    /// Hidden cards, whose text must be removed from stored prompts.
    hidden: &'a HiddenCards,
    /// Runs and rounds that ended later are not exported.
    ended_before: Timestamp,
    last_round_id: Option<RoundId>,
    has_sent_rounds: bool,
    /// The number of the last exported run.
    last_run_seq: i64,
}

impl<'a> HistoryCursor<'a> {
    /// Starts at the beginning.
    pub fn new(
        (conversation_id, viewer): (ConversationId, Viewer),
        ended_before: Timestamp,
        hidden: &'a HiddenCards,
    ) -> Self {
        Self {
            conversation_id,
            viewer,
            hidden,
            ended_before,
            last_round_id: None,
            has_sent_rounds: false,
            last_run_seq: 0,
        }
    }

    /// Returns the conversation of this history.
    pub fn conversation_id(&self) -> ConversationId {
        self.conversation_id
    }

    /// Returns the next page, rounds before runs; `None` at the end.
    ///
    /// # Errors
    /// Returns `DbErr` when the database fails.
    pub async fn next_page(
        &mut self,
        db: &impl ConnectionTrait,
        written: &mut WrittenTexts,
    ) -> Result<Option<Vec<ExportedHistory>>, DbErr> {
        if !self.has_sent_rounds {
            let rounds = self.next_rounds(db).await?;
            if !rounds.is_empty() {
                return Ok(Some(rounds));
            }
            self.has_sent_rounds = true;
        }
        let runs = self.next_runs(db, written).await?;
        Ok((!runs.is_empty()).then_some(runs))
    }

    async fn next_rounds(
        &mut self,
        db: &impl ConnectionTrait,
    ) -> Result<Vec<ExportedHistory>, DbErr> {
        use round::Column;
        let mut page = round::Entity::find()
            .filter(Column::ConversationId.eq(self.conversation_id))
            .filter(Column::Status.ne(round::RoundStatus::Active))
            .filter(self.viewer.condition((round::Entity, Column::Audience)))
            .order_by_asc(Column::Id)
            .limit(PAGE_SIZE);
        if let Some(at) = self.last_round_id {
            page = page.filter(Column::Id.gt(at));
        }
        let page = page.all(db).await?;
        self.last_round_id = page.last().map(|it| it.id).or(self.last_round_id);
        let slots = || page.iter().flat_map(|it| &it.slots.0);
        let triggers = page.iter().filter_map(|it| it.trigger_message_id);
        let messages = triggers.chain(slots().filter_map(|it| it.message_id));
        let seqs = load_seqs(db, (self.conversation_id, self.viewer), messages.collect()).await?;
        let speakers: BTreeSet<MembershipId> =
            slots().filter_map(|it| it.space_membership_id).collect();
        let existing = membership::list_display_names(db, speakers).await?;
        let rounds = page.into_iter().map(|it| {
            // A guest who left without having spoken has no membership any more.
            let slots = it.slots.0.into_iter();
            let exists = |id: MembershipId| existing.contains_key(&id);
            let slots = slots.filter(|it| it.space_membership_id.is_none_or(exists));
            ExportedHistory::Round(document::ExportedRound {
                slots: slots.map(|it| exported_slot(it, &seqs)).collect(),
                key: it.id,
                status: it.status,
                kind: it.kind,
                state: it.state,
                cursor: it.cursor,
                trigger_seq: it.trigger_message_id.and_then(|it| seqs.get(&it).copied()),
                audience: audience_keys(it.audience.as_ref()),
                seed: it.seed,
                ended_reason: it.ended_reason,
                created_at: it.created_at,
            })
        });
        Ok(rounds.collect())
    }

    async fn next_runs(
        &mut self,
        db: &impl ConnectionTrait,
        written: &mut WrittenTexts,
    ) -> Result<Vec<ExportedHistory>, DbErr> {
        use run::Column;
        let page = run::Entity::find()
            .filter(Column::ConversationId.eq(self.conversation_id))
            .filter(Column::Status.is_in(ENDED_RUNS))
            .filter(Column::FinishedAt.lte(self.ended_before))
            .filter(Column::RunSeq.gt(self.last_run_seq))
            .filter(self.viewer.condition((run::Entity, Column::Audience)))
            .order_by_asc(Column::RunSeq)
            .limit(PAGE_SIZE);
        let mut page = page.all(db).await?;
        page.truncate(n_fitting(db, &page).await?);
        self.last_run_seq = page.last().map_or(self.last_run_seq, |it| it.run_seq);
        let prompts = run_prompt::Entity::find()
            .filter(run_prompt::Column::RunId.is_in(page.iter().map(|it| it.id)))
            .all(db)
            .await?;
        let mut message_ids = BTreeSet::new();
        for it in &page {
            message_ids.extend(it.debug.trigger_message_id);
            message_ids.extend(it.debug.target_message_id);
            message_ids.extend(it.debug.expected_last_message_id);
            message_ids.extend(it.superseded_by_message_id);
        }
        for it in &prompts {
            message_ids.extend(it.record.recorded_texts().into_iter().map(|it| it.message));
        }
        let seqs = load_seqs(db, (self.conversation_id, self.viewer), message_ids).await?;
        let mut prompts: HashMap<_, _> = prompts.into_iter().map(|it| (it.run_id, it)).collect();
        for prompt in prompts.values_mut() {
            self.hidden.withhold_from_record(&mut prompt.record);
        }
        let runs = page.into_iter().map(|it| {
            let prompt = prompts.remove(&it.id);
            let wrote = written.0.remove(&it.id).unwrap_or_default();
            ExportedHistory::Run(Box::new(run_document(it, prompt, wrote, &seqs)))
        });
        Ok(runs.collect())
    }
}

fn exported_slot(slot: slot::Slot, seqs: &HashMap<MessageId, i64>) -> document::ExportedSlot {
    document::ExportedSlot {
        position: slot.position,
        membership: slot.space_membership_id.map(|it| it.0),
        status: slot.status,
        message_seq: slot.message_id.and_then(|it| seqs.get(&it).copied()),
        skip_reason: slot.skip_reason,
        chosen_because: slot.chosen_because,
        forced: slot.forced,
    }
}

/// Returns how many of these runs may be held in memory with their prompts.
async fn n_fitting(db: &impl ConnectionTrait, page: &[run::Model]) -> Result<usize, DbErr> {
    let bytes: Vec<(RunId, i64)> = run_prompt::Entity::find()
        .filter(run_prompt::Column::RunId.is_in(page.iter().map(|it| it.id)))
        .select_only()
        .column(run_prompt::Column::RunId)
        .column_as(row_slices::json_bytes(run_prompt::Column::Record), "bytes")
        .into_tuple()
        .all(db)
        .await?;
    let bytes: HashMap<RunId, i64> = bytes.into_iter().collect();
    let of = |it: &run::Model| (it.id, bytes.get(&it.id).copied().unwrap_or_default());
    let all: Vec<(RunId, i64)> = page.iter().map(of).collect();
    Ok(row_slices::n_fitting(&all, row_slices::SLICE_BYTES))
}

/// Returns the `seq` of those of these messages that are in the conversation and that the viewer sees.
async fn load_seqs(
    db: &impl ConnectionTrait,
    (conversation, viewer): (ConversationId, Viewer),
    ids: BTreeSet<MessageId>,
) -> Result<HashMap<MessageId, i64>, DbErr> {
    let ids: Vec<MessageId> = ids.into_iter().collect();
    let mut seqs = HashMap::new();
    for piece in ids.chunks(IDS_PER_QUERY) {
        let found: Vec<(MessageId, i64)> = message::Entity::find()
            .select_only()
            .column(message::Column::Id)
            .column(message::Column::Seq)
            .filter(message::Column::Id.is_in(piece.iter().copied()))
            .filter(message::Column::ConversationId.eq(conversation))
            .filter(viewer.condition((message::Entity, message::Column::Audience)))
            .into_tuple()
            .all(db)
            .await?;
        seqs.extend(found);
    }
    Ok(seqs)
}

fn run_document(
    run: run::Model,
    prompt: Option<run_prompt::Model>,
    wrote: Vec<ExportedAuthorship>,
    seqs: &HashMap<MessageId, i64>,
) -> document::ExportedRun {
    let seq = |id: Option<MessageId>| id.and_then(|it| seqs.get(&it).copied());
    let prompt = prompt.map(|it| document::ExportedPrompt {
        record: it
            .record
            .remap_messages(|id| seqs.get(&id).copied().map(MessageId))
            .without_memories(),
        created_at: it.created_at,
    });
    document::ExportedRun {
        round: run.round_id,
        slot_position: run.slot_position,
        kind: run.kind,
        status: run.status,
        reason: run.reason,
        membership: run.speaker_space_membership_id.map(|it| it.0),
        audience: audience_keys(run.audience.as_ref()),
        run_after: run.run_after,
        burst_started_at: run.burst_started_at,
        created_at: run.created_at,
        cancel_requested_at: run.cancel_requested_at,
        keep_partial: run.keep_partial,
        started_at: run.started_at,
        finished_at: run.finished_at,
        heartbeat_at: run.heartbeat_at,
        attempt: run.attempt,
        cutoff_seq: run.cutoff_seq,
        error: run.error,
        usage: run.usage,
        trigger_seq: seq(run.debug.trigger_message_id),
        target_seq: seq(run.debug.target_message_id),
        expected_last_seq: seq(run.debug.expected_last_message_id),
        canceled_because: run.canceled_because,
        superseded_by_seq: seq(run.superseded_by_message_id),
        chosen_because: run.debug.chosen_because,
        skipped_because: run.debug.skipped_because,
        in_place: run.debug.in_place,
        figures: run.debug.prompt,
        prompt,
        wrote,
    }
}

/// Encodes an entry as a line. A prompt is omitted if the line would become too long.
///
/// # Errors
/// Returns an error if the entry cannot be serialized.
pub fn encode_line(entry: ExportedHistory) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(&entry)?;
    if let (true, ExportedHistory::Run(mut run)) = (line.len() >= MAX_LINE, entry) {
        run.prompt = None;
        line = serde_json::to_vec(&ExportedHistory::Run(run))?;
    }
    line.push(b'\n');
    Ok(line)
}
