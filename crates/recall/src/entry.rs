//! A memory as a search sees it, and the scope of a search: which memories it may read.

use std::collections::{BTreeMap, HashSet};

use base::ids::{ConversationId, MembershipId, MemoryId};

use crate::quantized_vector::QuantizedVector;

/// A memory with what a search needs, except its terms and vectors, which the index has.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryEntry {
    pub id: MemoryId,
    /// Whose memory it is; `None`: everyone's in the space.
    pub owner: Option<MembershipId>,
    /// The only members who may know it; `None`: everyone may.
    pub audience: Option<Box<[MembershipId]>>,
    /// Where it was made; `None`: by a person, for the whole space.
    pub source: Option<MemorySource>,
    /// From 0 to 1.
    pub importance: f32,
    pub is_pinned: bool,
    /// The tokens of its line in a prompt.
    pub tokens: i64,
    /// When it was recalled last, in milliseconds since 1970; 0: never.
    pub last_recalled_at: i64,
    pub content: String,
}

/// A memory and its vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedMemory {
    pub entry: MemoryEntry,
    /// Its embedding by the local model, of length 1.
    pub vector: Option<QuantizedVector>,
    /// Its embedding by the model of a provider, of length 1; `None` until it is computed.
    pub provider_vector: Option<QuantizedVector>,
}

impl From<MemoryEntry> for EmbeddedMemory {
    /// Returns the memory without vectors.
    fn from(entry: MemoryEntry) -> Self {
        Self {
            entry,
            vector: None,
            provider_vector: None,
        }
    }
}

/// The messages from which a memory was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySource {
    pub conversation: ConversationId,
    /// The `seq` of the first and of the last message.
    pub from_seq: i64,
    pub to_seq: i64,
    /// Whether the conversation is a branch.
    pub is_branch: bool,
}

impl MemoryEntry {
    /// Creates a memory of everyone, without source.
    pub fn new(id: MemoryId, content: &str) -> Self {
        Self {
            id,
            owner: None,
            audience: None,
            source: None,
            importance: 0.5,
            is_pinned: false,
            tokens: 0,
            last_recalled_at: 0,
            content: content.to_owned(),
        }
    }

    /// Returns its approximate size in memory, in bytes.
    pub fn n_bytes(&self) -> usize {
        let audience = self.audience.as_ref().map_or(0, |it| size_of_val(&**it));
        size_of::<Self>() + self.content.len() + audience
    }
}

/// What decides whether a memory is in the scope of a search.
#[derive(Clone, Copy, Debug)]
pub struct ScopeKey {
    pub id: MemoryId,
    owner: Option<MembershipId>,
    /// Where its audience begins and ends in the list of all audiences.
    audience: Option<(u32, u32)>,
    source: Option<MemorySource>,
    pub is_pinned: bool,
}

impl ScopeKey {
    /// Returns the key of a memory, after adding its audience to the list.
    pub fn new(memory: &MemoryEntry, audiences: &mut Vec<MembershipId>) -> Self {
        let audience = memory.audience.as_ref().map(|members| {
            // The members of the memories of a block are far fewer than 2^32.
            let start = audiences.len() as u32;
            audiences.extend(members);
            (start, audiences.len() as u32)
        });
        Self {
            id: memory.id,
            owner: memory.owner,
            audience,
            source: memory.source,
            is_pinned: memory.is_pinned,
        }
    }
}

/// Which memories of a space a search may read.
#[derive(Clone, Debug, Default)]
pub struct RecallScope {
    /// The member for whom the search is made: the speaker, or the person who searches.
    pub member: Option<MembershipId>,
    /// The conversation of the prompt and its ancestors, each with the newest `seq` that belongs to
    /// it: the fork for an ancestor, the largest number for the conversation itself. `None`: all
    /// conversations of the space, branches included.
    pub lineage: Option<BTreeMap<ConversationId, i64>>,
    /// The conversation of the prompt and the first `seq` of its history; what was made only from
    /// messages of the history is left out.
    pub history: Option<(ConversationId, i64)>,
    /// Only these memories, whoever owns them: those that a person has chosen among what it may see.
    pub chosen: Option<HashSet<MemoryId>>,
}

impl RecallScope {
    /// Returns whether the search may read the memory with this key, whose audience is in this list.
    pub fn contains(&self, key: &ScopeKey, audiences: &[MembershipId]) -> bool {
        let may_know = self.may_know(key, audiences);
        may_know && self.is_in_lineage(key) && !self.is_in_history(key)
    }

    fn may_know(&self, key: &ScopeKey, audiences: &[MembershipId]) -> bool {
        if let Some(chosen) = &self.chosen {
            return chosen.contains(&key.id);
        }
        let is_own = |owner| Some(owner) == self.member;
        let is_member = |(start, end): (u32, u32)| {
            let audience = &audiences[start as usize..end as usize];
            self.member.is_some_and(|it| audience.contains(&it))
        };
        key.owner.is_none_or(is_own) && key.audience.is_none_or(is_member)
    }

