//! What has happened in a space goes out: the rounds and runs that have ended, a page at a time.
//!
//! **Invariant:** what is queued or runs stays behind, and so does a round that goes on: a copied
//! room does not begin to speak by itself.

use crate::clock::Timestamp;
use crate::conversations::chat_reader::MAX_LINE;
use crate::conversations::message;
use crate::conversations::swipe;
use crate::db::slices;
use crate::ids::ConversationId;
use crate::ids::MessageId;
use crate::ids::RoundId;
use crate::ids::RunId;
use crate::prompt::card_use::HiddenCards;
use crate::prompt::run_prompt;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::run;
use crate::transfers::document;
use crate::transfers::document::Past;
use crate::transfers::document::Wrote;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use std::collections::BTreeSet;
use std::collections::HashMap;

/// How many rounds or runs are held at once; of runs, as many as fit with what they sent.
const PAGE: u64 = 50;
/// How many messages are asked for at a time.
const PIECE: usize = 1_000;

const ENDED_RUNS: [run::RunStatus; 4] = [
    run::RunStatus::Succeeded,
    run::RunStatus::Failed,
    run::RunStatus::Canceled,
    run::RunStatus::Skipped,
];

/// Which texts each run wrote: found while the messages go out.
#[derive(Debug, Default)]
pub struct Written(HashMap<RunId, Vec<Wrote>>);

impl Written {
    /// Notes who wrote a message, and each of its texts.
    pub fn note(&mut self, row: &message::Model, texts: &[swipe::Model]) {
        let shown = (None, row.conversation_run_id);
        let texts = texts.iter();
        let texts = texts.map(|it| (Some(it.position), it.conversation_run_id));
        for (position, run) in std::iter::once(shown).chain(texts) {
            if let Some(run) = run {
                self.0.entry(run).or_default().push(Wrote {
                    conversation: row.conversation_id.0,
                    seq: row.seq,
                    position,
                });
            }
        }
    }
}

/// How far what has happened in a conversation has gone out.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    conversation: ConversationId,
    /// The cards whose text stays out of stored prompts.
    hidden: &'a HiddenCards,
    /// What ended later is not in the file.
    until: Timestamp,
    rounds: Option<RoundId>,
    are_rounds_out: bool,
    /// The number of the last run that left.
    runs: i64,
}

impl<'a> Leaving<'a> {
    /// From the beginning.
    pub fn begin(conversation: ConversationId, until: Timestamp, hidden: &'a HiddenCards) -> Self {
        Self {
            conversation,
            hidden,
            until,
            rounds: None,
            are_rounds_out: false,
            runs: 0,
        }
    }

