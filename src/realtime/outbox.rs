//! What waits for one socket, bounded however slowly the socket is read.
//!
//! Pieces of text of one run that wait are merged. When more than [`LIMIT`] bytes wait,
//! everything that waits for conversations is dropped; the reader is told which conversations
//! lost something, and asks again for what it missed.
//!
//! Answers to a client's own frames do not pass here: the socket's task writes each answer before
//! it reads the next frame, so at most one of them ever waits.
//!
//! **Invariant:** what one topic sends leaves in the order in which it came, and of a conversation
//! that lost something nothing more leaves until [`Outbox::forget`].

use crate::ids::ConversationId;
use crate::realtime::event::Cargo;
use crate::realtime::event::Delta;
use crate::realtime::event::Envelope;
use crate::realtime::event::Order;
use crate::realtime::topic::Topic;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;
use uuid::Uuid;

/// Bytes that may wait. One envelope alone may be larger: a long message must get through.
pub const LIMIT: usize = 256 * 1024;

/// Different orders that may wait; a person has few sessions and not many more spaces.
const MOST_ORDERS: usize = 256;

/// How far back a piece of text looks for the piece that it continues. Further back there would
/// have to be as many conversations with waiting frames as this.
const LOOK_BACK: usize = 32;

/// The queue between the hub and one socket. Any thread pushes, one task takes.
#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// Rung when something waits and nothing waited before.
    bell: Notify,
}

/// What the socket gets next.
#[derive(Debug)]
pub enum Next {
    /// To be obeyed before anything else is sent.
    Order(Order),
    /// This conversation lost what waited for it.
    Lost(ConversationId),
    Envelope(Arc<Envelope>),
    /// All that came before [`Outbox::mark`] is out.
    Mark(ConversationId),
    /// What cannot be asked for again was lost: the socket must close.
    Overflow,
}

#[derive(Default)]
struct State {
    orders: VecDeque<Order>,
    /// Conversations that lost something; `told` is whether the reader knows.
    lost: Vec<Lost>,
    queue: VecDeque<Waiting>,
    /// The sum of the sizes in `queue`.
    bytes: usize,
    overflowed: bool,
}

struct Lost {
    conversation: ConversationId,
    told: bool,
}

enum Waiting {
    Mark(ConversationId),
    One(Arc<Envelope>),
    Merged(Box<Merged>),
}

/// Pieces of one run that follow each other, to be encoded when they leave.
struct Merged {
    conversation: ConversationId,
    run: Uuid,
    offset: usize,
    /// UTF-16 units of the run's text up to the end of `text`.
    end: usize,
    text: String,
}

impl Outbox {
    /// An empty one, to be shared with the hub.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Takes the envelope in, or drops it and remembers that. Never waits. Returns how many
    /// envelopes were dropped, this one or those that waited.
    pub fn push(&self, envelope: &Arc<Envelope>) -> u64 {
        self.change(|state| state.take_in(envelope))
    }

    /// Marks this place: what has come for the conversation leaves before [`Next::Mark`] does.
    pub fn mark(&self, conversation: ConversationId) {
        self.change(|state| state.queue.push_back(Waiting::Mark(conversation)));
    }

