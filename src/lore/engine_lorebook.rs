//! Books, and the entries in them, as the engine reads them.

use crate::ids::{LorebookEntryId, LorebookId};
use crate::llm::request::PromptRole;

/// A book that takes part in a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Lorebook {
    /// Tells it from every other: a row's id, or whose card it is embedded in. The same key twice
    /// counts once.
    pub key: String,
    /// Its row; an embedded book has none.
    pub id: Option<LorebookId>,
    /// What it is called.
    pub name: String,
    /// How it came to take part.
    pub source: LorebookSource,
    /// How many messages its entries look at, if it says so.
    pub scan_depth: Option<usize>,
    /// The most tokens that its entries take together, if it says so.
    pub token_budget: Option<i64>,
    /// Whether its entries may wake each other, if it says so.
    pub recursive: Option<bool>,
    /// In the order in which they are written.
    pub entries: Vec<LorebookEntry>,
}

/// How a book came to take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LorebookSource {
    /// Linked to this conversation.
    Conversation,
    /// Linked to the seat of the user, or to the character that they play.
    Persona,
    /// Linked to the space.
    Space,
    /// Embedded in the speaker's card, or linked to the speaker.
    Character,
}

/// One entry of a book.
#[derive(Clone, Debug, PartialEq)]
pub struct LorebookEntry {
    /// Tells it from the others of its book.
    pub key: String,
    /// Its row; that of an embedded book has none.
    pub id: Option<LorebookEntryId>,
    /// What it is called; never blank.
    pub name: String,
    /// Any of them wakes it. Macros run in them.
    pub keys: Vec<String>,
    /// What else has to be, or not to be, there.
    pub secondary_keys: Vec<String>,
    /// Whether `secondary_keys` count.
    pub selective: bool,
    /// How `secondary_keys` count.
    pub logic: SelectiveLogic,
    /// What it says, decorators included. Macros run in it.
    pub content: String,
    pub enabled: bool,
    /// Wakes without a key.
    pub constant: bool,
    /// Its keys are patterns.
    pub use_regex: bool,
    /// Where it stands among the others: higher is nearer to the end.
    pub order: i64,
    /// Who stays when not all fit: higher is kept longer.
    pub priority: Option<i64>,
    pub position: InsertionPosition,
    /// What is not set follows the settings.
    pub scan_depth: Option<usize>,
    pub case_sensitive: Option<bool>,
    pub whole_words: Option<bool>,
    pub group_scoring: Option<bool>,
    /// Percent.
    pub probability: f64,
    /// Is not woken by the words of other entries.
    pub exclude_recursion: bool,
    /// Its words wake no others.
    pub prevent_recursion: bool,
    /// Waits for this level of recursion; 0: for none.
    pub recursion_level: u32,
    /// Of each group one entry enters.
    pub groups: Vec<String>,
    pub group_override: bool,
    pub group_weight: f64,
    /// For how many messages it stays, once woken.
    pub sticky: i64,
    /// For how many messages it sleeps after that.
    pub cooldown: i64,
    /// How many messages there have to be before it may wake.
    pub delay: i64,
    /// Enters even if there is no room for more lore.
    pub ignore_budget: bool,
    /// The kinds of turns in which it takes part; none: all.
    pub triggers: Vec<String>,
    /// For whom it is.
    pub filter: Option<CharacterFilter>,
    /// Which other texts it looks at.
    pub match_sources: MatchSources,
}

/// How secondary keys count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectiveLogic {
    /// One of them is there.
    #[default]
    AndAny,
    /// One of them is missing.
    NotAll,
    /// None of them is there.
    NotAny,
    /// Each of them is there.
    AndAll,
}

/// Where the text of an entry enters the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InsertionPosition {
    BeforeCharacter,
    AfterCharacter,
    /// Beside the personality of the character.
    Personality,
    /// Beside the scenario.
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
    /// Only where `{{outlet::name}}` asks for it.
    Outlet(String),
}

/// For which speakers an entry is, or is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CharacterFilter {
    pub is_exclude: bool,
    pub names: Vec<String>,
    pub tags: Vec<String>,
}

/// Texts beside the messages in which keys of an entry are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchSources {
    pub persona: bool,
    pub description: bool,
    pub personality: bool,
    pub depth_prompt: bool,
    pub scenario: bool,
    pub creator_notes: bool,
}
