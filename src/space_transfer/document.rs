//! Defines the format of a space's export file: a zip with a manifest, documents, and the messages
//! and run history of each conversation as JSON lines.
//!
//! Older files may lack the entries that were added later: the space variables, the history, the
//! memories, the summaries, and the pictures of messages.
//!
//! **Invariant:** the file contains nothing that grants access or causes costs: no keys, passwords,
//! invites or provider addresses. A deleted message is an empty entry that keeps its number. A whisper that
//! the exporting person does not see is not in the file, nor are the rounds and runs that follow from it.

use base::clock::Timestamp;
use base::ids::RoundId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::characters::character;
use crate::conversations::{conversation, message};
use crate::prompt::record::sent_prompt::SentPrompt;
use crate::rounds::{round, slot};
use crate::runs::store::run;
use crate::spaces::{membership, space};

/// Identifies the format in the manifest.
pub const FORMAT: &str = "troupe-space";

/// Increased when older servers cannot read the files of newer ones.
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
pub const PICTURES: &str = "pictures.json";
pub const CONVERSATIONS: &str = "conversations.json";
pub const MEMORIES: &str = "memories.jsonl";
pub const SUMMARIES: &str = "summaries.jsonl";

/// Returns the entry with the messages of a conversation.
pub fn messages_entry(conversation: i64) -> String {
    format!("messages/{conversation}.jsonl")
}

/// Returns the entry with the history of a conversation.
pub fn history_entry(conversation: i64) -> String {
    format!("past/{conversation}.jsonl")
}

/// Returns the entry with the bytes of an asset.
pub fn asset_entry(sha256: &str) -> String {
    format!("assets/{sha256}")
}

/// Identifies the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    pub exported_at: Timestamp,
}

/// A space with its settings.
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
    /// Missing in older files.
    #[serde(default)]
    pub slow_mode_s: i64,
    #[serde(default)]
    pub humans_take_turns: bool,
    #[serde(default)]
    pub human_turn_timeout_s: i64,
    pub group_regenerate_mode: space::GroupRegenerateMode,
    /// Missing in older files. The provider of translations belongs to the server, and is not in a file.
    #[serde(default)]
    pub model_language: Option<String>,
    pub settings: Value,
    pub token_limit: i64,
    pub created_at: Timestamp,
}

/// A membership. Keys are numbers by which other documents of the file refer to it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedMembership {
    pub key: i64,
    pub kind: membership::MembershipKind,
    /// The account of a user, to match them with an account of the same name.
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

/// A character card.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedCharacter {
    pub key: i64,
    pub status: character::CharacterStatus,
    pub card: Value,
    pub created_at: Timestamp,
}

/// A preset.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedPreset {
    pub key: i64,
    pub name: String,
    pub document: Value,
    /// Unknown parts of the imported preset file; missing in older exports.
    #[serde(default)]
    pub origin: Option<Value>,
}

/// A lorebook with its entries, in order.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedLorebook {
    pub key: i64,
    pub name: String,
    pub document: Value,
    pub entries: Vec<Value>,
    /// The keys by which conversations store lore state, one per entry; missing in older files.
    #[serde(default)]
    pub entry_keys: Vec<i64>,
    pub created_at: Timestamp,
}

/// A link of a lorebook.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedLorebookLink {
    pub book: i64,
    pub priority: i64,
    pub place: ExportedLorebookTarget,
}

/// Where a lorebook is active: in the space, or in the object with this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportedLorebookTarget {
    Space,
    Conversation(i64),
    Character(i64),
    Seat(i64),
}

/// An asset of a character, except its card. Its avatar has the empty path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedAsset {
    pub character: i64,
    pub path: String,
    pub sha256: String,
}

/// A picture of a message. Its bytes are an asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedPicture {
    pub conversation: i64,
    /// The message.
    pub seq: i64,
    /// Its position among the pictures of the message.
    pub position: i64,
    pub file_name: Option<String>,
    pub alt: String,
    pub sha256: String,
    pub created_at: Timestamp,
}