    /// What is next, as soon as there is something. Nothing is lost when the future is dropped.
    pub async fn next(&self) -> Next {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.bell.notified().await;
        }
    }

    /// What is next, if something waits.
    pub fn try_next(&self) -> Option<Next> {
        self.state.lock().take_out()
    }

    /// Something was lost before it came here: the reader must ask again for `conversation`.
    pub fn lose(&self, conversation: ConversationId) {
        self.change(|state| {
            let topic = Topic::Conversation(conversation);
            if !state.has_lost(topic) {
                state.lost.push(Lost {
                    conversation,
                    told: false,
                });
            }
            let is_void = |it: &Waiting| it.topic() == topic && it.can_be_asked_for();
            state.queue.retain(|it| !is_void(it));
            state.count();
        });
    }

    /// Drops what waits for `conversation`, and that it lost something: its subscription begins
    /// or ends here.
    pub fn forget(&self, conversation: ConversationId) {
        let mut state = self.state.lock();
        state.lost.retain(|it| it.conversation != conversation);
        state
            .queue
            .retain(|it| it.topic() != Topic::Conversation(conversation));
        state.count();
    }

    /// Bytes that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.state.lock().bytes
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let was_empty = state.is_empty();
        let changed = change(&mut state);
        let ring = was_empty && !state.is_empty();
        drop(state);
        if ring {
            self.bell.notify_one();
        }
        changed
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
            && self.orders.is_empty()
            && !self.overflowed
            && self.lost.iter().all(|it| it.told)
    }

    /// Returns how many envelopes were dropped.
    fn take_in(&mut self, envelope: &Arc<Envelope>) -> u64 {
        if let Cargo::Order(order) = envelope.cargo {
            self.take_order(order);
            return 0;
        }
        if self.overflowed || self.has_lost(envelope.topic) {
            return 1;
        }
        if !self.merge(envelope) {
            self.bytes += envelope.size();
            self.queue.push_back(Waiting::One(envelope.clone()));
        }
        match self.bytes > LIMIT && self.queue.len() > 1 {
            true => self.shed(),
            false => 0,
        }
    }

    fn take_order(&mut self, order: Order) {
        if self.orders.contains(&order) {
            return;
        }
        match self.orders.len() < MOST_ORDERS {
            true => self.orders.push_back(order),
            false => self.overflowed = true,
        }
    }

    fn take_out(&mut self) -> Option<Next> {
        if let Some(order) = self.orders.pop_front() {
            return Some(Next::Order(order));
        }
        if self.overflowed {
            return Some(Next::Overflow);
        }
        if let Some(lost) = self.lost.iter_mut().find(|it| !it.told) {
            lost.told = true;
            return Some(Next::Lost(lost.conversation));
        }
        let waiting = self.queue.pop_front()?;
        self.bytes -= waiting.size();
        if self.queue.is_empty() {
            // A burst must not keep its room for the life of an idle socket.
            self.queue.shrink_to(LOOK_BACK);
        }
        Some(waiting.into_next())
    }

    fn has_lost(&self, topic: Topic) -> bool {
        self.lost
            .iter()
            .any(|it| topic == Topic::Conversation(it.conversation))
    }

    /// Adds a piece of text to one that waits, if it continues the newest frame of its conversation.
    fn merge(&mut self, envelope: &Envelope) -> bool {
        let Cargo::Delta(delta) = &envelope.cargo else {
            return false;
        };
        let mut newest = self.queue.iter_mut().rev().take(LOOK_BACK);
        let Some(newest) = newest.find(|it| it.topic() == envelope.topic) else {
            return false;
        };
        let before = newest.size();
        let merged = newest.append(delta);
        self.bytes = self.bytes - before + newest.size();
        merged
    }

    /// Too much waits: conversations lose theirs, for they can ask again. What is left must fit.
    /// Returns how many were dropped.
    fn shed(&mut self) -> u64 {
        let n_before = self.queue.len();
        for place in 0..self.queue.len() {
            let topic = self.queue[place].topic();
            if let Topic::Conversation(conversation) = topic
                && !self.has_lost(topic)
            {
                self.lost.push(Lost {
                    conversation,
                    told: false,
                });
            }
        }
        self.queue.retain(|it| !it.can_be_asked_for());
        self.count();
        if self.bytes > LIMIT {
            self.overflowed = true;
            self.queue.clear();
            self.bytes = 0;
        }
        (n_before - self.queue.len()) as u64
    }

    fn count(&mut self) {
        self.bytes = self.queue.iter().map(Waiting::size).sum();
    }
}

impl Waiting {
    fn topic(&self) -> Topic {
        match self {
            Self::Mark(conversation) => Topic::Conversation(*conversation),
            Self::One(envelope) => envelope.topic,
            Self::Merged(merged) => Topic::Conversation(merged.conversation),
        }
    }

    /// Whether the reader can ask for it once more.
    fn can_be_asked_for(&self) -> bool {
        !matches!(self, Self::Mark(_)) && matches!(self.topic(), Topic::Conversation(_))
    }

    fn size(&self) -> usize {
        match self {
            Self::Mark(_) => 0,
            Self::One(envelope) => envelope.size(),
            Self::Merged(merged) => size_of::<Merged>() + merged.text.len(),
        }
    }

    /// Adds a piece, if this is a piece of the same run that ends where the other begins.
    fn append(&mut self, delta: &Delta) -> bool {
        if self.end() != Some((delta.run, delta.offset)) {
            return false;
        }
        if let Self::One(envelope) = self
            && let Cargo::Delta(first) = &envelope.cargo
        {
            *self = Self::Merged(Box::new(Merged {
                conversation: ConversationId(first.conversation),
                run: first.run,
                offset: first.offset,
                end: first.end(),
                text: first.text.to_string(),
            }));
        }
        if let Self::Merged(merged) = self {
            merged.text.push_str(&delta.text);
            merged.end = delta.end();
        }
        true
    }

    /// Where the next piece would begin, if this is a piece of a run.
    fn end(&self) -> Option<(Uuid, usize)> {
        match self {
            Self::Merged(merged) => Some((merged.run, merged.end)),
            Self::One(envelope) => match &envelope.cargo {
                Cargo::Delta(delta) => Some((delta.run, delta.end())),
                _ => None,
            },
            Self::Mark(_) => None,
        }
    }

    fn into_next(self) -> Next {
        match self {
            Self::Mark(conversation) => Next::Mark(conversation),
            Self::One(envelope) => Next::Envelope(envelope),
            Self::Merged(it) => {
                let delta = Delta::new(it.conversation, it.run, it.offset, it.text);
                Next::Envelope(Arc::new(Envelope::delta(delta)))
            }
        }
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
