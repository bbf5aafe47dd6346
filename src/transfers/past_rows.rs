//! What has happened in a space comes in: rounds and runs that have ended, what they sent, and who
//! wrote what. All messages are there before.

use crate::clock::Timestamp;
use crate::conversations::import_job;
use crate::conversations::import_writer::ChatImportError;
use crate::conversations::message;
use crate::conversations::swipe;
use crate::db::connect::Db;
use crate::ids::ConversationId;
use crate::ids::ImportId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::RoundId;
use crate::ids::RunId;
use crate::ids::SlotId;
use crate::ids::SpaceId;
use crate::prompt::run_prompt;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::queue;
use crate::runs::run;
use crate::transfers::document;
use crate::transfers::document::Past;
use crate::transfers::document::Wrote;
use crate::transfers::rows::Known;
use crate::transfers::rows::broken;
use sea_orm::ActiveValue::Set;
use sea_orm::ColumnTrait;
use sea_orm::Condition;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::IntoActiveModel;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use sea_orm::sea_query::CaseStatement;
use sea_orm::sea_query::Expr;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Arc;

/// More rounds than a conversation of a lifetime has; their ids are held.
const MAX_ROUNDS: usize = 500_000;
/// The columns of short words.
const MAX_WORD: usize = 64;
/// How much goes into one statement.
const PIECE: usize = 500;

/// The new ids of the rounds of a conversation.
#[derive(Debug, Default)]
pub struct Rounds(HashMap<RoundId, RoundId>);

/// Where a batch goes.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub space: SpaceId,
    /// Its key in the file.
    pub conversation: i64,
    /// How many messages of all conversations are there.
    pub n_messages: i64,
    pub now: Timestamp,
}

