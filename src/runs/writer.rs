//! Writes a plan, and keeps the situation in step with the rows.
//!
//! **Invariant:** each durable event takes the next `rev` of the conversation, in the order in
//! which it will be announced; the conversation's row is written once, at the end.

use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::newest_messages;
use crate::conversations::swipe;
use crate::conversations::timeline;
use crate::db::commit_verification::CommitProof;
use crate::db::connect::Backend;
use crate::ids::MessageId;
use crate::runs::error::EngineError;
use crate::runs::plan::Change;
use crate::runs::plan::Enqueue;
use crate::runs::plan::NewMessage;
use crate::runs::plan::Plan;
use crate::runs::plan::Reference;
use crate::runs::queue;
use crate::runs::queue::Stale;
use crate::runs::run;
use crate::runs::situation::Situation;
use crate::runs::writer_versions::bytes;
use crate::spaces::membership;
use crate::spaces::space;
use sea_orm::ActiveModelTrait;
use sea_orm::DatabaseTransaction;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::IntoActiveModel;

/// The transaction, the hour, and who writes.
pub struct Writer<'a> {
    pub tx: &'a DatabaseTransaction,
    pub now: Timestamp,
    pub node: &'a str,
    pub dialect: Backend,
}

/// What is to be announced once it is committed.
#[derive(Debug, Default)]
pub struct Written {
    /// Appended and changed messages.
    pub messages: Vec<Told>,
    /// Seats whose copilot spent a step.
    pub seats: Vec<membership::Model>,
    /// Runs that came to an end, each with the `rev` of its event if it has one of its own.
    pub ended: Vec<(run::Model, Option<i64>)>,
    /// Runs that went back to the queue.
    pub handed_back: Vec<run::Model>,
    pub queued: Option<(run::Model, i64)>,
    /// Set when state, round, queued or running run changed.
    pub queue_rev: Option<i64>,
    pub claimed: Option<run::Model>,
    /// Runs whose executor is to stop and commit what it has.
    pub asked: Vec<run::Model>,
    /// That all of this is committed.
    pub proof: Option<CommitProof>,
}

/// A message to tell of.
#[derive(Clone, Debug)]
pub struct Told {
    pub row: message::Model,
    /// Appended, or shown again.
    pub is_new: bool,
    pub n_swipes: i64,
}

