//! Loads the context of a run as items of a response: the messages of the thread in order, and
//! the tool calls of its runs with their outputs.

use std::collections::{HashMap, HashSet};

use responses_api::server_tools;
use responses_api::threads::item_parts;
use responses_api::threads::run_state::{RunStep, StepCall};
use responses_api::threads::thread_status::ThreadMessageRole;
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};

use crate::responses::error::ResponseEngineError;
use crate::responses::input::history;
use crate::responses::thread_runs::run_row_conversion;
use crate::responses::threads::{thread_message, thread_run, thread_run_step};

/// The items of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunContext {
    /// The items before the newest message of the user; the oldest may be dropped if the prompt is too
    /// long.
    pub prior: Vec<Value>,
    pub input: Vec<Value>,
}

/// A message, or the calls of a step.
#[derive(Clone, Debug, PartialEq)]
struct ContextEntry {
    role: Option<ThreadMessageRole>,
    items: Vec<Value>,
}

/// The steps of a run that called tools.
#[derive(Clone, Debug)]
struct ToolRun {
    first_seq: i64,
    steps: Vec<RunStep>,
}

/// Loads the items of a run.
///
/// # Errors
/// Returns `HistoryTooLarge` when they exceed the size limit.
pub async fn load(
    db: &impl ConnectionTrait,
    row: &thread_run::Model,
) -> Result<RunContext, ResponseEngineError> {
    let n_last = row.spec.n_last_messages;
    history::require_size_limit(db, &size_statement(n_last), &row.thread_id).await?;
    let messages = thread_message::list_context(db, (&row.thread_id, &row.id), n_last).await?;
    let steps = thread_run_step::list_for_thread(db, &row.thread_id).await?;
    let mut by_run: HashMap<String, Vec<RunStep>> = HashMap::new();
    for step in steps {
        let run = by_run.entry(step.run_id.clone()).or_default();
        run.push(run_row_conversion::step(step));
    }
    let speakers = speakers(&by_run);
    by_run.retain(|_, steps| steps.iter().any(|it| !it.calls().is_empty()));
    let of_tools: Vec<String> = by_run.keys().cloned().collect();
    let mut tool_runs = Vec::new();
    for run in thread_run::list_by_ids(db, of_tools).await? {
        tool_runs.push(ToolRun {
            first_seq: run.spec.first_seq,
            steps: by_run.remove(&run.id).unwrap_or_default(),
        });
    }
    let entries = merge(&messages, tool_runs, &speakers);
    Ok(split(select_last(entries, n_last)))
}

/// Returns the statement that computes the size of the last messages and of the steps of a thread; `#` is the
/// id of the thread. The size is checked before anything is loaded, because clients can store threads that
/// exceed the memory of a node.
fn size_statement(n_last: Option<usize>) -> String {
    let limit = n_last.map_or_else(String::new, |n| format!(" LIMIT {n}"));
    format!(
        "WITH own(id) AS (SELECT CAST(# AS TEXT)) \
        SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) AS n FROM ( \
            SELECT * FROM (SELECT LENGTH(CAST(m.content AS TEXT)) AS n \
                FROM thread_messages m JOIN own ON m.thread_id = own.id \
                WHERE m.deleted_at IS NULL ORDER BY m.seq DESC{limit}) AS messages \
            UNION ALL \
            SELECT LENGTH(CAST(s.step_details AS TEXT)) FROM thread_run_steps s \
                JOIN thread_runs r ON r.id = s.run_id JOIN own ON r.thread_id = own.id \
        ) AS sizes"
    )
}

/// Returns the speakers of messages by the ids of the messages.
fn speakers(by_run: &HashMap<String, Vec<RunStep>>) -> HashMap<String, Value> {
    let steps = by_run.values().flatten();
    let named = steps.filter_map(|it| {
        let message = it.message_id()?.to_owned();
        Some((message, it.speaker()?.clone()))
    });
    named.collect()
}

