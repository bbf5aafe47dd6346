//! Summarizes conversations in the background: a model writes the missing texts, one step after the
//! other.
//!
//! **Invariant:** a step is stored under the lock of the conversation, only if the task is still held
//! and its input has not changed. Otherwise the text is dropped, and the step is repeated.

use base::ids::{ConversationId, MessageId, SpaceId, SummaryId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use tokio_util::sync::CancellationToken;

use crate::conversations::message::Visibility;
use crate::conversations::{conversation, message};
use crate::memories::error::MemoryError;
use crate::memories::learning::memory_task;
use crate::memories::learning::message_learning::LearningServices;
use crate::memories::memory_settings::SummarySettings;
use crate::memories::models::memory_models::{JsonRequest, MemoryModel, MemoryModelError};
use crate::memories::summaries::summary;
use crate::memories::summaries::summary::SummaryLevel;
use crate::memories::summaries::summary_plan::{SummaryState, SummaryStep, next_step};
use crate::memories::summaries::summary_request::{
    NamedText, PartText, build_part_request, build_running_request, parse_summary,
};
use crate::memories::summaries::summary_store::{NewVersion, SummaryAuthor, put_in_use};
use crate::spaces::{membership, space};

/// The maximum number of tokens of the messages of a part, unless it is a single message: a request
/// must fit into small context windows.
const MAX_PART_INPUT_TOKENS: i64 = 4_000;
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
    Summaries(Option<(SummaryId, bool)>, Vec<SummaryId>),
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
    let mut n_dropped = 0;
    loop {
        let Some(work) = find_work(services, task).await? else {
            return finish(services, task).await;
        };
        let written = write_step(services, &work, cancel).await?;
        match store(services, task, written).await? {
            StepEnd::Stored => n_dropped = 0,
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
    if row.is_hidden || !settings.is_enabled {
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
            let (messages, to_seq) = load_messages(db, work.row.id, range, limit).await?;
            let content = match messages.is_empty() {
                // All of them are hidden.
                true => String::new(),
                false => {
                    let texts = with_names(db, work.space.id, &messages).await?;
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
            let taken = work.parts.iter().filter(|it| parts.contains(&it.id));
            let texts: Vec<PartText> = taken.map(|it| to_part_text(it, covered)).collect();
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
                input: StepInput::Summaries(version_of(work.running.as_ref()), parts.clone()),
            })
        }
    }
}

impl Work {
    fn new_version(&self, level: SummaryLevel, range: (i64, i64), content: String) -> NewVersion {
        let facts = self
            .running
            .as_ref()
            .filter(|_| level == SummaryLevel::Running);
        NewVersion {
            conversation: self.row.id,
            level,
            range,
            content,
            facts: facts.map(summary::Model::facts).unwrap_or_default(),
            author: SummaryAuthor::Model(self.model.model_name().to_owned()),
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

/// Returns the messages of a part, ascending, and the `seq` of its last one.
async fn load_messages(
    db: &impl ConnectionTrait,
    id: ConversationId,
    (from_seq, to_seq): (i64, i64),
    limit: u64,
) -> Result<(Vec<message::Model>, i64), DbErr> {
    let mut messages = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .filter(message::Column::Seq.between(from_seq, to_seq))
        .filter(message::Column::Visibility.eq(Visibility::Normal))
        .order_by_asc(message::Column::Seq)
        .limit(limit)
        .all(db)
        .await?;
    let mut total = 0;
    let fitting = messages.iter().take_while(|it| {
        total += it.token_count;
        total <= MAX_PART_INPUT_TOKENS
    });
    let n_fitting = fitting.count().max(1);
    let is_cut = n_fitting < messages.len() || messages.len() as u64 == limit;
    messages.truncate(n_fitting);
    let last = messages.last().map(|it| it.seq);
    Ok((messages, last.filter(|_| is_cut).unwrap_or(to_seq)))
}

async fn with_names(
    db: &impl ConnectionTrait,
    space: SpaceId,
    messages: &[message::Model],
) -> Result<Vec<NamedText>, DbErr> {
    let members = membership::list_for_space(db, space).await?;
    let name_of = |id| {
        let member = members.iter().find(|it| it.id == id);
        member.map_or_else(String::new, |it| it.cached_display_name.clone())
    };
    let texts = messages.iter().map(|it| NamedText {
        name: name_of(it.space_membership_id),
        text: it.content.clone(),
    });
    Ok(texts.collect())
}

/// How a step ended.
enum StepEnd {
    Stored,
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
                if !memory_task::is_held(tx, &task).await? {
                    return Ok(StepEnd::TaskLost);
                }
                let is_current = match row {
                    Some(row) => is_current(tx, &row, &written).await?,
                    None => false,
                };
                if !is_current {
                    return Ok(StepEnd::InputChanged);
                }
                put_in_use(tx, written.version, now).await?;
                Ok(StepEnd::Stored)
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
                .filter(message::Column::Visibility.eq(Visibility::Normal))
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

fn version_of(running: Option<&summary::Model>) -> Option<(SummaryId, bool)> {
    running.map(|it| (it.id, it.is_usable))
}

async fn finish(services: &LearningServices, task: &memory_task::Model) -> Result<(), MemoryError> {
    let task = task.clone();
    services
        .db
        .write(move |tx| Box::pin(async move { memory_task::finish(tx, &task).await }))
        .await
        .map(drop)
        .map_err(MemoryError::from)
}
