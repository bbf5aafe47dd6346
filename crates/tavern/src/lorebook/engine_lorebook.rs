//! Defines the lorebooks and entries that the engine evaluates, with all fields parsed.

use base::ids::{LorebookEntryId, LorebookId};
use base::prompt_role::PromptRole;

/// A lorebook that takes part in a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Lorebook {
    /// Unique key: the row's id, or the character whose card embeds it. A lorebook with a repeated
    /// key counts once.
    pub key: String,
    /// The id of its row; `None` for an embedded lorebook.
    pub id: Option<LorebookId>,
    pub name: String,
    /// Why it takes part.
    pub source: LorebookSource,
    /// The scan depth of its entries, in messages; `None`: the settings apply.
    pub scan_depth: Option<usize>,
    /// The maximum number of tokens of its entries together.
    pub token_budget: Option<i64>,
    /// Whether its entries may activate each other; `None`: the settings apply.
    pub recursive: Option<bool>,
    /// In the order of the document.
    pub entries: Vec<LorebookEntry>,
}

/// Why a lorebook takes part in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LorebookSource {
    /// Linked to this conversation.
    Conversation,
    /// Linked to the user's membership, or to the character they play.
    Persona,
    /// Linked to the space.
    Space,
    /// Embedded in the speaker's card, linked to the speaker, or named by the card.
    Character,
}

/// One entry of a lorebook.
#[derive(Clone, Debug, PartialEq)]
pub struct LorebookEntry {
    /// Unique within its lorebook.
    pub key: String,
    /// The id of its row; `None` in an embedded lorebook.
    pub id: Option<LorebookEntryId>,
    /// The display name; never blank.
    pub name: String,
    /// Primary keywords: any of them activates the entry. Macros are expanded.
    pub keys: Vec<String>,
    /// Optional filter: further keys, evaluated by `logic`.
    pub secondary_keys: Vec<String>,
    /// Whether `secondary_keys` apply.
    pub selective: bool,
    /// How `secondary_keys` are evaluated.
    pub logic: SelectiveLogic,
    /// The text with its decorators. Macros are expanded.
    pub content: String,
    pub enabled: bool,
    /// Activates without a key.
    pub constant: bool,
    /// Also activates if its content is similar to the scanned texts, which the caller decides; see
    /// [`crate::lorebook::scan_request::ScanRequest::external_activations`].
    pub is_vectorized: bool,
    /// Whether all keys are patterns.
    pub use_regex: bool,
    /// Insertion order: a higher value is nearer to the end of the prompt.
    pub order: i64,
    /// Priority under the token budget: higher is kept longer.
    pub priority: Option<i64>,
    pub position: InsertionPosition,
    /// `None`: the lorebook's value or the settings apply, as for the fields below.
    pub scan_depth: Option<usize>,
    pub case_sensitive: Option<bool>,
    pub whole_words: Option<bool>,
    pub group_scoring: Option<bool>,
    /// In percent.
    pub probability: f64,
    /// Not activated by the content of other entries.
    pub exclude_recursion: bool,
    /// Its content does not activate other entries.
    pub prevent_recursion: bool,
    /// The level of recursion at which it may activate; 0: no delay.
    pub recursion_level: u32,
    /// Inclusion groups; only one entry of each group is activated.
    pub groups: Vec<String>,
    pub group_override: bool,
    pub group_weight: f64,
    /// How many messages it stays active after an activation.
    pub sticky: i64,
    /// How many messages it cannot activate after that.
    pub cooldown: i64,
    /// How many messages the conversation must have before it may activate.
    pub delay: i64,
    /// Inserted even if the budget is exceeded.
    pub ignore_budget: bool,
    /// The generation triggers for which it may activate; empty: all.
    pub triggers: Vec<String>,
    /// Restricts it to certain speakers.
    pub filter: Option<CharacterFilter>,
    /// Additional texts that it searches.
    pub match_sources: MatchSources,
}

impl LorebookEntry {
    /// Returns whether the entry is activated without a key. An entry whose keys are patterns never is.
    pub fn is_constant(&self) -> bool {
        self.constant && !self.use_regex
    }
}

/// How secondary keys are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectiveLogic {
    /// At least one is found.
    #[default]
    AndAny,
    /// At least one is missing.
    NotAll,
    /// None is found.
    NotAny,
    /// All are found.
    AndAll,
}

/// Where the text of an entry is inserted into the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InsertionPosition {
    BeforeCharacter,
    AfterCharacter,
    /// Next to the character's personality.
    Personality,
    /// Next to the scenario.
    Scenario,
    BeforeExamples,
    AfterExamples,
    /// Above the author's note.
    NoteTop,
    /// Below the author's note.
    NoteBottom,
    /// Before the last `depth` messages.
    AtDepth {
        depth: usize,
        role: PromptRole,
    },
    /// Only where a `{{outlet::name}}` macro inserts it.
    Outlet(String),
}

/// The speakers for which an entry is included or excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CharacterFilter {
    pub is_exclude: bool,
    pub names: Vec<String>,
    pub tags: Vec<String>,
}

/// The texts besides the messages in which an entry searches its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchSources {
    pub persona: bool,
    pub description: bool,
    pub personality: bool,
    pub depth_prompt: bool,
    pub scenario: bool,
    pub creator_notes: bool,
}
