//! Summarizes conversations in the background: a model writes the missing texts, one step after the
//! other.
//!
//! **Invariant:** a step is stored under the lock of the conversation, only if the task is still held
//! and its input has not changed. Otherwise the text is dropped, and the step is repeated.

use base::ids::{ConversationId, MessageId, SummaryId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use tokio_util::sync::CancellationToken;

use crate::conversations::{conversation, message};
use crate::memories::error::MemoryError;
use crate::memories::learning::message_learning::LearningServices;
use crate::memories::memory_settings::SummarySettings;
use crate::memories::models::memory_models::{MemoryModel, MemoryModelError};
use crate::memories::summaries::summary;
use crate::memories::summaries::summary::{SummaryLevel, SummaryStatus};
use crate::memories::summaries::summary_input::{load_messages, with_names};
use crate::memories::summaries::summary_plan::{SummaryState, SummaryStep, next_step};
use crate::memories::summaries::summary_request::{
    PartText, build_part_request, build_running_request, parse_summary,
};
use crate::memories::summaries::summary_store::{NewVersion, SummaryAuthor, put_in_use};
use crate::memories::tasks::{memory_task, task_queue};
use crate::providers::json_requests::json_request::JsonRequest;
use crate::spaces::space;

/// The maximum number of tokens of the messages or parts in one request; fewer for a model with a small
/// context window. A part has at least one message, which is cut if necessary.
const MAX_INPUT_TOKENS: i64 = 4_000;
/// After so many stored texts, other tasks come first.
const MAX_STEPS: usize = 16;
/// How often a step is repeated because its input changed during the call; then it fails and is
/// retried later.
const MAX_DROPPED_TEXTS: usize = 5;

/// A conversation to summarize.
struct Work {
    row: conversation::Model,
    space: space::Model,
    settings: SummarySettings,
    model: MemoryModel,
    parts: Vec<summary::Model>,
    running: Option<summary::Model>,
    step: SummaryStep,
}

/// The input of a step, by which a change of it is detected.
#[derive(Clone)]
enum StepInput {
    /// These versions of messages.
    Messages(Vec<(MessageId, i64)>),
    /// The running summary in use, whether it may be used, and the parts.
    Summaries(Option<RunningState>, Vec<SummaryId>),
}

/// A text to store.
#[derive(Clone)]
struct WrittenStep {
    version: NewVersion,
    input: StepInput,
}

/// Writes the missing texts and ends the task.
///
/// # Errors
/// Returns the error of the database or of the model. The steps before the error are stored.
pub async fn run(
    services: &LearningServices,
    task: &memory_task::Model,
    cancel: &CancellationToken,
) -> Result<(), MemoryError> {
    let (mut n_dropped, mut n_stored) = (0, 0);
    loop {
        if n_stored == MAX_STEPS {
            return release(services, task).await;
        }
        let Some(work) = find_work(services, task).await? else {
            return finish(services, task).await;
        };
        let written = write_step(services, &work, cancel).await?;
        match store(services, task, written).await? {
            StepEnd::Stored(stored) => {
                services.events.summary_updated(&stored);
                (n_dropped, n_stored) = (0, n_stored + 1);
            }
            StepEnd::TaskLost => return Ok(()),
            StepEnd::InputChanged if n_dropped == MAX_DROPPED_TEXTS => {
                return Err(MemoryError::MessagesChanged);
            }
            StepEnd::InputChanged => n_dropped += 1,
        }
    }
}

/// Returns the next step of a conversation, or `None` if nothing is missing, summaries are turned off,
/// or there is no model.
async fn find_work(
    services: &LearningServices,
    task: &memory_task::Model,
) -> Result<Option<Work>, DbErr> {
    let db = services.db.reader();
    let Some(id) = task.conversation_id else {
        return Ok(None);
    };
    let Some((row, space)) = conversation::find_with_space(db, id).await? else {
        return Ok(None);
    };
    let settings = SummarySettings::of_space(&space.settings);
    if row.is_hidden || space.is_hidden || !settings.is_enabled {
        return Ok(None);
    }
    let (parts, running) = load_state(db, id).await?;
    let Some(step) = plan(&row, &parts, running.as_ref()) else {
        return Ok(None);
    };
    let model = services.models.find_model(&space, settings.model.as_ref());
    Ok(model.await?.map(|model| Work {
        row,
        space,
        settings,
        model,
        parts,
        running,
        step,
    }))
}

async fn load_state(
    db: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<(Vec<summary::Model>, Option<summary::Model>), DbErr> {
    let parts = summary::list_parts(db, id).await?;
    Ok((parts, summary::find_running(db, id).await?))
}

fn plan(
    row: &conversation::Model,
    parts: &[summary::Model],
    running: Option<&summary::Model>,
) -> Option<SummaryStep> {
    next_step(SummaryState {
        from_seq: row.summary_from_seq,
        goal_seq: row.summary_goal_seq,
        parts,
        running,
    })
}

/// Requests the text of a step from the model.
async fn write_step(
    services: &LearningServices,
    work: &Work,
    cancel: &CancellationToken,
) -> Result<WrittenStep, MemoryError> {
    let db = services.db.reader();
    match &work.step {
        SummaryStep::WritePart { from_seq, to_seq } => {
            let limit = work.settings.chunk_messages;
            let range = (*from_seq, *to_seq);
            let limits = (u64::from(limit), work.max_input_tokens());
            let (messages, to_seq) = load_messages(db, work.row.id, range, limits).await?;
            let content = match messages.is_empty() {
                // All of them are hidden.
                true => String::new(),
                false => {
                    let texts =
                        with_names(db, work.space.id, &messages, work.max_input_tokens()).await?;
                    let request = build_part_request(&texts);
                    ask(services, work, request, cancel).await?
                }
            };
            Ok(WrittenStep {
                version: work.new_version(SummaryLevel::Part, (*from_seq, to_seq), content),
                input: StepInput::Messages(messages.iter().map(|it| (it.id, it.version)).collect()),
            })
        }
        SummaryStep::WriteRunning { previous, parts } => {
            let previous_row = work.running.as_ref().filter(|_| previous.is_some());
            let covered = previous_row.map_or(work.row.summary_from_seq - 1, |it| it.to_seq);
            let taken = work.parts_that_fit(parts, covered);
            let texts: Vec<PartText> = taken.iter().map(|it| to_part_text(it, covered)).collect();
            let to_seq = texts.iter().map(|it| it.range.1).max().unwrap_or(covered);
            let before = previous_row.map(|it| it.content.as_str());
            let content = match texts.iter().all(|it| it.content.is_empty()) {
                true => before.unwrap_or_default().to_owned(),
                false => {
                    let request = build_running_request(before, &texts, work.settings.max_tokens);
                    ask(services, work, request, cancel).await?
                }
            };
            let range = (work.row.summary_from_seq, to_seq.max(covered));
            Ok(WrittenStep {
                version: work.new_version(SummaryLevel::Running, range, content),
                input: StepInput::Summaries(
                    version_of(work.running.as_ref()),
                    taken.iter().map(|it| it.id).collect(),
                ),
            })
        }
    }
}

impl Work {
    /// Returns the tokens of messages or parts that fit into a request, next to instructions, the summary
    /// so far and the answer.
    fn max_input_tokens(&self) -> i64 {
        MAX_INPUT_TOKENS.min(self.model.context_tokens() / 8 * 3)
    }

    /// Returns the first of these parts that fit into a request, at least one. Parts that correct the
    /// summary are few, and are taken together.
    fn parts_that_fit(&self, ids: &[SummaryId], covered: i64) -> Vec<&summary::Model> {
        let mut total = 0;
        let chosen = self.parts.iter().filter(|it| ids.contains(&it.id));
        let fitting = chosen.enumerate().take_while(|(at, it)| {
            total += it.token_count;
            *at == 0 || it.to_seq <= covered || total <= self.max_input_tokens()
        });
        fitting.map(|(_, it)| it).collect()
    }

    /// The model's text of a part or of the running summary. A stale text of a person that it continues
    /// stays theirs, and stale.
    fn new_version(&self, level: SummaryLevel, range: (i64, i64), content: String) -> NewVersion {
        let running = self.running.as_ref().filter(|it| {
            let is_stale = it.status == SummaryStatus::Stale;
            is_stale && level == SummaryLevel::Running && !it.needs_regeneration()
        });
        let (author, status) = match running {
            Some(it) => (SummaryAuthor::Person(it.created_by), SummaryStatus::Stale),
            None => {
                let name = self.model.model_name().to_owned();
                (SummaryAuthor::Model(name), SummaryStatus::Current)
            }
        };
        NewVersion {
            conversation: self.row.id,
            level,
            range,
            content,
            facts: None,
            author,
            status,
        }
    }
}

fn to_part_text(part: &summary::Model, covered: i64) -> PartText {
    PartText {
        range: (part.from_seq, part.to_seq),
        content: part.content.clone(),
        is_corrected: part.to_seq <= covered,
    }
}

async fn ask(
    services: &LearningServices,
    work: &Work,
    request: JsonRequest,
    cancel: &CancellationToken,
) -> Result<String, MemoryError> {
    let call = services
        .models
        .request_json(&work.model, work.space.id, request, cancel);
    match call.await {
        Ok(answer) => parse_summary(&answer).ok_or(MemoryError::NoSummary),
        Err(MemoryModelError::Canceled) => Err(MemoryError::Canceled),
        Err(error) => Err(error.into()),
    }
}

/// How a step ended.
enum StepEnd {
    Stored(Box<summary::Model>),
    /// The text was made from messages or summaries that have changed since, and is dropped.
    InputChanged,
    /// Another worker has the task.
    TaskLost,
}

async fn store(
    services: &LearningServices,
    task: &memory_task::Model,
    written: WrittenStep,
) -> Result<StepEnd, DbErr> {
    let (task, now) = (task.clone(), services.clock.now());
    services
        .db
        .write(move |tx| {
            Box::pin(async move {
                let id = written.version.conversation;
                let row = conversation::lock(tx, id).await?.filter(|it| !it.is_hidden);
                if !task_queue::is_held(tx, &task).await? {
                    return Ok(StepEnd::TaskLost);
                }
                let is_current = match row {
                    Some(row) => is_current(tx, &row, &written).await?,
                    None => false,
                };
                if !is_current {
                    return Ok(StepEnd::InputChanged);
                }
                let stored = put_in_use(tx, written.version, now).await?;
                Ok(StepEnd::Stored(Box::new(stored)))
            })
        })
        .await
}

/// Returns whether the input of the step is unchanged.
async fn is_current(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    written: &WrittenStep,
) -> Result<bool, DbErr> {
    let (from_seq, to_seq) = written.version.range;
    // Otherwise the messages were forgotten in the meantime.
    if from_seq < row.summary_from_seq {
        return Ok(false);
    }
    match &written.input {
        StepInput::Messages(versions) => {
            let current: Vec<(MessageId, i64)> = message::Entity::find()
                .select_only()
                .columns([message::Column::Id, message::Column::Version])
                .filter(message::Column::ConversationId.eq(row.id))
                .filter(message::Column::Seq.between(from_seq, to_seq))
                .filter(message::is_usable_by_memory())
                .order_by_asc(message::Column::Seq)
                .into_tuple()
                .all(tx)
                .await?;
            Ok(current == *versions)
        }
        StepInput::Summaries(running, parts) => {
            let (stored, in_use) = load_state(tx, row.id).await?;
            let valid = stored.iter().filter(|it| !it.needs_regeneration());
            let valid: Vec<SummaryId> = valid.map(|it| it.id).collect();
            let is_valid = parts.iter().all(|it| valid.contains(it));
            Ok(is_valid && version_of(in_use.as_ref()) == *running)
        }
    }
}

/// A version, whether it is usable, and whether a new one is requested.
type RunningState = (SummaryId, bool, bool);

fn version_of(running: Option<&summary::Model>) -> Option<RunningState> {
    running.map(|it| (it.id, it.is_usable, it.is_regeneration_requested))
}

async fn finish(services: &LearningServices, task: &memory_task::Model) -> Result<(), MemoryError> {
    let task = task.clone();
    services
        .db
        .write(move |tx| Box::pin(async move { task_queue::finish(tx, &task).await }))
        .await
        .map(drop)
        .map_err(MemoryError::from)
}

/// Returns the task to the queue: what is missing is written later, by any node.
async fn release(
    services: &LearningServices,
    task: &memory_task::Model,
) -> Result<(), MemoryError> {
    let (task, now) = (task.clone(), services.clock.now());
    services
        .db
        .write(move |tx| Box::pin(async move { task_queue::release(tx, &task, now).await }))
        .await
        .map_err(MemoryError::from)
}