impl Rounds {
    /// Gives the rounds of a batch ids of this house, and has its runs name those. A run of a round
    /// that is not in the file is of none.
    fn rename(&mut self, batch: &mut [Past]) -> Result<(), ChatImportError> {
        for it in batch {
            match it {
                Past::Round(it) => {
                    let new = RoundId::new();
                    if self.0.insert(it.key, new).is_some() || self.0.len() > MAX_ROUNDS {
                        return Err(broken("the rounds"));
                    }
                    it.key = new;
                }
                Past::Run(it) => {
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
/// When it says what cannot be, when the import was canceled, or the database fails.
pub async fn write(
    db: &Db,
    import: ImportId,
    place: Place,
    known: Arc<Known>,
    rounds: &mut Rounds,
    mut batch: Vec<Past>,
) -> Result<(), ChatImportError> {
    rounds.rename(&mut batch)?;
    db.write(move |tx| {
        Box::pin(async move {
            if !import_job::heartbeat(tx, import, 0, place.n_messages, place.now).await? {
                return Err(ChatImportError::Canceled);
            }
            let conversation = known.conversations[&place.conversation];
            let named = batch.iter().flat_map(named_by).collect();
            let ids = ids(tx, conversation, named).await?;
            let scene = Scene {
                space: place.space,
                conversation,
                seats: &known.seats,
                messages: &ids,
            };
            let mut rows = Rows::default();
            for it in batch {
                match it {
                    Past::Round(it) => rows.add_round(&scene, it)?,
                    Past::Run(it) => rows.add_run(&scene, *it)?,
                }
            }
            rows.write(tx, conversation).await?;
            sign(tx, &known, rows.signed).await
        })
    })
    .await
}

/// The numbers of the messages that a line names.
fn named_by(past: &Past) -> Vec<i64> {
    match past {
        Past::Round(it) => it.trigger_seq.into_iter().collect(),
        Past::Run(it) => {
            let debug = [
                it.trigger_seq,
                it.target_seq,
                it.expected_last_seq,
                it.superseded_by_seq,
            ];
            let said = it.prompt.iter().flat_map(|it| it.record.recorded_texts());
            let said = said.map(|it| it.message.0);
            debug.into_iter().flatten().chain(said).collect()
        }
    }
}

/// What stands for what a file names.
struct Scene<'a> {
    space: SpaceId,
    conversation: ConversationId,
    seats: &'a HashMap<i64, MembershipId>,
    messages: &'a HashMap<i64, MessageId>,
}

impl Scene<'_> {
    fn seat(&self, key: i64) -> Result<MembershipId, ChatImportError> {
        let seat = self.seats.get(&key).copied();
        seat.ok_or_else(|| broken("the speaker of a run"))
    }

    fn message(&self, seq: Option<i64>) -> Option<MessageId> {
        seq.and_then(|it| self.messages.get(&it).copied())
    }
}

fn word(text: Option<String>) -> Result<Option<String>, ChatImportError> {
    match text {
        Some(text) if text.chars().count() > MAX_WORD => Err(broken("the rounds")),
        text => Ok(text),
    }
}

/// The rows of a batch.
#[derive(Default)]
struct Rows {
    rounds: Vec<round::ActiveModel>,
    slots: Vec<slot::Model>,
    runs: Vec<run::Model>,
    prompts: Vec<run_prompt::ActiveModel>,
    signed: Vec<(RunId, Wrote)>,
}

impl Rows {
    fn add_round(&mut self, scene: &Scene, it: document::Round) -> Result<(), ChatImportError> {
        if it.status == round::RoundStatus::Active {
            return Err(broken("the rounds"));
        }
        for slot in it.slots {
            self.slots.push(slot::Model {
                id: SlotId(0), // given by the database
                round_id: it.key,
                position: slot.position,
                space_membership_id: scene.seat(slot.seat)?,
                status: slot.status,
                skip_reason: word(slot.skip_reason)?,
                chosen_because: slot.chosen_because,
                forced: slot.forced,
            });
        }
        let row = round::Model {
            id: it.key,
            conversation_id: scene.conversation,
            status: it.status,
            kind: it.kind,
            state: it.state,
            cursor: it.cursor,
            trigger_message_id: scene.message(it.trigger_seq),
            seed: it.seed,
            ended_reason: word(it.ended_reason)?,
            created_at: it.created_at,
        };
        self.rounds.push(row.into_active_model());
        Ok(())
    }

    fn add_run(&mut self, scene: &Scene, it: document::Run) -> Result<(), ChatImportError> {
        if !it.status.is_final() {
            return Err(broken("the runs"));
        }
        let id = RunId::new();
        let wrote = it.wrote.iter().map(|wrote| (id, *wrote));
        self.signed.extend(wrote);
        if let Some(prompt) = it.prompt {
            let named = |seq: MessageId| scene.message(Some(seq.0));
            let mut record = prompt.record.remap_messages(named);
            // The characters have other ids here.
            record.cards = None;
            // The entries of the books have other numbers here.
            for entry in record.lore.fired.iter_mut().chain(&mut record.lore.dropped) {
                entry.entry_id = None;
            }
            self.prompts.push(run_prompt::ActiveModel {
                run_id: Set(id),
                conversation_id: Set(scene.conversation),
                record: Set(record),
                created_at: Set(prompt.created_at),
            });
        }
        let debug = run::RunDebug {
            chosen_because: it.chosen_because,
            trigger_message_id: scene.message(it.trigger_seq),
            target_message_id: scene.message(it.target_seq),
            expected_last_message_id: scene.message(it.expected_last_seq),
            skipped_because: it.skipped_because,
            prompt: it.figures,
        };
        self.runs.push(run::Model {
            id,
            conversation_id: scene.conversation,
            run_seq: 0, // given when it is written
            space_id: scene.space,
            round_id: it.round,
            slot_position: it.slot_position,
            kind: it.kind,
            status: it.status,
            reason: it.reason,
            speaker_space_membership_id: scene.seat(it.seat)?,
            run_after: it.run_after,
            burst_started_at: it.burst_started_at,
            created_at: it.created_at,
            cancel_requested_at: it.cancel_requested_at,
            keep_partial: it.keep_partial,
            started_at: it.started_at,
            finished_at: it.finished_at,
            heartbeat_at: it.heartbeat_at,
            worker_id: None,
            attempt: it.attempt.max(1),
            lease: 0,
            waiting_for: None,
            cutoff_seq: it.cutoff_seq,
            error: it.error,
            usage: it.usage,
            debug,
            canceled_because: it.canceled_because,
            superseded_by_message_id: scene.message(it.superseded_by_seq),
        });
        Ok(())
    }

    async fn write(
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
        for piece in self.slots.chunks(PIECE) {
            slot::insert(tx, piece).await?;
        }
        queue::restore(tx, conversation, std::mem::take(&mut self.runs)).await?;
        run_prompt::restore(tx, conversation, std::mem::take(&mut self.prompts)).await
    }
}

/// Notes at each text which run wrote it.
async fn sign(
    tx: &impl ConnectionTrait,
    known: &Known,
    signed: Vec<(RunId, Wrote)>,
) -> Result<(), ChatImportError> {
    let mut by_conversation: HashMap<i64, Vec<(RunId, Wrote)>> = HashMap::new();
    for it in signed {
        let of_conversation = by_conversation.entry(it.1.conversation).or_default();
        of_conversation.push(it);
    }
    for (key, signed) in by_conversation {
        let conversation = known.conversations.get(&key).copied();
        let conversation = conversation.ok_or_else(|| broken("what runs wrote"))?;
        let seqs = signed.iter().map(|(_, it)| it.seq).collect();
        let ids = ids(tx, conversation, seqs).await?;
        for piece in signed.chunks(PIECE) {
            sign_messages(tx, &ids, piece).await?;
            sign_texts(tx, &ids, piece).await?;
        }
    }
    Ok(())
}

async fn sign_messages(
    tx: &impl ConnectionTrait,
    ids: &HashMap<i64, MessageId>,
    signed: &[(RunId, Wrote)],
) -> Result<(), DbErr> {
    use message::Column;
    let mut run = CaseStatement::new();
    let mut touched = Vec::new();
    for (id, wrote) in signed {
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

async fn sign_texts(
    tx: &impl ConnectionTrait,
    ids: &HashMap<i64, MessageId>,
    signed: &[(RunId, Wrote)],
) -> Result<(), DbErr> {
    use swipe::Column;
    let mut run = CaseStatement::new();
    let mut touched = Vec::new();
    for (id, wrote) in signed {
        if let (Some(position), Some(message)) = (wrote.position, ids.get(&wrote.seq)) {
            let is_it = Condition::all()
                .add(Column::MessageId.eq(*message))
                .add(Column::Position.eq(position));
            run = run.case(is_it, Expr::value(*id));
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

/// The messages of a conversation with these numbers.
async fn ids(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    seqs: BTreeSet<i64>,
) -> Result<HashMap<i64, MessageId>, DbErr> {
    let seqs: Vec<i64> = seqs.into_iter().collect();
    let mut ids = HashMap::new();
    for piece in seqs.chunks(PIECE) {
        let found: Vec<(i64, MessageId)> = message::Entity::find()
            .select_only()
            .column(message::Column::Seq)
            .column(message::Column::Id)
            .filter(message::Column::ConversationId.eq(conversation))
            .filter(message::Column::Seq.is_in(piece.iter().copied()))
            .into_tuple()
            .all(tx)
            .await?;
        ids.extend(found);
    }
    Ok(ids)
}
