//! Records every event of a hub topic, in the order in which it was published.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use realtime::event::Payload;
use realtime::hub::Hub;
use realtime::outbox::{NextItem, Outbox};
use realtime::topic::Topic;
use serde_json::Value;
use tokio::time::timeout;

use crate::support::poll::DEADLINE;

/// Listens from the moment it was made.
pub struct EventRecorder {
    outbox: Arc<Outbox>,
    heard: Mutex<Vec<Value>>,
}

impl EventRecorder {
    pub fn subscribe(hub: &Hub, topic: Topic) -> Self {
        let outbox = Outbox::new();
        hub.subscribe(topic, &outbox);
        Self {
            outbox,
            heard: Mutex::default(),
        }
    }

    /// Every frame so far.
    pub fn log(&self) -> Vec<Value> {
        self.drain();
        self.heard.lock().clone()
    }

    /// Drains the queue. A long test must do so regularly, because the queue is bounded.
    pub fn drain(&self) {
        let mut heard = self.heard.lock();
        while let Some(next) = self.outbox.try_next() {
            heard.push(frame(&next));
        }
    }

    /// The types of the frames so far; chunks that follow each other are one.
    pub fn event_names(&self) -> Vec<String> {
        self.event_names_since(0)
    }

    /// The same without the first frames.
    pub fn event_names_since(&self, n_frames: usize) -> Vec<String> {
        let mut told: Vec<String> = self.log()[n_frames..].iter().map(describe).collect();
        told.dedup_by(|next, before| next == "stream_chunk" && next == before);
        told
    }

    /// Waits for a frame that fits, also one that has been heard already.
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
            Err(_) => panic!("listened in vain for {what}: {:#?}", self.event_names()),
        }
    }

    /// Waits for a frame of this type.
    pub async fn wait_for_event(&self, event: &str) -> Value {
        self.wait_for(event, |it| it["type"] == event).await
    }

    /// Waits for the n-th frame of this type, from 1; reads only the subscription.
    pub async fn wait_for_events(&self, event: &str, n: usize) {
        let heard = timeout(DEADLINE, async {
            let is_one = |it: &&Value| it["type"] == event;
            while self.log().iter().filter(is_one).count() < n {
                self.next_frame_or_a_moment().await;
            }
        });
        heard
            .await
            .unwrap_or_else(|_| panic!("no {n} frames {event} came"));
    }

    /// Waits until the text of the running stream ends so.
    pub async fn wait_for_text(&self, end: &str) {
        let is_last = |it: &Value| it["delta"].as_str().is_some_and(|it| it.ends_with(end));
        self.wait_for(end, is_last).await;
    }

    /// Returns with the next frame, or after a moment: a fact may become true without one.
    pub async fn next_frame_or_a_moment(&self) {
        let next = timeout(Duration::from_millis(20), self.outbox.next()).await;
        if let Ok(next) = next {
            self.heard.lock().push(frame(&next));
        }
    }

    /// Whether the event with this `rev` was heard, and every run that began to type has stopped.
    pub fn has_rev(&self, rev: i64) -> bool {
        let log = self.log();
        let newest = log.iter().filter_map(|it| it["rev"].as_i64()).max();
        let n = |event: &str| log.iter().filter(|it| it["type"] == event).count();
        newest.unwrap_or(0) >= rev && n("typing_start") == n("typing_stop")
    }

    /// `rev` begins with 1 and grows by exactly 1.
    pub fn violations(&self) -> Vec<String> {
        let log = self.log();
        let revs: Vec<i64> = log.iter().filter_map(|it| it["rev"].as_i64()).collect();
        let expected: Vec<i64> = (1..).take(revs.len()).collect();
        match revs == expected {
            true => Vec::new(),
            false => vec![format!("I7: rev grows by one, but came as {revs:?}")],
        }
    }
}

/// `type`, and for a stream's end its status.
fn describe(frame: &Value) -> String {
    let name = frame["type"].as_str().unwrap_or("?");
    match frame["status"].as_str() {
        Some(status) => format!("{name}({status})"),
        None => name.to_owned(),
    }
}

fn frame(next: &NextItem) -> Value {
    let NextItem::Envelope(envelope) = next else {
        panic!("something was lost: {next:?}");
    };
    let json = match &envelope.payload {
        Payload::Frame { json, .. }
        | Payload::Stream { json, .. }
        | Payload::ExceptUser { json, .. } => json,
        Payload::Delta(delta) => &delta.json,
        Payload::Control(order) => panic!("an order is for a person: {order:?}"),
    };
    serde_json::from_str(json).expect("a frame is JSON")
}
