//! Writes the effects of a step other than messages and runs: the sent prompt, macro variables, timed
//! lorebook effects, the start of the history, the changes of memories that a run requested, and the effects
//! of changed messages on memories and summaries. Also stores prompt and usage of a run that was canceled before its
//! executor could report them.

use base::clock::Timestamp;
use base::ids::{ConversationId, RunId, SpaceId};
use sea_orm::DbErr;
use serde_json::{Value, json};

use crate::conversations::message::MessageRole;
use crate::conversations::{conversation, message, token_usage};
use crate::db::connect::Db;
use crate::memories::memory_settings::MemorySettings;
use crate::memories::memory_store::NewSource;
use crate::memories::message_changes;
use crate::memories::message_changes::MessageChange;
use crate::memories::summaries::summary_changes;
use crate::memories::tasks::{learning_task, summarizing_task};
use crate::memories::tool::pending_changes;
use crate::memories::tool::pending_changes::RequestedChange;
use crate::prompt::history::history_window;
use crate::prompt::record::prompt_effects::PromptEffects;
use crate::prompt::record::run_prompt;
use crate::prompt::record::run_prompt::NewRunPrompt;
use crate::prompt::record::sent_prompt::SentPromptJson;
use crate::prompt::{prompt_state, space_variable};
use crate::runs::scheduling::command::SentPromptRef;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::{PlanWriter, WrittenMessage, WrittenPlan};
use crate::runs::store::{queue, run};

/// The first summary of a conversation covers at most this many messages, unless a person requested it:
/// an imported conversation may have many thousands, and each thirty cost a model call.
const MAX_FIRST_MESSAGES: i64 = 1_000;

/// The prompt and usage of a run that was canceled before its executor could report them.
#[derive(Clone)]
pub struct LatePrompt {
    pub run: RunId,
    pub conversation: ConversationId,
    pub space: SpaceId,
    /// The lease under which it was executed.
    pub lease: i64,
    /// `None`: only the director was asked.
    pub sent: Option<SentPromptRef>,
    /// Its usage when it was claimed.
    pub usage_before: Option<run::RunUsage>,
    /// The usage of its model calls since.
    pub usage: Option<run::RunUsage>,
    pub now: Timestamp,
}

/// Stores the prompt of a canceled run and charges its usage once: if the executor ended the run,
/// both are stored already. Stores nothing for a run that continues elsewhere or was recovered. For
/// one that was deleted with its conversation, only the usage is charged: once, or twice if the
/// connection to the database is lost during the commit and the caller tries again.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn store_late_prompt(db: &Db, late: LatePrompt) -> Result<(), DbErr> {
    let backend = db.backend();
    db.write(move |tx| {
        Box::pin(async move {
            // Waits for a deletion of the conversation.
            conversation::lock(tx, late.conversation).await?;
            let tokens = late.usage.map_or(0, run::RunUsage::total);
            let figures = late.sent.as_ref().map(|it| &it.stats);
            let run = (late.run, late.lease);
            let usage = (late.usage_before, late.usage);
            if queue::set_late_usage(tx, run, figures, usage).await? {
                token_usage::add_tokens(tx, late.space, late.conversation, tokens).await?;
                let Some(sent) = &late.sent else {
                    return Ok(());
                };
                let prompt = NewRunPrompt {
                    run: late.run,
                    conversation: late.conversation,
                    record: &sent.record,
                    created_at: late.now,
                };
                run_prompt::store(tx, backend, prompt).await?;
                run_prompt::prune(tx, late.conversation, 1).await?;
            } else if run::find(tx, late.run).await?.is_none() {
                // The run was deleted with its conversation, or by a job that is deleting it.
                token_usage::add_tokens(tx, late.space, late.conversation, tokens).await?;
            }
            Ok(())
        })
    })
    .await
}

