//! The state of one conversation in a client, built from frames as the protocol specifies.
//!
//! Pure: frames in, state and "subscribe again" out. The rules: a durable event that is not the
//! next `rev` is a gap; a delta whose offset is not the length of the received text (in UTF-16
//! units) is a gap; a snapshot without `reset` is merged, one with it replaces the state.

use std::collections::BTreeMap;

use serde_json::Value;

/// The next action of a client after a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// Keep reading events.
    Listen,
    /// Subscribe again with the last `rev`.
    SubscribeAgain,
}

/// The text of a running run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    pub run_id: String,
    /// The text that the run continues, with which `text` begins.
    pub base: String,
    pub text: String,
}

/// The state of one conversation in one client.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    rev: Option<i64>,
    messages: BTreeMap<i64, Value>,
    stream: Option<Stream>,
    state: Value,
    /// Protocol violations of the server.
    complaints: Vec<String>,
}

impl Timeline {
    /// Returns the `rev` of the newest applied event; `None` before the first snapshot.
    pub fn rev(&self) -> Option<i64> {
        self.rev
    }

    /// Returns the visible messages, by `seq`.
    pub fn messages(&self) -> Vec<Value> {
        let mut messages: Vec<Value> = self.messages.values().cloned().collect();
        messages.sort_by_key(|message| message["seq"].as_i64());
        messages
    }

    /// Returns `(seq, role, content)` of the visible messages.
    pub fn lines(&self) -> Vec<(i64, String, String)> {
        let line = |message: &Value| {
            (
                message["seq"].as_i64().unwrap_or(0),
                text(&message["role"]),
                text(&message["content"]),
            )
        };
        self.messages().iter().map(line).collect()
    }

    /// Returns the text that is being streamed.
    pub fn stream(&self) -> Option<&Stream> {
        self.stream.as_ref()
    }

    /// Returns idle, queued, generating, paused or failed.
    pub fn state(&self) -> &str {
        self.state.as_str().unwrap_or("")
    }

    /// Returns the protocol violations of the server.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Applies the response to a subscribe that contained our `rev`, if we had one.
    pub fn take_snapshot(&mut self, answer: &Value) {
        let snapshot = &answer["snapshot"];
        let Some(rev) = answer["rev"].as_i64() else {
            self.complaints
                .push(format!("a response to subscribe without rev: {answer}"));
            return;
        };
        let replaces = self.rev.is_none() || snapshot["reset"] == true;
        if replaces {
            self.messages.clear();
        } else if self.rev.is_some_and(|known| rev < known) {
            self.complaints.push(format!(
                "a snapshot of rev {rev} after rev {:?}, without reset",
                self.rev
            ));
        }
        for message in snapshot["messages"].as_array().into_iter().flatten() {
            self.put(message);
        }
        self.rev = Some(rev);
        self.state = snapshot["state"].clone();
        let stream = &snapshot["stream"];
        self.stream = stream.is_object().then(|| {
            let text_so_far = text(&stream["text"]);
            Stream {
                run_id: text(&stream["run_id"]),
                base: first_units(&text_so_far, stream["base_length"].as_u64()),
                text: text_so_far,
            }
        });
    }

    /// Adds a message that was received otherwise.
    pub fn add_message(&mut self, message: &Value) {
        self.put(message);
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &Value) -> Then {
        if let Some(rev) = event["rev"].as_i64() {
            let Some(known) = self.rev else {
                return Then::Listen;
            };
            if rev <= known {
                return Then::Listen;
            }
            if rev != known + 1 {
                return Then::SubscribeAgain;
            }
            self.rev = Some(rev);
        }
        match event["type"].as_str().unwrap_or("") {
            "message_created" | "message_updated" | "message_hidden" => {
                self.put(&event["message"]);
                Then::Listen
            }
            "queue_updated" => {
                self.state = event["state"].clone();
                Then::Listen
            }
            "typing_start" => self.start(event),
            "stream_reset" => {
                let stream = self.stream.take();
                let base = stream.map_or_else(String::new, |it| it.base);
                self.stream = Some(Stream {
                    run_id: text(&event["run_id"]),
                    text: base.clone() + &text(&event["text"]),
                    base,
                });
                Then::Listen
            }
            "stream_chunk" => self.append(event),
            "typing_stop" => {
                self.stream
                    .take_if(|stream| event["run_id"] == stream.run_id.as_str());
                Then::Listen
            }
            "resync" => Then::SubscribeAgain,
            _ => Then::Listen,
        }
    }

    /// A run that continues a message begins with the text of that message.
    fn start(&mut self, event: &Value) -> Then {
        let length = event["base_length"].as_u64();
        let target = event["target_message_id"].as_i64();
        let target = target.and_then(|it| self.messages.get(&it));
        let target = target.filter(|_| length.is_some());
        let base = target.map_or_else(String::new, |it| text(&it["content"]));
        let is_known = base.encode_utf16().count() as u64 == length.unwrap_or_default();
        self.stream = Some(Stream {
            run_id: text(&event["run_id"]),
            text: base.clone(),
            base,
        });
        match is_known {
            true => Then::Listen,
            false => Then::SubscribeAgain,
        }
    }