    fn is_in_lineage(&self, key: &ScopeKey) -> bool {
        let (Some(lineage), Some(source)) = (&self.lineage, key.source) else {
            return true;
        };
        match lineage.get(&source.conversation) {
            Some(newest) => source.to_seq <= *newest,
            // Root conversations and threads share their memories.
            None => !source.is_branch,
        }
    }

    fn is_in_history(&self, key: &ScopeKey) -> bool {
        let (Some((conversation, first_seq)), Some(source)) = (self.history, key.source) else {
            return false;
        };
        source.conversation == conversation && source.from_seq >= first_seq
    }
}

#[cfg(test)]
mod tests {
    use base::ids::{ConversationId, MembershipId, MemoryId};

    use super::{MemoryEntry, MemorySource, RecallScope, ScopeKey};

    const ANN: MembershipId = MembershipId(1);
    const BOB: MembershipId = MembershipId(2);
    const ROOT: ConversationId = ConversationId(10);
    const THREAD: ConversationId = ConversationId(11);
    const BRANCH: ConversationId = ConversationId(12);
    const OTHER_BRANCH: ConversationId = ConversationId(13);

    fn memory() -> MemoryEntry {
        MemoryEntry::new(MemoryId(1), "Ann: My dog is called Pixel.")
    }

    fn made_in(conversation: ConversationId, seqs: (i64, i64)) -> MemoryEntry {
        let source = MemorySource {
            conversation,
            from_seq: seqs.0,
            to_seq: seqs.1,
            is_branch: [BRANCH, OTHER_BRANCH].contains(&conversation),
        };
        MemoryEntry {
            source: Some(source),
            ..memory()
        }
    }

    fn scope(member: MembershipId) -> RecallScope {
        RecallScope {
            member: Some(member),
            ..RecallScope::default()
        }
    }

    fn contains(scope: &RecallScope, memory: &MemoryEntry) -> bool {
        // The audience of an earlier memory.
        let mut audiences = vec![BOB];
        let key = ScopeKey::new(memory, &mut audiences);
        scope.contains(&key, &audiences)
    }

    #[test]
    fn a_member_reads_what_is_everyones_and_its_own() {
        let own = MemoryEntry {
            owner: Some(ANN),
            ..memory()
        };

        assert!(contains(&scope(BOB), &memory()));
        assert!(contains(&scope(ANN), &own));
        assert!(!contains(&scope(BOB), &own));
        assert!(!contains(&RecallScope::default(), &own));
    }

    #[test]
    fn only_its_audience_reads_a_memory_that_has_one() {
        let private = MemoryEntry {
            audience: Some([ANN].into()),
            ..memory()
        };

        assert!(contains(&scope(ANN), &private));
        assert!(!contains(&scope(BOB), &private));
        assert!(!contains(&RecallScope::default(), &private));
    }

    #[test]
    fn a_choice_decides_instead_of_the_owner() {
        let own = MemoryEntry {
            owner: Some(ANN),
            ..memory()
        };
        let choice = |id| RecallScope {
            chosen: Some([MemoryId(id)].into()),
            ..RecallScope::default()
        };

        assert!(contains(&choice(1), &own));
        assert!(!contains(&choice(2), &memory()));
    }

    #[test]
    fn a_branch_reads_what_was_made_before_its_fork_and_in_itself() {
        let in_branch = RecallScope {
            lineage: Some([(ROOT, 5), (BRANCH, i64::MAX)].into()),
            ..RecallScope::default()
        };

        assert!(contains(&in_branch, &made_in(ROOT, (2, 5))));
        assert!(!contains(&in_branch, &made_in(ROOT, (5, 6))));
        assert!(contains(&in_branch, &made_in(BRANCH, (9, 9))));
        assert!(contains(&in_branch, &made_in(THREAD, (9, 9))));
        assert!(!contains(&in_branch, &made_in(OTHER_BRANCH, (1, 1))));
    }

    #[test]
    fn a_root_conversation_does_not_read_what_was_made_in_a_branch() {
        let in_root = RecallScope {
            lineage: Some([(ROOT, i64::MAX)].into()),
            ..RecallScope::default()
        };

        assert!(contains(&in_root, &made_in(ROOT, (9, 9))));
        assert!(contains(&in_root, &made_in(THREAD, (9, 9))));
        assert!(!contains(&in_root, &made_in(BRANCH, (1, 1))));
    }

    #[test]
    fn what_the_history_contains_is_left_out() {
        let in_root = RecallScope {
            history: Some((ROOT, 4)),
            ..RecallScope::default()
        };

        assert!(contains(&in_root, &made_in(ROOT, (3, 4))));
        assert!(!contains(&in_root, &made_in(ROOT, (4, 4))));
        assert!(contains(&in_root, &made_in(THREAD, (4, 4))));
    }
}