impl Writer<'_> {
    /// Carries out the plan; gives back the situation as it is now.
    ///
    /// # Errors
    /// [`EngineError::Lost`] when a run is no longer where the plan expects it.
    pub async fn write(
        &self,
        mut s: Situation,
        plan: Plan,
    ) -> Result<(Situation, Written), EngineError> {
        let before = (s.conversation.rev, s.conversation.last_seq);
        let mut written = Written::default();
        let mut queue_changed = plan.enqueue.is_some();
        for change in plan.changes {
            queue_changed |= self.apply(&mut s, &mut written, change).await?;
            crate::fail_point!("step.between", ?);
        }
        // Messages are announced first, so what ends takes its numbers behind them all.
        for (run, rev) in &mut written.ended {
            // A success is told by its message.
            *rev = (run.status != run::RunStatus::Succeeded).then(|| next_rev(&mut s));
        }
        if let Some(enqueue) = plan.enqueue {
            self.enqueue(&mut s, &mut written, enqueue).await?;
        }
        if queue_changed {
            written.queue_rev = Some(next_rev(&mut s));
        }
        if before != (s.conversation.rev, s.conversation.last_seq) {
            written.proof =
                conversation::save_counters(self.tx, &s.conversation, self.dialect).await?;
        }
        Ok((s, written))
    }

    /// Writes one change; says whether it is one of the queue.
    async fn apply(
        &self,
        s: &mut Situation,
        written: &mut Written,
        change: Change,
    ) -> Result<bool, EngineError> {
        match change {
            Change::Append(new) => self.append(s, written, new).await?,
            Change::SetVisibility { visibility, .. } => {
                self.change_subject(s, written, |it| it.visibility = visibility)
                    .await?;
            }
            Change::SetContent(edit) => self.set_content(s, written, edit).await?,
            Change::HideTurn(turn) => self.hide_turn(s, written, turn).await?,
            Change::AddSwipe(text) => self.add_swipe(s, written, text).await?,
            Change::ShowSwipe(swipe) => self.show_swipe(s, written, swipe).await?,
            Change::Keep(run, record) => self.keep(s, run, &record).await?,
            Change::Remember(memory) => self.remember(s, &memory).await?,
            Change::CopilotStep(seat) => {
                let spent = membership::spend_copilot_step(self.tx, seat).await?;
                let mut members = s.members.iter_mut();
                if let (Some(seat), Some(it)) = (spent, members.find(|it| it.id == seat)) {
                    *it = seat.clone();
                    written.seats.push(seat);
                }
            }
            Change::AutoModeTurns(n) => s.conversation.auto_mode_turns = n,
            Change::AskCancel(run) => {
                won(queue::request_cancel(self.tx, run.id, self.now).await?)?;
                if let Some(running) = s.running.as_mut() {
                    running.cancel_requested_at = Some(self.now);
                    running.keep_partial = true;
                }
                written.asked.push(run);
                return Ok(true);
            }
            Change::NewRound { .. }
            | Change::EndRound { .. }
            | Change::MoveRound { .. }
            | Change::ReplaceSlots { .. }
            | Change::MarkSlot { .. } => {
                self.change_round(s, change).await?;
                return Ok(true);
            }
            other => {
                self.move_run(s, written, other).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn append(
        &self,
        s: &mut Situation,
        written: &mut Written,
        new: NewMessage,
    ) -> Result<(), DbErr> {
        let id = s.conversation.id;
        let mut row = timeline::new_model(id, new.author, new.role, new.content, self.now);
        s.conversation.last_seq += 1;
        row.seq = s.conversation.last_seq;
        row.rev = next_rev(s);
        row.client_id = new.client_id;
        row.conversation_run_id = new.run;
        row.token_count = new.token_count;
        row.metadata = new.metadata;
        let row = timeline::append(self.tx, row).await?;
        let alternates = new.alternates.iter().map(|it| it.content.len());
        s.conversation.text_bytes += bytes(row.content.len() + alternates.sum::<usize>());
        match row.role {
            message::MessageRole::Assistant => {
                s.last_speaker = Some(row.space_membership_id);
                s.conversation.last_speaker_membership_id = s.last_speaker;
                s.conversation.last_assistant_seq = Some(row.seq);
            }
            message::MessageRole::User => s.conversation.last_user_seq = Some(row.seq),
            message::MessageRole::System => {}
        }
        s.tail = Some(row.clone());
        let n_swipes = swipe::append_all(self.tx, row.id, 0, new.alternates).await?;
        written.messages.push(Told {
            row,
            is_new: true,
            n_swipes,
        });
        Ok(())
    }

    pub(super) async fn change_subject(
        &self,
        s: &mut Situation,
        written: &mut Written,
        change: impl FnOnce(&mut message::Model),
    ) -> Result<(), DbErr> {
        let Some(mut row) = s.subject.clone() else {
            return Ok(());
        };
        let was_hidden = row.visibility == message::Visibility::Hidden;
        let shown = (row.content.clone(), row.active_swipe);
        change(&mut row);
        s.conversation.text_bytes += bytes(row.content.len()) - bytes(shown.0.len());
        if shown != (row.content.clone(), row.active_swipe) {
            row.version += 1;
        }
        row.rev = next_rev(s);
        let active = row.clone().into_active_model().reset_all();
        message::Entity::update(active).exec(self.tx).await?;
        if was_hidden != (row.visibility == message::Visibility::Hidden) {
            self.find_newest(s).await?;
        }
        s.subject = Some(row.clone());
        let n_swipes = s.subject_n_swipes;
        written.messages.push(Told {
            row,
            is_new: was_hidden,
            n_swipes,
        });
        Ok(())
    }

    /// Computes the newest messages of each role again, because one was hidden or restored.
    pub(super) async fn find_newest(&self, s: &mut Situation) -> Result<(), DbErr> {
        let newest = newest_messages::find(self.tx, s.conversation.id).await?;
        newest.apply_to(&mut s.conversation);
        s.last_speaker = newest.last_speaker;
        Ok(())
    }

    /// The space's count rises by what a run cost, in the transaction that ends it.
    async fn spend(&self, s: &mut Situation, run: &run::Model) -> Result<(), DbErr> {
        let tokens = run.usage.map_or(0, run::Usage::total);
        if tokens == 0 {
            return Ok(());
        }
        s.space.tokens_used = s.space.tokens_used.saturating_add(tokens);
        space::add_tokens_used(self.tx, s.space.id, tokens).await
    }

    async fn move_run(
        &self,
        s: &mut Situation,
        written: &mut Written,
        change: Change,
    ) -> Result<(), EngineError> {
        let (tx, now) = (self.tx, self.now);
        match change {
            Change::Claim(run) => self.claim(s, written, run).await?,
            Change::SkipQueued(run) => {
                won(queue::skip(tx, &run, now).await?)?;
                self.spend(s, &run).await?;
                self.left_queue(s, written, run, run::RunStatus::Skipped, None);
            }
            Change::CancelQueued(mut run) => {
                run.name_post(resolve(Reference::Appended, s));
                won(queue::cancel_queued(tx, &run, now).await?)?;
                self.spend(s, &run).await?;
                self.left_queue(s, written, run, run::RunStatus::Canceled, None);
            }
            Change::FailQueued(run, error) => {
                won(queue::fail_queued(tx, &run, &error, now).await?)?;
                self.spend(s, &run).await?;
                self.left_queue(s, written, run, run::RunStatus::Failed, Some(error));
            }
            Change::Finish { mut run, end } => {
                run.name_post(resolve(Reference::Appended, s));
                won(queue::finish(tx, &run, run.lease, &end, now).await?)?;
                self.spend(s, &run).await?;
                self.stopped_running(s, written, run, end);
            }
            Change::Expire {
                run,
                end,
                silent_for_ms,
            } => {
                let stale = Stale {
                    after_ms: silent_for_ms,
                    dialect: self.dialect,
                };
                won(queue::expire(tx, &run, run.lease, &end, now, &stale).await?)?;
                self.spend(s, &run).await?;
                crate::fail_point!("reap.mid", ?);
                self.stopped_running(s, written, run, end);
            }
            Change::HandBack(run) => {
                won(queue::hand_back(tx, &run, run.lease).await?)?;
                s.running = None;
                let mut queued = run.clone();
                queued.status = run::RunStatus::Queued;
                (queued.worker_id, queued.cutoff_seq) = (None, None);
                (queued.started_at, queued.heartbeat_at) = (None, None);
                queued.waiting_for = None;
                s.queued = Some(queued);
                written.handed_back.push(run);
            }
            _ => {}
        }
        Ok(())
    }

    async fn claim(
        &self,
        s: &mut Situation,
        written: &mut Written,
        run: run::Model,
    ) -> Result<(), EngineError> {
        let dialect = self.dialect;
        let claimed = queue::claim(self.tx, run.id, self.node, self.now, dialect).await?;
        let mut claimed = claimed.ok_or(EngineError::Lost)?;
        claimed.cutoff_seq = Some(queue::set_cutoff(self.tx, run.id).await?);
        s.queued = None;
        s.running = Some(claimed.clone());
        written.claimed = Some(claimed);
        Ok(())
    }

    fn left_queue(
        &self,
        s: &mut Situation,
        written: &mut Written,
        mut run: run::Model,
        status: run::RunStatus,
        error: Option<run::Error>,
    ) {
        s.queued = None;
        run.status = status;
        run.finished_at = Some(self.now);
        run.error = error;
        written.ended.push((run, None));
    }

    fn stopped_running(
        &self,
        s: &mut Situation,
        written: &mut Written,
        mut run: run::Model,
        end: queue::End,
    ) {
        s.running = None;
        run.status = end.status();
        run.finished_at = Some(self.now);
        run.waiting_for = None;
        if let queue::End::Failed(error) = end {
            run.error = Some(error);
        }
        written.ended.push((run, None));
    }

    async fn enqueue(
        &self,
        s: &mut Situation,
        written: &mut Written,
        enqueue: Enqueue,
    ) -> Result<(), DbErr> {
        let mut run = enqueue.run;
        run.debug.trigger_message_id = enqueue.trigger.and_then(|it| resolve(it, s));
        run.debug.expected_last_message_id = enqueue.expected_tail.and_then(|it| resolve(it, s));
        s.conversation.last_run_seq += 1;
        run.run_seq = s.conversation.last_run_seq;
        let run = queue::enqueue(self.tx, run).await?;
        s.queued = Some(run.clone());
        written.queued = Some((run, next_rev(s)));
        Ok(())
    }
}

pub(super) fn next_rev(s: &mut Situation) -> i64 {
    s.conversation.rev += 1;
    s.conversation.rev
}

/// The message that is meant; the appended one is the tail by now.
pub(super) fn resolve(reference: Reference, s: &Situation) -> Option<MessageId> {
    match reference {
        Reference::Message(id) => Some(id),
        Reference::Appended => s.tail.as_ref().map(|it| it.id),
    }
}

fn won(moved: bool) -> Result<(), EngineError> {
    if moved {
        Ok(())
    } else {
        Err(EngineError::Lost)
    }
}
