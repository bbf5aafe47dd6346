//! What is in the file of a space: a zip with a manifest, documents, and the messages of each
//! conversation line by line.
//!
//! **Invariant:** nothing in it lets anybody in or costs anybody money: no keys, no passwords, no
//! invites, no addresses of providers. What was deleted is an empty place that keeps its number.

use crate::characters::character;
use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::spaces::membership;
use crate::spaces::space;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

/// The word that tells such a file from any other zip.
pub const FORMAT: &str = "troupe-space";

/// Rises when an older server could not read what a newer one writes.
pub const VERSION: u32 = 1;

/// The entries of the zip.
pub const MANIFEST: &str = "manifest.json";
pub const SPACE: &str = "space.json";
pub const SEATS: &str = "seats.json";
pub const CHARACTERS: &str = "characters.json";
pub const PRESETS: &str = "presets.json";
pub const LOREBOOKS: &str = "lorebooks.json";
pub const LOREBOOK_LINKS: &str = "lorebook_links.json";
pub const ASSETS: &str = "assets.json";
pub const CONVERSATIONS: &str = "conversations.json";

/// The entry with the messages of a conversation.
pub fn messages_of(conversation: i64) -> String {
    format!("messages/{conversation}.jsonl")
}

/// The entry with the bytes of an asset.
pub fn bytes_of(sha256: &str) -> String {
    format!("assets/{sha256}")
}

/// What this is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    pub exported_at: Timestamp,
}

/// A room with its rules.
#[derive(Debug, Serialize, Deserialize)]
pub struct Space {
    pub name: String,
    pub description: String,
    pub reply_order: space::ReplyOrder,
    pub replies_per_turn: space::RepliesPerTurn,
    pub card_handling_mode: space::CardHandlingMode,
    pub allow_self_responses: bool,
    pub auto_mode_enabled: bool,
    pub auto_mode_delay_ms: i64,
    pub auto_mode_max_turns: i64,
    pub during_generation_user_input_policy: space::InputPolicy,
    pub user_turn_debounce_ms: i64,
    pub group_regenerate_mode: space::GroupRegenerateMode,
    pub settings: Value,
    pub token_limit: i64,
    pub created_at: Timestamp,
}

/// A seat. Keys are numbers by which other documents of the file name it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Seat {
    pub key: i64,
    pub kind: membership::Kind,
    /// The account of a person, to know them again where they have one of that name.
    pub username: Option<String>,
    pub character: Option<i64>,
    pub role: membership::Role,
    pub position: i64,
    pub status: membership::Status,
    pub participation: membership::Participation,
    pub name: String,
    pub aliases: Vec<String>,
    pub persona: Option<String>,
    pub talkativeness: Option<f64>,
    pub preset: Option<i64>,
    pub settings: Value,
    pub created_at: Timestamp,
}

/// A card.
#[derive(Debug, Serialize, Deserialize)]
pub struct Character {
    pub key: i64,
    pub status: character::Status,
    pub card: Value,
    pub created_at: Timestamp,
}

/// What a turn goes by.
#[derive(Debug, Serialize, Deserialize)]
pub struct Preset {
    pub key: i64,
    pub name: String,
    pub document: Value,
}

/// A book with its entries, in order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lorebook {
    pub key: i64,
    pub name: String,
    pub document: Value,
    pub entries: Vec<Value>,
    pub created_at: Timestamp,
}

/// Where a book takes part.
#[derive(Debug, Serialize, Deserialize)]
pub struct LorebookLink {
    pub book: i64,
    pub priority: i64,
    pub place: LorePlace,
}

/// Where books take part: in the space, or in what has this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LorePlace {
    Space,
    Conversation(i64),
    Character(i64),
    Seat(i64),
}

/// What a character has beside its card. Its picture has the empty path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    pub character: i64,
    pub path: String,
    pub sha256: String,
}

/// A timeline without its messages.
#[derive(Debug, Serialize, Deserialize)]
pub struct Conversation {
    pub key: i64,
    pub kind: conversation::Kind,
    pub title: String,
    pub parent: Option<i64>,
    /// The number of the message of the parent that a branch begins at.
    pub fork_seq: Option<i64>,
    pub last_seq: i64,
    pub auto_mode_turns: i64,
    pub settings: Value,
    pub variables: Value,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
}

/// A line of a timeline.
#[derive(Debug, Serialize, Deserialize)]
pub struct Message {
    pub seq: i64,
    pub seat: i64,
    pub role: message::Role,
    pub content: String,
    pub visibility: message::Visibility,
    pub active_swipe: i64,
    /// Whether it came with the branch from its parent.
    pub is_clone: bool,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
    pub token_count: i64,
    pub metadata: Value,
    /// All texts, where there are several.
    #[serde(default)]
    pub texts: Vec<Text>,
}

/// One of several texts of a message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Text {
    pub content: String,
    pub metadata: Value,
    pub token_count: i64,
    pub edited_at: Option<Timestamp>,
}
