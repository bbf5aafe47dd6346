//! Learns without a model: a message that says something about a person becomes a memory as it is.

use llm::demo::model::NOTICE;
use recall::snippet::snippet;

use crate::conversations::message;
use crate::memories::learning::learned_memory::DraftMemory;
use crate::memories::memory::{MemoryKind, MemoryOrigin};
use crate::memories::memory_store::NewMemory;
use crate::spaces::membership::Model as Membership;

/// The importance of a snippet.
const IMPORTANCE: f64 = 0.3;

/// Returns the snippets of these messages.
pub fn make(messages: &[message::Model], members: &[Membership]) -> Vec<DraftMemory> {
    let made = messages.iter().filter_map(|it| to_snippet(it, members));
    made.collect()
}

/// Returns the text of a message without the notice of the demo model, which precedes its first reply
/// and says nothing about a person.
pub fn text_of(message: &message::Model) -> &str {
    let text = message.content.rsplit(NOTICE).next();
    text.unwrap_or(&message.content)
}

fn to_snippet(message: &message::Model, members: &[Membership]) -> Option<DraftMemory> {
    let author = members
        .iter()
        .find(|it| it.id == message.space_membership_id)?;
    let names = members.iter().map(|it| it.cached_display_name.as_str());
    let content = snippet(&author.cached_display_name, text_of(message), names)?;
    let memory = NewMemory {
        owner: None,
        about: Some(author.id),
        source: None,
        kind: MemoryKind::Snippet,
        origin: MemoryOrigin::Snippet,
        content,
        importance: IMPORTANCE,
        is_pinned: false,
        created_by: None,
    };
    DraftMemory::from_messages(memory, [message], None)
}
