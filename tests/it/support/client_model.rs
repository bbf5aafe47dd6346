//! Models a browser tab: a timeline that subscribes, detects gaps, and reconnects by itself.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::http_client::HttpClient;
use crate::support::poll::DEADLINE;
use crate::support::timeline_model::{Then, Timeline};
use crate::support::ws_client::{Socket, connect};

/// The delay before a tab reconnects.
const RECONNECT_DELAY: Duration = Duration::from_millis(50);

/// One conversation in one tab. It reconnects until it is dropped and is never reloaded.
pub struct ClientModel {
    shown: Arc<Mutex<ClientState>>,
    changed: watch::Receiver<u64>,
    is_awake: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// The state of the tab, and counters of its connections.
#[derive(Default)]
struct ClientState {
    timeline: Timeline,
    is_connected: bool,
    n_connections: usize,
    n_gaps: usize,
    log: Vec<Value>,
}

impl ClientModel {
    /// Opens a tab and waits for its first snapshot.
    pub async fn open(person: &HttpClient, conversation: i64) -> ClientModel {
        let shown = Arc::new(Mutex::new(ClientState::default()));
        let (notify, changed) = watch::channel(0);
        let is_awake = watch::Sender::new(true);
        let tab = Tab {
            person: person.clone(),
            conversation,
            shown: Arc::clone(&shown),
            notify,
            is_awake: is_awake.subscribe(),
            pending_subscribe: None,
            next_id: 0,
        };
        let model = ClientModel {
            shown,
            changed,
            is_awake,
            task: tokio::spawn(tab.run()),
        };
        model
            .wait_until("the first snapshot", |timeline| timeline.rev().is_some())
            .await;
        model
    }

    /// Closes the socket, like a suspended laptop, until `reconnect` is called.
    pub async fn disconnect(&self) {
        self.is_awake.send_replace(false);
        self.wait_until("the socket is closed", |_| !self.shown.lock().is_connected)
            .await;
    }

    /// Allows connections again.
    pub fn reconnect(&self) {
        self.is_awake.send_replace(true);
    }

    /// Returns the current timeline.
    pub fn timeline(&self) -> Timeline {
        self.shown.lock().timeline.clone()
    }

    /// Returns the frames of all connections; each connection begins with `{"connected": n}`.
    pub fn log(&self) -> Vec<Value> {
        self.shown.lock().log.clone()
    }

    /// Returns the number of connections made.
    pub fn n_connections(&self) -> usize {
        self.shown.lock().n_connections
    }

    /// Returns the number of gaps after which it subscribed again.
    pub fn n_gaps(&self) -> usize {
        self.shown.lock().n_gaps
    }

    /// Waits until the timeline fits; panics with the timeline at the deadline.
    pub async fn wait_until(&self, what: &str, fits: impl Fn(&Timeline) -> bool) -> Timeline {
        let mut changed = self.changed.clone();
        let search = async {
            loop {
                changed.borrow_and_update();
                let timeline = self.timeline();
                if fits(&timeline) {
                    return timeline;
                }
                changed.changed().await.expect("the connection task runs");
            }
        };
        timeout(DEADLINE, search)
            .await
            .unwrap_or_else(|_| panic!("timed out after {DEADLINE:?}: {what}\n{}", self.tail()))
    }

    /// Returns the last frames and messages, for failure messages.
    pub fn tail(&self) -> String {
        let shown = self.shown.lock();
        let from = shown.log.len().saturating_sub(15);
        let lines: Vec<String> = shown.log[from..].iter().map(Value::to_string).collect();
        format!(
            "shown: rev {:?}, state {}, {:?}\nlast frames:\n{}",
            shown.timeline.rev(),
            shown.timeline.state(),
            shown.timeline.lines().last(),
            lines.join("\n")
        )
    }
}

impl Drop for ClientModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The connection task of the tab.
struct Tab {
    person: HttpClient,
    conversation: i64,
    shown: Arc<Mutex<ClientState>>,
    notify: watch::Sender<u64>,
    is_awake: watch::Receiver<bool>,
    /// The id of the subscribe request that is not answered yet.
    pending_subscribe: Option<i64>,
    next_id: i64,
}

impl Tab {
    async fn run(mut self) {
        let mut is_awake = self.is_awake.clone();
        loop {
            if is_awake.wait_for(|awake| *awake).await.is_err() {
                return;
            }
            if let Ok(socket) = connect(&self.person).await {
                tokio::select! {
                    // Reconnects after a broken connection.
                    _ = self.listen(socket) => {}
                    _ = is_awake.wait_for(|awake| !*awake) => {}
                }
                self.shown.lock().is_connected = false;
                self.notify.send_modify(|n| *n += 1);
            }
            sleep(RECONNECT_DELAY).await;
        }
    }

    async fn listen(&mut self, mut socket: Socket) -> Result<(), Error> {
        {
            let mut shown = self.shown.lock();
            shown.n_connections += 1;
            shown.is_connected = true;
            let connected = json!({"connected": shown.n_connections});
            shown.log.push(connected);
        }
        self.pending_subscribe = None;
        self.subscribe(&mut socket).await?;
        while let Some(frame) = socket.next().await {
            let Message::Text(text) = frame? else {
                continue;
            };
            let frame: Value =
                serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"));
            let then = self.apply(frame);
            self.notify.send_modify(|n| *n += 1);
            if then == Then::SubscribeAgain && self.pending_subscribe.is_none() {
                self.shown.lock().n_gaps += 1;
                self.subscribe(&mut socket).await?;
            }
        }
        Ok(())
    }

    async fn subscribe(&mut self, socket: &mut Socket) -> Result<(), Error> {
        self.next_id += 1;
        let mut frame =
            json!({"id": self.next_id, "op": "subscribe", "conversation_id": self.conversation});
        if let Some(rev) = self.shown.lock().timeline.rev() {
            frame["after_rev"] = json!(rev);
        }
        self.pending_subscribe = Some(self.next_id);
        socket.send(Message::text(frame.to_string())).await
    }

    fn apply(&mut self, frame: Value) -> Then {
        let mut shown = self.shown.lock();
        let is_answer = frame.get("re").is_some();
        let then = if is_answer && frame["re"].as_i64() == self.pending_subscribe {
            self.pending_subscribe = None;
            // An error does not change the timeline; a caller that waits for it finds the frame in
            // the log.
            if frame["ok"] == true {
                shown.timeline.take_snapshot(&frame);
            }
            Then::Listen
        } else if frame["type"] != "resync" && frame["conversation_id"] != self.conversation {
            Then::Listen
        } else {
            shown.timeline.apply(&frame)
        };
        shown.log.push(frame);
        then
    }
}