/// Returns the smallest range of messages that contains both ranges.
pub(super) fn union(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

impl PlanWriter<'_> {
    /// Stores the prompt that a run sent.
    pub(super) async fn store_prompt(
        &self,
        schedule: &ScheduleState,
        run: RunId,
        record: &SentPromptJson,
    ) -> Result<(), DbErr> {
        let prompt = NewRunPrompt {
            run,
            conversation: schedule.conversation.id,
            record,
            created_at: self.now,
        };
        run_prompt::store(self.tx, self.backend, prompt).await
    }

    /// Requests to learn from the messages after `last_seq`, if the space learns. Greetings are texts
    /// of cards.
    pub(super) async fn learn_from_new_messages(
        &self,
        schedule: &mut ScheduleState,
        written: &WrittenPlan,
        last_seq: i64,
    ) -> Result<(), DbErr> {
        let is_learned = |it: &&WrittenMessage| {
            let is_reply = it.row.conversation_run_id.is_some();
            let is_read = match it.row.role {
                MessageRole::User => true,
                MessageRole::Assistant => is_reply,
                MessageRole::System => false,
            };
            is_read && it.row.is_remembered && !it.row.is_ooc
        };
        let mut new = written.messages.iter().filter(|it| it.row.seq > last_seq);
        let Some(first) = new.find(is_learned) else {
            return Ok(());
        };
        if !MemorySettings::of_space(&schedule.space.settings).learns() {
            return Ok(());
        }
        let (row, seq) = (&mut schedule.conversation, first.row.seq);
        learning_task::request_learning(self.tx, row, seq, self.now).await
    }

    /// Applies the change of a message to the memories and summaries that were made from it. Returns the
    /// first and the last message to learn from again.
    pub(super) async fn update_memory(
        &self,
        schedule: &ScheduleState,
        written: &mut WrittenPlan,
        row: &message::Model,
        change: MessageChange,
    ) -> Result<Option<(i64, i64)>, DbErr> {
        let (tx, now, conversation) = (self.tx, self.now, &schedule.conversation);
        if summary_changes::apply(tx, conversation, row.seq, change, now).await? {
            written.outdated_summaries =
                union(written.outdated_summaries, Some((row.seq, row.seq)));
        }
        let effect = message_changes::apply(tx, schedule.space.id, row, change, now).await?;
        written.memory_version = written.memory_version.or(effect.version);
        Ok(effect.relearned)
    }

    /// Requests to learn again from messages of which one has changed, if the space learns.
    pub(super) async fn learn_again(
        &self,
        schedule: &ScheduleState,
        seqs: (i64, i64),
    ) -> Result<(), DbErr> {
        if !MemorySettings::of_space(&schedule.space.settings).learns() {
            return Ok(());
        }
        learning_task::request_learning_again(self.tx, &schedule.conversation, seqs, self.now).await
    }

    /// Stores the changes of memories that a run requested, with its reply as their source. Called
    /// last, because it locks the space: a deletion of all memories of a space locks its conversations
    /// and tasks first, and then the space.
    pub(super) async fn change_memories(
        &self,
        schedule: &ScheduleState,
        written: &mut WrittenPlan,
    ) -> Result<(), DbErr> {
        let Some(changes) = written.pending_memory_changes.take() else {
            return Ok(());
        };
        let Some(reply) = written.messages.last().map(|it| &it.row) else {
            return Ok(());
        };
        let source = NewSource {
            conversation: reply.conversation_id,
            from_seq: reply.seq,
            to_seq: reply.seq,
            messages: vec![reply.id],
        };
        // No memories are added for a text of a message whose memory is off.
        let is_kept =
            |it: &&RequestedChange| reply.is_remembered || matches!(it, RequestedChange::Forget(_));
        let changes: Vec<RequestedChange> = changes.iter().filter(is_kept).cloned().collect();
        let (space, speaker) = (schedule.space.id, reply.space_membership_id);
        let version =
            pending_changes::apply(self.tx, space, speaker, &changes, &source, self.now).await?;
        written.memory_version = written.memory_version.or(version);
        Ok(())
    }

    /// Stores macro variables, timed lorebook effects and where the history began. The conversation's
    /// row is locked, so it contains what the previous run stored.
    pub(super) async fn store_effects(
        &self,
        schedule: &mut ScheduleState,
        effects: &PromptEffects,
    ) -> Result<(), DbErr> {
        let mut variables = schedule.conversation.variables.clone();
        for (name, value) in &effects.variables.conversation {
            if !variables["macros"].is_object() {
                variables["macros"] = json!({});
            }
            match (value, variables["macros"].as_object_mut()) {
                (Some(value), Some(known)) => {
                    known.insert(name.clone(), Value::from(value.as_str()));
                }
                (None, Some(known)) => {
                    known.shift_remove(name);
                }
                (_, None) => {}
            }
        }
        if let Some(lore) = &effects.timed_effects {
            variables["lore"] = lore.clone();
        }
        let row = &mut schedule.conversation;
        if variables != row.variables {
            prompt_state::set_variables(self.tx, row.id, variables.clone()).await?;
            row.variables = variables;
        }
        if let Some(new) = effects.history.new_start {
            let starts = history_window::with_start(&row.prompt_starts, new);
            prompt_state::set_prompt_starts(self.tx, row.id, starts.clone()).await?;
            row.prompt_starts = starts;
        }
        // Another run may have requested more since the prompt was built.
        let goal = effects.history.summary_goal;
        if let Some(goal) = goal.filter(|it| *it > row.summary_goal_seq) {
            if row.summary_goal_seq == 0 {
                row.summary_from_seq = (goal - MAX_FIRST_MESSAGES + 1).max(row.summary_from_seq);
            }
            row.summary_goal_seq = goal;
            summarizing_task::request(self.tx, row, self.now).await?;
        }
        space_variable::apply(self.tx, schedule.space.id, &effects.variables.space).await
    }
}
