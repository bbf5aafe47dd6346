//! Simulated browser tabs: each applies the frames of its socket, detects gaps, and reconnects.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::record::{ClientLog, Micros, Note, Reader, ReceivedEvent, now};
use crate::spaces::SignedInUser;
use crate::support::timeline_model::{Then, Timeline};
use crate::{frames, text_keys};

/// A connection of a tab.
pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The limit for a node to accept a connection.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// How many events some tabs claim to be ahead of the server.
const AHEAD: i64 = 1_000_000;
/// One tab in this many claims that.
const N_AHEAD_CLIENTS: usize = 10;

/// The limits of the delay between two connections of one tab.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);

/// One conversation in a tab.
struct TabConversation {
    conversation: i64,
    membership: i64,
    timeline: Timeline,
    notes: Vec<Note>,
    /// The pending subscribe request.
    asked: Option<Asked>,
    /// It shows only the newest messages and those after them.
    is_late: bool,
}

/// A subscribe request: its id, when it was sent, and with which `rev`.
struct Asked {
    id: i64,
    at: Micros,
    after: Option<i64>,
}

/// How the tab reacts to a frame.
enum Answer {
    Nothing,
    Send(Value),
    /// The tab disconnects, because the node refused the subscription.
    Leave,
}

/// What a tab shows, for readers outside its task.
pub struct Tab {
    client: usize,
    tab_conversations: Mutex<Vec<TabConversation>>,
    /// What its user received, in frames and in responses.
    reader: Mutex<Reader>,
    /// The conversation in which the newest turn of its user began, until it is read.
    new_turn: Mutex<Option<i64>>,
}

impl Tab {
    /// Opens a tab; each change of `cut` breaks its connection.
    pub fn open(
        guest: &SignedInUser,
        nodes: Vec<String>,
        rng: ChaCha8Rng,
        cut: watch::Receiver<u64>,
    ) -> Arc<Tab> {
        let tab_conversations = guest.conversations.iter().map(TabConversation::of);
        let tab = Arc::new(Tab {
            client: guest.index,
            tab_conversations: Mutex::new(tab_conversations.collect()),
            reader: Mutex::default(),
            new_turn: Mutex::default(),
        });
        let cookie = guest.cookie.clone();
        tokio::spawn(run(Arc::clone(&tab), cookie, nodes, rng, cut));
        tab
    }

    /// Adds a conversation, which is shown from the next connection on.
    pub fn enter(&self, tab_conversation: &crate::spaces::SpaceConversation) {
        let tab_conversation = TabConversation {
            is_late: true,
            ..TabConversation::of(tab_conversation)
        };
        self.tab_conversations.lock().push(tab_conversation);
    }

    /// Records what its user receives: a frame or a response.
    pub fn note_received(&self, text: &str) {
        let mut reader = self.reader.lock();
        reader.keys.append(&mut text_keys::keys_in(text));
        if text.contains("space_membership_id") && text.contains("seq") {
            let document = serde_json::from_str(text).unwrap_or_default();
            frames::message_ids(&document, &mut reader.messages);
        }
    }

    /// Returns all that its user received.
    pub fn reader(&self) -> Reader {
        let tab_conversations = self.tab_conversations.lock();
        Reader {
            client: self.client,
            memberships: tab_conversations.iter().map(|it| it.membership).collect(),
            ..self.reader.lock().clone()
        }
    }

    /// Returns the conversation in which a turn of its user has begun, once.
    pub fn take_new_turn(&self) -> Option<i64> {
        self.new_turn.lock().take()
    }

    /// Returns what it shows of each conversation.
    pub fn shown(&self) -> Vec<ClientLog> {
        let tab_conversations = self.tab_conversations.lock();
        // Omits conversations without a snapshot.
        let open = tab_conversations
            .iter()
            .filter(|it| it.timeline.rev().is_some());
        open.map(|it| it.client_log(self.client)).collect()
    }

    /// Returns all events that it received.
    pub fn client_logs(&self) -> Vec<ClientLog> {
        let tab_conversations = self.tab_conversations.lock();
        let open = tab_conversations
            .iter()
            .filter(|it| it.timeline.rev().is_some());
        open.map(|it| ClientLog {
            notes: it.notes.clone(),
            ..it.client_log(self.client)
        })
        .collect()
    }

    /// Returns the requests to send on a new connection.
    fn subscribe_all(&self, node: usize, next_id: &mut i64, claims_ahead: bool) -> Vec<Value> {
        let mut tab_conversations = self.tab_conversations.lock();
        let request = |tab_conversation: &mut TabConversation| {
            tab_conversation.note(ReceivedEvent::Connected(node));
            tab_conversation.subscribe(next_id, if claims_ahead { AHEAD } else { 0 })
        };
        tab_conversations.iter_mut().map(request).collect()
    }

    /// Applies a frame and returns the frame to send.
    fn apply(&self, frame: &Value, next_id: &mut i64) -> Answer {
        let mut tab_conversations = self.tab_conversations.lock();
        if frame["type"] == "copilot_candidate" {
            // It contains a membership but no conversation. One for another user is recorded too.
            let membership = frame["membership_id"].as_i64().unwrap_or(0);
            let at = tab_conversations
                .iter()
                .position(|it| it.membership == membership);
            tab_conversations[at.unwrap_or(0)].note(ReceivedEvent::Candidate(membership));
            return Answer::Nothing;
        }
        if frame["type"] == "your_turn" {
            *self.new_turn.lock() = frame["conversation_id"].as_i64();
        }
        let tab_conversation =
            tab_conversations
                .iter_mut()
                .find(|tab_conversation| match frame["re"].as_i64() {
                    Some(re) => tab_conversation
                        .asked
                        .as_ref()
                        .is_some_and(|it| it.id == re),
                    None => frame["conversation_id"] == tab_conversation.conversation,
                });
        tab_conversation.map_or(Answer::Nothing, |tab_conversation| {
            tab_conversation.apply(frame, next_id)
        })
    }
}

