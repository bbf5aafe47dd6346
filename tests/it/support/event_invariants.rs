//! Checks the invariants of events on what one client received: revisions, ends of runs, deltas, and
//! the order of typing.
//!
//! Pure functions over a log of frames. A log may span several connections, each opened by a
//! `{"connected": n}` mark, as in `ClientModel`; the log of an `EventRecorder` is one connection.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::timeline_model::{Then, Timeline};

/// Returns every violation in a log.
pub fn violations(log: &[Value]) -> Vec<String> {
    [revs(log), endings(log), typing(log), deltas(log)].concat()
}

/// Within one connection, after its snapshot, each durable event has the next `rev`.
pub fn revs(log: &[Value]) -> Vec<String> {
    let mut known: Option<i64> = None;
    let mut found = Vec::new();
    for frame in log {
        if frame.get("connected").is_some() {
            known = None;
        } else if frame.get("re").is_some() && frame.get("snapshot").is_some() {
            known = frame["rev"].as_i64();
        } else if let (Some(rev), Some(before)) = (frame["rev"].as_i64(), known) {
            if rev > before + 1 {
                found.push(format!(
                    "I7: after rev {before} came rev {rev}: {}",
                    frame["type"]
                ));
            }
            known = Some(before.max(rev));
        }
    }
    found
}

/// No run ends twice. (`invariants::at_rest` checks that each run ends.)
pub fn endings(log: &[Value]) -> Vec<String> {
    let mut ends: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (run, end) in log.iter().filter_map(ending) {
        let seen = ends.entry(run).or_default();
        // A durable end may be sent again after a reconnect.
        if !seen.contains(&end) {
            seen.push(end);
        }
    }
    ends.retain(|_, seen| seen.len() > 1);
    ends.into_iter()
        .map(|(run, seen)| {
            format!(
                "I9: run {run} ended {} times: {}",
                seen.len(),
                seen.join(", ")
            )
        })
        .collect()
}

/// Returns the run and the type of the event if the frame ends a run.
pub fn ending(frame: &Value) -> Option<(String, String)> {
    let event = frame["type"].as_str()?;
    let run = match event {
        "run_failed" | "run_canceled" | "run_skipped" => frame["run"]["id"].as_str()?,
        "stream_complete" if frame["status"] == "succeeded" => frame["run_id"].as_str()?,
        _ => return None,
    };
    Some((run.to_owned(), event.to_owned()))
}

/// Within one connection a run's typing stops before the next run's typing starts.
pub fn typing(log: &[Value]) -> Vec<String> {
    let mut typist: Option<String> = None;
    let mut found = Vec::new();
    for frame in log {
        let run = frame["run_id"].as_str().unwrap_or("").to_owned();
        match frame["type"].as_str().unwrap_or("") {
            "" if frame.get("connected").is_some() => typist = None,
            "typing_start" => {
                if let Some(before) = typist.replace(run.clone()) {
                    found.push(format!(
                        "D3: run {run} starts typing before {before} has stopped"
                    ));
                }
            }
            "typing_stop" => {
                typist.take_if(|typing| *typing == run);
            }
            _ => {}
        }
    }
    found.extend(typist.map(|run| format!("D3: run {run} never stopped typing")));
    found
}

/// The concatenated deltas of a run that was received completely are its committed text.
pub fn deltas(log: &[Value]) -> Vec<String> {
    let mut streams: BTreeMap<String, Timeline> = BTreeMap::new();
    let mut is_broken: BTreeMap<String, bool> = BTreeMap::new();
    let mut messages: BTreeMap<i64, Value> = BTreeMap::new();
    let mut continued: BTreeMap<String, i64> = BTreeMap::new();
    let mut found = Vec::new();
    for frame in log {
        let event = frame["type"].as_str().unwrap_or("");
        let in_snapshot = frame["snapshot"]["messages"].as_array();
        for message in in_snapshot.into_iter().flatten().chain([&frame["message"]]) {
            if let Some(id) = message["id"].as_i64() {
                messages.insert(id, message.clone());
            }
        }
        if let (Some(run), Some(target), true) = (
            frame["run_id"].as_str(),
            frame["target_message_id"].as_i64(),
            frame["base_length"].is_u64(),
        ) {
            continued.insert(run.to_owned(), target);
            let stream = streams.entry(run.to_owned()).or_default();
            messages
                .get(&target)
                .iter()
                .for_each(|it| stream.add_message(it));
        }
        if let Some(run) = frame["run_id"]
            .as_str()
            .filter(|_| ["typing_start", "stream_chunk", "stream_reset"].contains(&event))
        {
            let began = event != "stream_chunk";
            if began {
                is_broken.insert(run.to_owned(), false);
            }
            let gap =
                streams.entry(run.to_owned()).or_default().apply(frame) == Then::SubscribeAgain;
            // `ClientModel` handles gaps within a connection; here the run is only skipped.
            *is_broken.entry(run.to_owned()).or_insert(true) |= gap;
        }
        if event == "message_created" {
            let message = &frame["message"];
            let run = message["conversation_run_id"].as_str();
            found.extend(run.and_then(|it| compare(it, message, &streams, &is_broken)));
        }
        // The run of a message is the one that wrote it first.
        let of_run = frame["run_id"]
            .as_str()
            .and_then(|it| Some((it, continued.get(it)?)));
        if let Some((run, target)) = of_run
            && event == "stream_complete"
            && frame["status"] == "succeeded"
        {
            let message = messages.get(target);
            found.extend(message.and_then(|it| compare(run, it, &streams, &is_broken)));
        }
    }
    found
}