/// A conversation without its messages.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedConversation {
    pub key: i64,
    pub kind: conversation::ConversationKind,
    pub title: String,
    pub parent: Option<i64>,
    /// The `seq` of the parent's message at which a branch begins.
    pub fork_seq: Option<i64>,
    pub last_seq: i64,
    pub auto_mode_turns: i64,
    pub settings: Value,
    pub variables: Value,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    /// The first message that is summarized: those before it were forgotten. 0 in older files.
    #[serde(default)]
    pub summary_from_seq: i64,
}

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedMessage {
    pub seq: i64,
    #[serde(rename = "seat")]
    pub membership: i64,
    /// The name of the persona under which it was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    pub role: message::MessageRole,
    pub content: String,
    pub visibility: message::Visibility,
    /// Whether the memory may use it; missing in older files.
    #[serde(default = "remembered_by_default")]
    pub remember: bool,
    /// Whether it is out of character; missing in older files.
    #[serde(default)]
    pub is_ooc: bool,
    /// The memberships that see it; missing: everyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<i64>>,
    pub active_swipe: i64,
    /// The membership that selected it.
    #[serde(default)]
    pub swipe_chosen_by: Option<i64>,
    /// The `seq` of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reactions: Vec<ExportedReaction>,
    /// Whether it was copied from the parent when the branch was created.
    pub is_clone: bool,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
    /// The membership that edited it last.
    #[serde(default)]
    pub edited_by: Option<i64>,
    /// The number of changes of its shown text, plus one; 0 in older files.
    #[serde(default)]
    pub version: i64,
    pub token_count: i64,
    pub metadata: Value,
    /// All swipes, if there are several.
    #[serde(default)]
    pub texts: Vec<ExportedSwipe>,
}

/// The members who reacted to a message with an emoji.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedReaction {
    pub emoji: String,
    #[serde(rename = "seats")]
    pub memberships: Vec<i64>,
}

fn remembered_by_default() -> bool {
    true
}

/// One of several swipes of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedSwipe {
    pub content: String,
    pub metadata: Value,
    pub token_count: i64,
    pub edited_at: Option<Timestamp>,
    /// The membership that edited it last.
    #[serde(default)]
    pub edited_by: Option<i64>,
}

/// An ended round or run of a conversation. A round precedes its runs. Messages are referred to by
/// their `seq`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportedHistory {
    Round(ExportedRound),
    Run(Box<ExportedRun>),
}

/// An ended round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedRound {
    pub key: RoundId,
    pub status: round::RoundStatus,
    pub kind: round::RoundKind,
    pub state: round::RoundState,
    pub cursor: i64,
    pub trigger_seq: Option<i64>,
    /// The memberships that see it; missing: everyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<i64>>,
    pub seed: i64,
    pub ended_reason: Option<String>,
    pub created_at: Timestamp,
    pub slots: Vec<ExportedSlot>,
}

/// A slot of a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedSlot {
    pub position: i64,
    /// Null: the director had not chosen.
    #[serde(rename = "seat")]
    pub membership: Option<i64>,
    pub status: slot::SlotStatus,
    /// The message with which the member spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_seq: Option<i64>,
    pub skip_reason: Option<String>,
    pub chosen_because: String,
    #[serde(default)]
    pub forced: bool,
}

/// An ended run. The node that executed it is not exported.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedRun {
    pub round: Option<RoundId>,
    pub slot_position: Option<i64>,
    pub kind: run::RunKind,
    pub status: run::RunStatus,
    pub reason: run::RunReason,
    /// Null: the director had not chosen.
    #[serde(rename = "seat")]
    pub membership: Option<i64>,
    /// The memberships that see it; missing: everyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<i64>>,
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
    /// Whether a regenerate kept the messages after its target.
    #[serde(default)]
    pub in_place: bool,
    pub trigger_seq: Option<i64>,
    pub target_seq: Option<i64>,
    pub expected_last_seq: Option<i64>,
    #[serde(default)]
    pub canceled_because: Option<run::RunCancelReason>,
    #[serde(default)]
    pub superseded_by_seq: Option<i64>,
    pub figures: Option<run::PromptStats>,
    /// The stored prompt, if it still exists.
    pub prompt: Option<ExportedPrompt>,
    /// The texts it wrote, with their copies in branches.
    pub wrote: Vec<ExportedAuthorship>,
}

/// The prompt of a run. References to messages are their `seq`.
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
    /// The swipe; `None`: the shown text.
    pub position: Option<i64>,
}