    fn append(&mut self, event: &Value) -> Then {
        let stream = self
            .stream
            .as_mut()
            .filter(|stream| event["run_id"] == stream.run_id.as_str());
        let Some(stream) = stream else {
            return Then::SubscribeAgain;
        };
        let held = stream.text.encode_utf16().count() as u64;
        if event["offset"].as_u64() != Some(held) {
            return Then::SubscribeAgain;
        }
        stream.text.push_str(event["delta"].as_str().unwrap_or(""));
        Then::Listen
    }

    /// Adds or replaces a message; a hidden one is removed.
    fn put(&mut self, message: &Value) {
        let Some(id) = message["id"].as_i64() else {
            self.complaints
                .push(format!("a message without id: {message}"));
            return;
        };
        if message["visibility"] == "hidden" {
            self.messages.remove(&id);
            return;
        }
        let known = self
            .messages
            .get(&id)
            .and_then(|known| known["rev"].as_i64());
        if known.is_none_or(|known| message["rev"].as_i64().is_some_and(|rev| rev >= known)) {
            self.messages.insert(id, message.clone());
        }
    }
}

/// Returns the first UTF-16 units of a text.
fn first_units(text: &str, n: Option<u64>) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let n = usize::try_from(n.unwrap_or_default()).unwrap_or(usize::MAX);
    String::from_utf16_lossy(&units[..n.min(units.len())])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Then, Timeline};

    fn message(id: i64, rev: i64, content: &str) -> Value {
        json!({"id": id, "seq": id, "rev": rev, "role": "user", "content": content, "visibility": "normal"})
    }

    fn subscribed(rev: i64, messages: Vec<Value>) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.take_snapshot(&json!({"rev": rev, "snapshot": {"messages": messages, "state": "idle", "stream": null}}));
        timeline
    }

    #[test]
    fn the_next_rev_is_applied_and_a_gap_is_not() {
        let mut timeline = subscribed(4, vec![message(1, 4, "a")]);

        let next = json!({"type": "message_created", "rev": 5, "message": message(2, 5, "b")});
        let gap = json!({"type": "message_created", "rev": 7, "message": message(3, 7, "c")});

        assert_eq!(timeline.apply(&next), Then::Listen);
        assert_eq!(timeline.apply(&next), Then::Listen);
        assert_eq!(timeline.apply(&gap), Then::SubscribeAgain);
        assert_eq!(timeline.lines().len(), 2);
        assert_eq!(timeline.rev(), Some(5));
    }

    #[test]
    fn a_snapshot_after_a_gap_is_merged_and_a_reset_replaces() {
        let mut timeline = subscribed(4, vec![message(1, 4, "a"), message(2, 4, "b")]);

        let hidden = json!({"id": 2, "seq": 2, "rev": 6, "visibility": "hidden"});
        timeline.take_snapshot(&json!({"rev": 6, "snapshot": {"messages": [message(1, 5, "A"), hidden], "state": "idle"}}));
        assert_eq!(timeline.lines(), [(1, "user".to_owned(), "A".to_owned())]);

        timeline.take_snapshot(&json!({"rev": 2, "snapshot": {"messages": [message(9, 2, "z")], "reset": true, "state": "idle"}}));
        assert_eq!(timeline.lines(), [(9, "user".to_owned(), "z".to_owned())]);
        assert!(timeline.complaints().is_empty());
    }

    #[test]
    fn offsets_are_counted_in_utf16_units() {
        let mut timeline = subscribed(1, vec![]);
        let chunk = |offset: u64, delta: &str| json!({"type": "stream_chunk", "run_id": "r", "offset": offset, "delta": delta});

        assert_eq!(timeline.apply(&chunk(0, "x")), Then::SubscribeAgain);
        timeline.apply(&json!({"type": "typing_start", "run_id": "r"}));
        assert_eq!(timeline.apply(&chunk(0, "a😀")), Then::Listen);
        assert_eq!(timeline.apply(&chunk(2, "b")), Then::SubscribeAgain);
        assert_eq!(timeline.apply(&chunk(3, "b")), Then::Listen);
        assert_eq!(
            timeline.stream().map(|stream| stream.text.as_str()),
            Some("a😀b")
        );
        timeline.apply(&json!({"type": "stream_reset", "run_id": "r", "text": "a"}));
        assert_eq!(timeline.apply(&chunk(1, "!")), Then::Listen);
        timeline.apply(&json!({"type": "typing_stop", "run_id": "r"}));
        assert_eq!(timeline.stream(), None);
    }

    #[test]
    fn an_older_version_of_a_message_never_replaces_a_newer_one() {
        let mut timeline = subscribed(4, vec![message(1, 4, "new")]);

        timeline.take_snapshot(
            &json!({"rev": 5, "snapshot": {"messages": [message(1, 2, "old")], "state": "idle"}}),
        );

        assert_eq!(timeline.lines()[0].2, "new");
    }
}
