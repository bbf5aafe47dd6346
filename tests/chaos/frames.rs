//! Reads the frames of a socket: the events that the checks need, and what a timeline reads.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::record::{Micros, ReceivedEvent};

/// Keeps only the fields that a timeline reads, to save memory.
pub fn light(frame: &Value) -> Value {
    let mut frame = frame.clone();
    strip(&mut frame["message"]);
    for message in frame["snapshot"]["messages"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        strip(message);
    }
    frame
}

fn strip(message: &mut Value) {
    if let Some(message) = message.as_object_mut() {
        let read = ["id", "seq", "rev", "role", "content", "visibility"];
        message.retain(|key, _| read.contains(&key.as_str()));
    }
}

/// Returns the snapshot in the answer to a subscribe request.
pub fn snapshot(frame: &Value, asked_at: Micros, after: Option<i64>) -> ReceivedEvent {
    let it = &frame["snapshot"];
    let number = |it: &Value| it.as_i64().unwrap_or(0);
    let messages = it["messages"].as_array().into_iter().flatten();
    let stream = &it["stream"];
    ReceivedEvent::Snapshot {
        asked_at,
        after,
        rev: number(&frame["rev"]),
        reset: it["reset"] == true,
        messages: messages
            .map(|it| (number(&it["id"]), number(&it["rev"])))
            .collect(),
        stream: stream
            .is_object()
            .then(|| (text(&stream["run_id"]), text(&stream["text"]))),
    }
}

/// Returns the event in a frame, if a check reads it.
pub fn event_in(frame: &Value) -> Option<ReceivedEvent> {
    let run = || text(&frame["run_id"]);
    let kind = frame["type"].as_str()?;
    if let Some(rev) = frame["rev"].as_i64() {
        let ended = match kind {
            "run_failed" | "run_canceled" | "run_skipped" => frame["run"]["id"].as_str(),
            "message_created" => frame["message"]["conversation_run_id"].as_str(),
            _ => None,
        };
        let object = frame["message"].as_object();
        let message = object.and_then(|it| Some((it["id"].as_i64()?, it["rev"].as_i64()?)));
        let is_private = |part: &str| frame[part]["private"] == true;
        let parts = ["round", "queued_run", "running_run"];
        let mut hasher = DefaultHasher::new();
        frame.to_string().hash(&mut hasher);
        return Some(ReceivedEvent::Durable {
            rev,
            kind: kind.to_owned(),
            is_reduced: kind == "rev_advanced" || parts.into_iter().any(is_private),
            digest: hasher.finish(),
            ends: ended.map(str::to_owned),
            message,
        });
    }
    match kind {
        "typing_start" => Some(ReceivedEvent::TypingStart(run())),
        "stream_chunk" => Some(ReceivedEvent::Chunk {
            run: run(),
            offset: frame["offset"].as_u64().unwrap_or(0) as usize,
            delta: text(&frame["delta"]),
        }),
        "stream_reset" => Some(ReceivedEvent::Reset(run(), text(&frame["text"]))),
        "stream_complete" => Some(ReceivedEvent::Complete(run())),
        "typing_stop" => Some(ReceivedEvent::TypingStop(run())),
        "your_turn" => frame["membership_id"].as_i64().map(ReceivedEvent::Turn),
        "resync" => Some(ReceivedEvent::Resync),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

/// Adds the ids of all messages in a document.
pub fn message_ids(document: &Value, ids: &mut BTreeSet<i64>) {
    match document {
        Value::Array(all) => all.iter().for_each(|it| message_ids(it, ids)),
        Value::Object(fields) => {
            let is_message =
                fields.contains_key("seq") && fields.contains_key("space_membership_id");
            ids.extend(
                fields
                    .get("id")
                    .and_then(Value::as_i64)
                    .filter(|_| is_message),
            );
            fields.values().for_each(|it| message_ids(it, ids));
        }
        _ => {}
    }
}
