//! Records every event of a hub topic, in the order in which it was published.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use realtime::envelope::Protocol;
use realtime::hub::Hub;
use realtime::outbox::{NextItem, Outbox};
use realtime::topic::Topic;
use serde_json::Value;
use tokio::time::timeout;

use crate::support::poll::DEADLINE;

/// Records events from its creation on.
pub struct EventRecorder {
    outbox: Arc<Outbox>,
    received: Mutex<Vec<Value>>,
}

impl EventRecorder {
    pub fn subscribe(hub: &Hub, topic: Topic) -> Self {
        let outbox = Outbox::new();
        hub.subscribe(topic, &outbox);
        Self {
            outbox,
            received: Mutex::default(),
        }
    }

    /// Returns every frame so far.
    pub fn log(&self) -> Vec<Value> {
        self.drain();
        self.received.lock().clone()
    }

    /// Drains the queue. A long test must do so regularly, because the queue is bounded.
    pub fn drain(&self) {
        let mut received = self.received.lock();
        while let Some(next) = self.outbox.try_next() {
            received.push(frame(&next));
        }
    }

    /// Returns the types of the frames so far; consecutive chunks count as one.
    pub fn event_names(&self) -> Vec<String> {
        self.event_names_since(0)
    }

    /// Returns the types of all frames but the first `n_frames`.
    pub fn event_names_since(&self, n_frames: usize) -> Vec<String> {
        let mut names: Vec<String> = self.log()[n_frames..].iter().map(describe).collect();
        names.dedup_by(|next, before| next == "stream_chunk" && next == before);
        names
    }

    /// Waits for a frame that fits, or returns one that was already received.
    pub async fn wait_for(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = timeout(DEADLINE, async {
            loop {
                if let Some(found) = self.log().into_iter().find(&fits) {
                    return found;
                }
                self.next_frame_or_a_moment().await;
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("timed out waiting for {what}: {:#?}", self.event_names()),
        }
    }

    /// Waits for a frame of this type.
    pub async fn wait_for_event(&self, event: &str) -> Value {
        self.wait_for(event, |it| it["type"] == event).await
    }

    /// Waits for the n-th frame of this type, from 1; reads only the subscription.
    pub async fn wait_for_events(&self, event: &str, n: usize) {
        let received = timeout(DEADLINE, async {
            let is_one = |it: &&Value| it["type"] == event;
            while self.log().iter().filter(is_one).count() < n {
                self.next_frame_or_a_moment().await;
            }
        });
        received
            .await
            .unwrap_or_else(|_| panic!("fewer than {n} frames of type {event} were received"));
    }

    /// Waits for a delta that ends with this text.
    pub async fn wait_for_text(&self, end: &str) {
        let is_last = |it: &Value| it["delta"].as_str().is_some_and(|it| it.ends_with(end));
        self.wait_for(end, is_last).await;
    }

    /// Waits for the next frame, but not longer than 20 ms: not every change sends one.
    pub async fn next_frame_or_a_moment(&self) {
        let next = timeout(Duration::from_millis(20), self.outbox.next()).await;
        if let Ok(next) = next {
            self.received.lock().push(frame(&next));
        }
    }

    /// Returns whether this `rev` was received and no run is typing.
    pub fn has_rev(&self, rev: i64) -> bool {
        let log = self.log();
        let newest = log.iter().filter_map(|it| it["rev"].as_i64()).max();
        let n = |event: &str| log.iter().filter(|it| it["type"] == event).count();
        newest.unwrap_or(0) >= rev && n("typing_start") == n("typing_stop")
    }

    /// Checks that `rev` begins with 1 and grows by exactly 1.
    pub fn violations(&self) -> Vec<String> {
        let log = self.log();
        let revs: Vec<i64> = log.iter().filter_map(|it| it["rev"].as_i64()).collect();
        let expected: Vec<i64> = (1..).take(revs.len()).collect();
        match revs == expected {
            true => Vec::new(),
            false => vec![format!("I7: rev must grow by one, but was {revs:?}")],
        }
    }
}

/// Returns the type of a frame, and its status if it has one.
fn describe(frame: &Value) -> String {
    let name = frame["type"].as_str().unwrap_or("?");
    match frame["status"].as_str() {
        Some(status) => format!("{name}({status})"),
        None => name.to_owned(),
    }
}

fn frame(next: &NextItem) -> Value {
    let NextItem::Envelope(envelope) = next else {
        panic!("events were lost: {next:?}");
    };
    let json = envelope.frame(Protocol::V1);
    let json = json.unwrap_or_else(|| panic!("not for clients: {envelope:?}"));
    serde_json::from_str(json).expect("a frame is JSON")
}
