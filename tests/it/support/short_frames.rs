//! Reads the frames of protocol 2 as a client does: expands each short piece of text into the
//! `stream_chunk` of protocol 1.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::timeline_model::{Stream, Then, Timeline};

/// Returns the frames of a socket in the form of protocol 1. Panics if a piece has a handle that no
/// earlier frame of the socket carried.
pub fn expand(log: &[Value]) -> Vec<Value> {
    let mut runs = HashMap::new();
    let mut expanded = Vec::new();
    for frame in log {
        let mut frame = frame.clone();
        if let Some(delta) = frame.get("d") {
            let run = frame["h"].as_i64().and_then(|handle| runs.get(&handle));
            let run: &Value = run.unwrap_or_else(|| panic!("unknown handle: {frame}"));
            frame = json!({"type": "stream_chunk", "run_id": run, "offset": frame["o"], "delta": delta});
        } else {
            for start in ["", "/snapshot/stream"] {
                if let Some(start) = frame.pointer_mut(start).and_then(Value::as_object_mut)
                    && let Some(handle) = start.remove("h")
                {
                    let handle = handle.as_i64().expect("a handle is an integer");
                    runs.insert(handle, start["run_id"].clone());
                }
            }
        }
        expanded.push(frame);
    }
    expanded
}

/// Returns the stream that a client shows after these frames of protocol 1. Panics where the client
/// would have to subscribe again.
pub fn shown_stream(log: &[Value]) -> Option<Stream> {
    let mut timeline = Timeline::default();
    for frame in log {
        match frame.get("snapshot") {
            Some(_) => timeline.take_snapshot(frame),
            None => assert_eq!(timeline.apply(frame), Then::Listen, "{frame}"),
        }
    }
    timeline.stream().cloned()
}