fn compare(
    run: &str,
    message: &Value,
    streams: &BTreeMap<String, Timeline>,
    is_broken: &BTreeMap<String, bool>,
) -> Option<String> {
    let stream = streams.get(run)?.stream()?;
    let content = message["content"].as_str().unwrap_or("");
    if is_broken.get(run) != Some(&false) || stream.text.trim() == content.trim() {
        return None;
    }
    Some(format!(
        "I10: the deltas of run {run} have {} bytes, its message has {} bytes, and they differ",
        stream.text.len(),
        content.len()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::violations;

    fn whole_run() -> Vec<Value> {
        vec![
            json!({"re": 1, "ok": true, "rev": 3, "snapshot": {}}),
            json!({"type": "queue_updated", "rev": 4}),
            json!({"type": "typing_start", "run_id": "r"}),
            json!({"type": "stream_chunk", "run_id": "r", "offset": 0, "delta": "a"}),
            json!({"type": "stream_chunk", "run_id": "r", "offset": 1, "delta": "b"}),
            json!({"type": "message_created", "rev": 5, "message": {"id": 1, "conversation_run_id": "r", "content": "ab"}}),
            json!({"type": "stream_complete", "run_id": "r", "status": "succeeded"}),
            json!({"type": "queue_updated", "rev": 6}),
            json!({"type": "typing_stop", "run_id": "r"}),
        ]
    }

    #[test]
    fn a_complete_run_has_no_violations() {
        assert_eq!(violations(&whole_run()), Vec::<String>::new());
    }

    #[test]
    fn the_deltas_of_a_continue_are_appended_to_the_text_of_its_message() {
        let mut log = whole_run();
        log.extend([
            json!({"type": "typing_start", "run_id": "c", "target_message_id": 1, "base_length": 2}),
            json!({"type": "stream_chunk", "run_id": "c", "offset": 2, "delta": "c"}),
            json!({"type": "message_updated", "rev": 7, "message": {"id": 1, "conversation_run_id": "r", "content": "abc"}}),
            json!({"type": "stream_complete", "run_id": "c", "status": "succeeded"}),
            json!({"type": "typing_stop", "run_id": "c"}),
        ]);
        assert_eq!(violations(&log), Vec::<String>::new());

        log[11]["message"]["content"] = json!("bc");
        assert_eq!(violations(&log).len(), 1);
        assert!(violations(&log)[0].starts_with("I10"));
    }

    #[test]
    fn a_missing_rev_is_detected() {
        let mut log = whole_run();
        log.remove(1);

        assert_eq!(
            violations(&log),
            ["I7: after rev 3 came rev 5: \"message_created\""]
        );
    }

    #[test]
    fn a_second_end_is_detected() {
        let mut log = whole_run();
        log.push(json!({"type": "run_canceled", "run": {"id": "r"}, "rev": 7}));

        assert_eq!(
            violations(&log),
            ["I9: run r ended 2 times: stream_complete, run_canceled"]
        );
    }

    #[test]
    fn typing_that_never_stops_is_detected() {
        let mut log = whole_run();
        log.pop();

        assert_eq!(violations(&log), ["D3: run r never stopped typing"]);
    }

    #[test]
    fn deltas_that_differ_from_the_text_are_detected() {
        let mut log = whole_run();
        log[4]["delta"] = json!("c");

        assert_eq!(violations(&log).len(), 1);
        assert!(violations(&log)[0].starts_with("I10"));
    }
}