    /// Whose past it is.
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// The next of it, rounds before runs; `None` at the end.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next(
        &mut self,
        db: &impl ConnectionTrait,
        written: &mut Written,
    ) -> Result<Option<Vec<Past>>, DbErr> {
        if !self.are_rounds_out {
            let rounds = self.next_rounds(db).await?;
            if !rounds.is_empty() {
                return Ok(Some(rounds));
            }
            self.are_rounds_out = true;
        }
        let runs = self.next_runs(db, written).await?;
        Ok((!runs.is_empty()).then_some(runs))
    }

    async fn next_rounds(&mut self, db: &impl ConnectionTrait) -> Result<Vec<Past>, DbErr> {
        use round::Column;
        let mut page = round::Entity::find()
            .filter(Column::ConversationId.eq(self.conversation))
            .filter(Column::Status.ne(round::RoundStatus::Active))
            .order_by_asc(Column::Id)
            .limit(PAGE);
        if let Some(at) = self.rounds {
            page = page.filter(Column::Id.gt(at));
        }
        let page = page.all(db).await?;
        self.rounds = page.last().map(|it| it.id).or(self.rounds);
        let triggers = page.iter().filter_map(|it| it.trigger_message_id);
        let seqs = seqs(db, self.conversation, triggers.collect()).await?;
        let mut slots: HashMap<RoundId, Vec<document::Slot>> = HashMap::new();
        for it in slot::list_for_rounds(db, page.iter().map(|it| it.id)).await? {
            slots.entry(it.round_id).or_default().push(document::Slot {
                position: it.position,
                seat: it.space_membership_id.0,
                status: it.status,
                skip_reason: it.skip_reason,
                chosen_because: it.chosen_because,
                forced: it.forced,
            });
        }
        let rounds = page.into_iter().map(|it| {
            Past::Round(document::Round {
                slots: slots.remove(&it.id).unwrap_or_default(),
                key: it.id,
                status: it.status,
                kind: it.kind,
                state: it.state,
                cursor: it.cursor,
                trigger_seq: it.trigger_message_id.and_then(|it| seqs.get(&it).copied()),
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
        written: &mut Written,
    ) -> Result<Vec<Past>, DbErr> {
        use run::Column;
        let page = run::Entity::find()
            .filter(Column::ConversationId.eq(self.conversation))
            .filter(Column::Status.is_in(ENDED_RUNS))
            .filter(Column::FinishedAt.lte(self.until))
            .filter(Column::RunSeq.gt(self.runs))
            .order_by_asc(Column::RunSeq)
            .limit(PAGE);
        let mut page = page.all(db).await?;
        page.truncate(n_fitting(db, &page).await?);
        self.runs = page.last().map_or(self.runs, |it| it.run_seq);
        let prompts = run_prompt::Entity::find()
            .filter(run_prompt::Column::RunId.is_in(page.iter().map(|it| it.id)))
            .all(db)
            .await?;
        let mut named = BTreeSet::new();
        for it in &page {
            named.extend(it.debug.trigger_message_id);
            named.extend(it.debug.target_message_id);
            named.extend(it.debug.expected_last_message_id);
            named.extend(it.superseded_by_message_id);
        }
        for it in &prompts {
            named.extend(it.record.recorded_texts().into_iter().map(|it| it.message));
        }
        let seqs = seqs(db, self.conversation, named).await?;
        let mut prompts: HashMap<_, _> = prompts.into_iter().map(|it| (it.run_id, it)).collect();
        for prompt in prompts.values_mut() {
            self.hidden.withhold_from_record(&mut prompt.record);
        }
        let runs = page.into_iter().map(|it| {
            let prompt = prompts.remove(&it.id);
            let wrote = written.0.remove(&it.id).unwrap_or_default();
            Past::Run(Box::new(document_of(it, prompt, wrote, &seqs)))
        });
        Ok(runs.collect())
    }
}

/// How many of the first of these runs may be held with what they sent.
async fn n_fitting(db: &impl ConnectionTrait, page: &[run::Model]) -> Result<usize, DbErr> {
    let bytes: Vec<(RunId, i64)> = run_prompt::Entity::find()
        .filter(run_prompt::Column::RunId.is_in(page.iter().map(|it| it.id)))
        .select_only()
        .column(run_prompt::Column::RunId)
        .column_as(slices::json_bytes(run_prompt::Column::Record), "bytes")
        .into_tuple()
        .all(db)
        .await?;
    let bytes: HashMap<RunId, i64> = bytes.into_iter().collect();
    let of = |it: &run::Model| (it.id, bytes.get(&it.id).copied().unwrap_or_default());
    let all: Vec<(RunId, i64)> = page.iter().map(of).collect();
    Ok(slices::n_fitting(&all, slices::SLICE_BYTES))
}

/// The numbers of these messages, of those that are in the conversation.
async fn seqs(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    ids: BTreeSet<MessageId>,
) -> Result<HashMap<MessageId, i64>, DbErr> {
    let ids: Vec<MessageId> = ids.into_iter().collect();
    let mut seqs = HashMap::new();
    for piece in ids.chunks(PIECE) {
        let found: Vec<(MessageId, i64)> = message::Entity::find()
            .select_only()
            .column(message::Column::Id)
            .column(message::Column::Seq)
            .filter(message::Column::Id.is_in(piece.iter().copied()))
            .filter(message::Column::ConversationId.eq(conversation))
            .into_tuple()
            .all(db)
            .await?;
        seqs.extend(found);
    }
    Ok(seqs)
}

fn document_of(
    it: run::Model,
    prompt: Option<run_prompt::Model>,
    wrote: Vec<Wrote>,
    seqs: &HashMap<MessageId, i64>,
) -> document::Run {
    let seq = |id: Option<MessageId>| id.and_then(|it| seqs.get(&it).copied());
    let prompt = prompt.map(|it| document::Prompt {
        record: it
            .record
            .remap_messages(|id| seqs.get(&id).copied().map(MessageId)),
        created_at: it.created_at,
    });
    document::Run {
        round: it.round_id,
        slot_position: it.slot_position,
        kind: it.kind,
        status: it.status,
        reason: it.reason,
        seat: it.speaker_space_membership_id.0,
        run_after: it.run_after,
        burst_started_at: it.burst_started_at,
        created_at: it.created_at,
        cancel_requested_at: it.cancel_requested_at,
        keep_partial: it.keep_partial,
        started_at: it.started_at,
        finished_at: it.finished_at,
        heartbeat_at: it.heartbeat_at,
        attempt: it.attempt,
        cutoff_seq: it.cutoff_seq,
        error: it.error,
        usage: it.usage,
        trigger_seq: seq(it.debug.trigger_message_id),
        target_seq: seq(it.debug.target_message_id),
        expected_last_seq: seq(it.debug.expected_last_message_id),
        canceled_because: it.canceled_because,
        superseded_by_seq: seq(it.superseded_by_message_id),
        chosen_because: it.debug.chosen_because,
        skipped_because: it.debug.skipped_because,
        figures: it.debug.prompt,
        prompt,
        wrote,
    }
}

/// The line of what has happened. What a run sent is left out where it is longer than a line may be.
///
/// # Errors
/// When it cannot be written.
pub fn line(past: Past) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(&past)?;
    if let (true, Past::Run(mut run)) = (line.len() >= MAX_LINE, past) {
        run.prompt = None;
        line = serde_json::to_vec(&Past::Run(run))?;
    }
    line.push(b'\n');
    Ok(line)
}
