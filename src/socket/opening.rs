//! A subscription that is under way: what is held back until its answer is out.

use crate::ids::ConversationId;
use crate::realtime::event::Envelope;
use crate::realtime::event::utf16_len;
use crate::realtime::outbox::LIMIT;
use crate::runs::live::LiveText;
use crate::socket::errand::Opened;
use crate::socket::frames::StreamSoFar;
use crate::socket::subscription::Filter;
use crate::socket::subscription::Start;
use serde_json::Number;
use std::sync::Arc;

/// One at most at a time for each socket.
pub struct Opening {
    pub re: Number,
    pub conversation: ConversationId,
    /// What the answer will say, once it is known; then only the mark is waited for.
    pub answer: Option<Answer>,
    held: Vec<Arc<Envelope>>,
    held_bytes: usize,
    /// Something was lost meanwhile: the client must begin again.
    pub lost: bool,
}

/// What the answer says.
pub struct Answer {
    pub opened: Opened,
    pub stream: Option<StreamSoFar>,
}

impl Opening {
    /// Nothing is known yet.
    pub fn new(re: Number, conversation: ConversationId) -> Self {
        Self {
            re,
            conversation,
            answer: None,
            held: Vec::new(),
            held_bytes: 0,
            lost: false,
        }
    }

    /// Holds an envelope back; past the bound of an outbox everything is lost.
    pub fn hold(&mut self, envelope: Arc<Envelope>) {
        self.held_bytes += envelope.size();
        if self.held_bytes > LIMIT {
            self.held.clear();
            self.lost = true;
        }
        if !self.lost {
            self.held.push(envelope);
        }
    }

    /// The snapshot is there, and the text of whoever writes now, read just behind the mark.
    pub fn found(&mut self, opened: Opened, live: Option<LiveText>) {
        let stream = opened.running.map(|(run_id, membership_id)| StreamSoFar {
            run_id,
            membership_id,
            text: live
                .filter(|it| it.run_id == run_id)
                .map(|it| it.text)
                .unwrap_or_default(),
        });
        self.answer = Some(Answer { opened, stream });
    }

    /// The filter that begins behind the answer, and what is to be judged by it first.
    pub fn release(mut self, answer: &Answer) -> (Filter, Vec<Arc<Envelope>>) {
        let running = answer.stream.as_ref();
        let start = Start {
            rev: answer.opened.rev,
            running: running.map(|it| (it.run_id.0, utf16_len(&it.text))),
        };
        let filter = Filter::begin(start, &mut self.held);
        (filter, self.held)
    }

    /// What was held back, where there is no answer: the filter from before goes on with it.
    pub fn give_back(self) -> Vec<Arc<Envelope>> {
        self.held
    }
}