impl TabConversation {
    fn of(tab_conversation: &crate::spaces::SpaceConversation) -> TabConversation {
        TabConversation {
            conversation: tab_conversation.conversation,
            membership: tab_conversation.membership,
            timeline: Timeline::default(),
            notes: Vec::new(),
            asked: None,
            is_late: false,
        }
    }

    /// Returns what it shows.
    fn client_log(&self, client: usize) -> ClientLog {
        let number = |it: &Value| it.as_i64().unwrap_or(0);
        let messages = self.timeline.messages();
        let revs = messages
            .iter()
            .map(|it| (number(&it["id"]), number(&it["rev"])));
        ClientLog {
            client,
            conversation: self.conversation,
            membership: self.membership,
            notes: Vec::new(),
            lines: self.timeline.lines(),
            revs: revs.collect(),
            is_late: self.is_late,
            complaints: self.timeline.complaints().to_vec(),
        }
    }

    fn note(&mut self, event: ReceivedEvent) {
        self.notes.push(Note { at: now(), event });
    }

    fn subscribe(&mut self, next_id: &mut i64, ahead: i64) -> Value {
        *next_id += 1;
        let after = self.timeline.rev().map(|it| it + ahead);
        self.asked = Some(Asked {
            id: *next_id,
            at: now(),
            after,
        });
        let mut frame =
            json!({"id": *next_id, "op": "subscribe", "conversation_id": self.conversation});
        if let Some(rev) = after {
            frame["after_rev"] = json!(rev);
        }
        frame
    }

    fn apply(&mut self, frame: &Value, next_id: &mut i64) -> Answer {
        if let Some(asked) = self.asked.take_if(|_| frame.get("re").is_some()) {
            if frame["ok"] != true {
                return Answer::Leave;
            }
            self.is_late |= frame["snapshot"]["reset"] == true;
            self.note(frames::snapshot(frame, asked.at, asked.after));
            self.timeline.take_snapshot(&frames::light(frame));
            return Answer::Nothing;
        }
        if let Some(event) = frames::event_in(frame) {
            self.note(event);
        }
        let then = self.timeline.apply(&frames::light(frame));
        if then == Then::SubscribeAgain && self.asked.is_none() {
            return Answer::Send(self.subscribe(next_id, 0));
        }
        Answer::Nothing
    }
}

async fn run(
    tab: Arc<Tab>,
    cookie: String,
    nodes: Vec<String>,
    mut rng: ChaCha8Rng,
    mut cut: watch::Receiver<u64>,
) {
    let mut next_id = 0;
    // As in a browser, the delay grows while connections are refused.
    let mut delay = SHORTEST;
    loop {
        let began = Instant::now();
        let node = rng.random_range(0..nodes.len());
        if let Ok(Some(socket)) = timeout(REPLY_TIMEOUT, connect(&nodes[node], &cookie)).await {
            let connected_for = Duration::from_secs(rng.random_range(5..60));
            let claims_ahead = tab.client % N_AHEAD_CLIENTS == 3 && rng.random_range(0..4) == 0;
            tokio::select! {
                _ = listen(&tab, socket, node, &mut next_id, claims_ahead) => {}
                changed = cut.changed() => if changed.is_err() { return },
                () = sleep(connected_for) => {}
            }
        }
        let stayed = began.elapsed() > LONGEST;
        delay = if stayed {
            SHORTEST
        } else {
            (delay * 2).min(LONGEST)
        };
        let part = rng.random_range(0.5..1.0);
        sleep(delay.mul_f64(part)).await;
    }
}

async fn listen(
    tab: &Tab,
    mut socket: Socket,
    node: usize,
    next_id: &mut i64,
    claims_ahead: bool,
) -> Option<()> {
    for frame in tab.subscribe_all(node, next_id, claims_ahead) {
        socket.send(Message::text(frame.to_string())).await.ok()?;
    }
    loop {
        // A stopped node sends nothing: after too long without a ping the tab reconnects.
        let frame = timeout(Duration::from_secs(25), socket.next()).await;
        let Message::Text(text) = frame.ok()??.ok()? else {
            continue;
        };
        tab.note_received(&text);
        let frame: Value = serde_json::from_str(&text).expect("frames are JSON");
        match tab.apply(&frame, next_id) {
            Answer::Nothing => {}
            Answer::Send(frame) => socket.send(Message::text(frame.to_string())).await.ok()?,
            Answer::Leave => return None,
        }
    }
}

/// Opens a socket, as a browser does.
pub async fn connect(base: &str, cookie: &str) -> Option<Socket> {
    let address = format!("{}/ws", base.replacen("http", "ws", 1));
    let mut request = address.into_client_request().ok()?;
    let headers = request.headers_mut();
    headers.insert("cookie", HeaderValue::from_str(cookie).ok()?);
    headers.insert("origin", HeaderValue::from_str(base).ok()?);
    Some(connect_async(request).await.ok()?.0)
}
