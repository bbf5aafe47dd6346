//! Reads the memories in a model's answer. Members are looked up by their names, messages and
//! memories by their numbers in the request.

use std::sync::Arc;

use base::ids::{MembershipId, MemoryId};
use recall::content::one_line;
use recall::entry::MemoryEntry;
use recall::snippet::looks_like_secret;
use serde::Deserialize;
use serde_json::Value;

use crate::conversations::conversation::ConversationKind;
use crate::conversations::{conversation, message};
use crate::memories::learning::extraction_request::MAX_MEMORIES;
use crate::memories::learning::learned_memory::DraftMemory;
use crate::memories::learning::member_names::MemberNames;
use crate::memories::memory::{MemoryKind, MemoryOrigin};
use crate::memories::memory_store::NewMemory;

/// The importance of a memory for which the model stated none.
const DEFAULT_IMPORTANCE: f64 = 0.5;

/// What the request contained, in the order of its numbers.
pub struct AnswerContext<'a> {
    pub conversation: &'a conversation::Model,
    pub messages: &'a [message::Model],
    pub memories: &'a [Arc<MemoryEntry>],
    pub names: &'a MemberNames,
}

impl AnswerContext<'_> {
    /// Returns the memories of an answer; those that must not be stored are left out. Returns `None`
    /// if the answer does not have the requested form.
    pub fn read(&self, answer: &Value) -> Option<Vec<DraftMemory>> {
        let items = answer["memories"].as_array()?.iter();
        let drafts = items.filter_map(|it| self.read_memory(it));
        Some(drafts.take(MAX_MEMORIES).collect())
    }

    fn read_memory(&self, item: &Value) -> Option<DraftMemory> {
        let content = one_line(item["content"].as_str()?)?;
        if looks_like_secret(&content) {
            return None;
        }
        let importance = item["importance"].as_f64().unwrap_or(DEFAULT_IMPORTANCE);
        let memory = NewMemory {
            owner: self.find_member(&item["owner"]),
            about: self.find_member(&item["about"]),
            source: None,
            kind: MemoryKind::deserialize(&item["kind"]).unwrap_or(MemoryKind::Event),
            origin: MemoryOrigin::Extracted,
            content,
            importance: importance.clamp(0.0, 1.0),
            is_pinned: false,
            created_by: None,
        };
        let replaces = self.find_replaced(&item["replaces"]);
        DraftMemory::from_messages(memory, self.find_sources(&item["sources"]), replaces)
    }

    fn find_member(&self, name: &Value) -> Option<MembershipId> {
        self.names.find(name.as_str()?)
    }

    /// Returns the messages with these numbers, or all of them if there are none.
    fn find_sources(&self, numbers: &Value) -> Vec<&message::Model> {
        let numbers: Vec<usize> = numbers
            .as_array()
            .map(|it| it.iter().filter_map(index).collect())
            .unwrap_or_default();
        let is_named = |at: usize| numbers.contains(&at);
        let all = self.messages.iter().enumerate();
        let named: Vec<&message::Model> = all
            .filter(|(at, _)| is_named(*at))
            .map(|(_, it)| it)
            .collect();
        match named.is_empty() {
            true => self.messages.iter().collect(),
            false => named,
        }
    }

    /// Returns the memory with this number. A message of a branch replaces only memories that
    /// were learned in that branch, because other conversations do not contain the message.
    fn find_replaced(&self, number: &Value) -> Option<MemoryId> {
        let memory = self.memories.get(index(number)?)?;
        let is_made_here = || {
            let source = memory.source.map(|it| it.conversation);
            source == Some(self.conversation.id)
        };
        let is_branch = self.conversation.kind == ConversationKind::Branch;
        (!is_branch || is_made_here()).then_some(memory.id)
    }
}

/// Returns the zero-based position of a number that is counted from 1.
fn index(number: &Value) -> Option<usize> {
    usize::try_from(number.as_u64()?).ok()?.checked_sub(1)
}
