//! What is in the file of a space: a zip with a manifest, documents, and the messages of each
//! conversation line by line.
//!
//! What came later than the first of these files may be missing in one: the space variables, and what
//! has happened.
//!
//! **Invariant:** nothing in it lets anybody in or costs anybody money: no keys, no passwords, no
//! invites, no addresses of providers. What was deleted is an empty place that keeps its number.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::characters::character;
use crate::clock::Timestamp;
use crate::conversations::{conversation, message};
use crate::ids::RoundId;
use crate::prompt::prompt_record::SentPrompt;
use crate::rounds::{round, slot};
use crate::runs::run;
use crate::spaces::{membership, space};

/// The word that tells such a file from any other zip.
pub const FORMAT: &str = "troupe-space";

/// Rises when an older server could not read what a newer one writes.
pub const VERSION: u32 = 1;

/// The entries of the zip.
pub const MANIFEST: &str = "manifest.json";
pub const SPACE: &str = "space.json";
pub const VARIABLES: &str = "variables.json";
pub const MEMBERSHIPS: &str = "seats.json";
pub const CHARACTERS: &str = "characters.json";
pub const PRESETS: &str = "presets.json";
pub const LOREBOOKS: &str = "lorebooks.json";
pub const LOREBOOK_LINKS: &str = "lorebook_links.json";
pub const ASSETS: &str = "assets.json";
pub const CONVERSATIONS: &str = "conversations.json";

/// The entry with the messages of a conversation.
pub fn messages_entry(conversation: i64) -> String {
    format!("messages/{conversation}.jsonl")
}

/// The entry with what has happened in a conversation.
pub fn history_entry(conversation: i64) -> String {
    format!("past/{conversation}.jsonl")
}

/// The entry with the bytes of an asset.
pub fn asset_entry(sha256: &str) -> String {
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
pub struct ExportedSpace {
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
pub struct ExportedMembership {
    pub key: i64,
    pub kind: membership::MembershipKind,
    /// The account of a person, to know them again where they have one of that name.
    pub username: Option<String>,
    pub character: Option<i64>,
    pub role: membership::MembershipRole,
    pub position: i64,
    pub status: membership::MembershipStatus,
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
pub struct ExportedCharacter {
    pub key: i64,
    pub status: character::CharacterStatus,
    pub card: Value,
    pub created_at: Timestamp,
}

/// What a turn goes by.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedPreset {
    pub key: i64,
    pub name: String,
    pub document: Value,
    /// What the file that it came from said beside; older files do not tell.
    #[serde(default)]
    pub origin: Option<Value>,
}

/// A book with its entries, in order.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedLorebook {
    pub key: i64,
    pub name: String,
    pub document: Value,
    pub entries: Vec<Value>,
    /// By which conversations remember the entries, one for each; older files do not tell.
    #[serde(default)]
    pub entry_keys: Vec<i64>,
    pub created_at: Timestamp,
}

/// Where a book takes part.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedLorebookLink {
    pub book: i64,
    pub priority: i64,
    pub place: ExportedLorebookTarget,
}

/// Where books take part: in the space, or in what has this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportedLorebookTarget {
    Space,
    Conversation(i64),
    Character(i64),
    Seat(i64),
}

/// What a character has beside its card. Its picture has the empty path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedAsset {
    pub character: i64,
    pub path: String,
    pub sha256: String,
}

/// A timeline without its messages.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedConversation {
    pub key: i64,
    pub kind: conversation::ConversationKind,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedMessage {
    pub seq: i64,
    pub seat: i64,
    pub role: message::MessageRole,
    pub content: String,
    pub visibility: message::Visibility,
    pub active_swipe: i64,
    /// Whether it came with the branch from its parent.
    pub is_clone: bool,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
    /// The seat that edited it last.
    #[serde(default)]
    pub edited_by: Option<i64>,
    /// How often its shown text changed, and one; 0 in older files.
    #[serde(default)]
    pub version: i64,
    pub token_count: i64,
    pub metadata: Value,
    /// All texts, where there are several.
    #[serde(default)]
    pub texts: Vec<ExportedSwipe>,
}

/// One of several texts of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedSwipe {
    pub content: String,
    pub metadata: Value,
    pub token_count: i64,
    pub edited_at: Option<Timestamp>,
    /// The seat that edited it last.
    #[serde(default)]
    pub edited_by: Option<i64>,
}

/// What has happened in a timeline, and has ended. A round stands before its runs. Messages are named
/// by their numbers there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportedHistory {
    Round(ExportedRound),
    Run(Box<ExportedRun>),
}

/// A round that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedRound {
    pub key: RoundId,
    pub status: round::RoundStatus,
    pub kind: round::RoundKind,
    pub state: round::RoundState,
    pub cursor: i64,
    pub trigger_seq: Option<i64>,
    pub seed: i64,
    pub ended_reason: Option<String>,
    pub created_at: Timestamp,
    pub slots: Vec<ExportedSlot>,
}

/// A position of a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedSlot {
    pub position: i64,
    pub seat: i64,
    pub status: slot::SlotStatus,
    pub skip_reason: Option<String>,
    pub chosen_because: String,
    #[serde(default)]
    pub forced: bool,
}

/// A run that has ended. Which node it was on stays in the house.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedRun {
    pub round: Option<RoundId>,
    pub slot_position: Option<i64>,
    pub kind: run::RunKind,
    pub status: run::RunStatus,
    pub reason: run::RunReason,
    pub seat: i64,
    pub run_after: Option<Timestamp>,
    pub burst_started_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub cancel_requested_at: Option<Timestamp>,
    pub keep_partial: bool,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub heartbeat_at: Option<Timestamp>,
    pub attempt: i64,
    pub cutoff_seq: Option<i64>,
    pub error: Option<run::RunError>,
    pub usage: Option<run::RunUsage>,
    pub chosen_because: Option<String>,
    pub skipped_because: Option<String>,
    pub trigger_seq: Option<i64>,
    pub target_seq: Option<i64>,
    pub expected_last_seq: Option<i64>,
    #[serde(default)]
    pub canceled_because: Option<run::RunCancelReason>,
    #[serde(default)]
    pub superseded_by_seq: Option<i64>,
    pub figures: Option<run::PromptStats>,
    /// What it sent, while the house kept it.
    pub prompt: Option<ExportedPrompt>,
    /// The texts it wrote, with their clones in branches.
    pub wrote: Vec<ExportedAuthorship>,
}

/// What a run sent. Where a piece names a message, it names its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedPrompt {
    pub record: SentPrompt,
    pub created_at: Timestamp,
}

/// A text that a run wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedAuthorship {
    pub conversation: i64,
    pub seq: i64,
    /// Which of several texts; `None`: the one that is shown.
    pub position: Option<i64>,
}