/// Returns the messages and calls in order. `tool_runs` are ordered by their creation.
fn merge(
    messages: &[thread_message::Model],
    mut tool_runs: Vec<ToolRun>,
    speakers: &HashMap<String, Value>,
) -> Vec<ContextEntry> {
    tool_runs.sort_by_key(|it| it.first_seq);
    let mut tool_runs = tool_runs.into_iter().peekable();
    let by_id: HashMap<&str, &thread_message::Model> =
        messages.iter().map(|it| (it.id.as_str(), it)).collect();
    let (mut entries, mut placed) = (Vec::new(), HashSet::new());
    for message in messages {
        while let Some(run) = tool_runs.next_if(|it| it.first_seq <= message.seq) {
            entries.extend(run_entries(&run, &by_id, speakers, &mut placed));
        }
        if placed.insert(message.id.clone()) {
            entries.push(message_entry(message, speakers));
        }
    }
    for run in tool_runs {
        entries.extend(run_entries(&run, &by_id, speakers, &mut placed));
    }
    entries
}

/// Returns the messages and calls of a run in the order of its steps.
fn run_entries(
    run: &ToolRun,
    messages: &HashMap<&str, &thread_message::Model>,
    speakers: &HashMap<String, Value>,
    placed: &mut HashSet<String>,
) -> Vec<ContextEntry> {
    let entry = |step: &RunStep| match step.message_id() {
        Some(id) => {
            placed.insert(id.to_owned());
            Some(message_entry(messages.get(id)?, speakers))
        }
        None => Some(ContextEntry {
            role: None,
            items: call_items(step),
        }),
    };
    run.steps.iter().filter_map(entry).collect()
}

fn message_entry(
    message: &thread_message::Model,
    speakers: &HashMap<String, Value>,
) -> ContextEntry {
    let role = message.role;
    let mut item = json!({
        "type": "message", "id": message.id, "status": "completed", "role": role,
        "content": item_parts::of_message(role, &message.content),
    });
    if let Some(speaker) = speakers.get(&message.id) {
        item["metadata"] = speaker.clone();
    }
    ContextEntry {
        role: Some(role),
        items: vec![item],
    }
}

/// Returns the calls of a step that have outputs, followed by the outputs of the client. A call of a
/// canceled run has no output, and must not get that of a later call with the same id.
fn call_items(step: &RunStep) -> Vec<Value> {
    let calls = step.calls().iter();
    let calls = calls.filter(|it| it.function.output.is_some());
    let mut items: Vec<Value> = calls.clone().map(call_item).collect();
    if let Some(speaker) = step.speaker() {
        for item in &mut items {
            item["metadata"] = speaker.clone();
        }
    }
    let of_client = calls.filter(|it| server_tools::tool_name(&it.function.name).is_none());
    items.extend(of_client.filter_map(output_item));
    items
}

fn call_item(call: &StepCall) -> Value {
    let function = &call.function;
    if server_tools::tool_name(&function.name).is_none() {
        return json!({
            "type": "function_call", "id": call.id, "status": "completed", "call_id": call.id,
            "name": function.name, "arguments": function.arguments,
        });
    }
    let result = function.output.as_ref();
    json!({
        "type": function.name, "id": call.id, "status": "completed", "call_id": call.id,
        "arguments": function.arguments,
        "output": result.filter(|_| !function.is_error),
        "error": result.filter(|_| function.is_error),
    })
}

fn output_item(call: &StepCall) -> Option<Value> {
    let output = call.function.output.as_ref()?;
    Some(json!({
        "type": "function_call_output", "id": call.id, "status": "completed", "call_id": call.id,
        "output": output,
    }))
}

/// Keeps this number of the newest messages, and the calls after the first of them.
fn select_last(mut entries: Vec<ContextEntry>, n_last: Option<usize>) -> Vec<ContextEntry> {
    let Some(n_last) = n_last else {
        return entries;
    };
    let mut messages = (0..entries.len())
        .rev()
        .filter(|at| entries[*at].role.is_some());
    match messages.nth(n_last.saturating_sub(1)) {
        Some(first) => entries.split_off(first),
        None => std::mem::take(&mut entries),
    }
}

/// Splits the items before the newest message of the user.
fn split(mut entries: Vec<ContextEntry>) -> RunContext {
    let is_user = |it: &ContextEntry| it.role == Some(ThreadMessageRole::User);
    let newest = entries.iter().rposition(is_user);
    let newest = newest.unwrap_or(entries.len().saturating_sub(1));
    let input = entries.split_off(newest);
    let items = |entries: Vec<ContextEntry>| entries.into_iter().flat_map(|it| it.items);
    RunContext {
        prior: items(entries).collect(),
        input: items(input).collect(),
    }
}

#[cfg(test)]
#[path = "run_context_tests.rs"]
mod tests;
