//! Defines `PromptContext`, all inputs of one prompt (members, cards, preset, lorebooks, messages),
//! and derives token limits and macro values from them. No I/O; `prompt/loading/` loads the inputs.

use std::collections::HashSet;
use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{CharacterId, ConversationId, MembershipId, MessageId, UserId};
use llm::compatibility::token_factors::TokenFactors;
use tavern::cards::card::Card;
use tavern::import_warning::ImportWarning;
use tavern::instruct::text_templates::TextTemplates;
use tavern::lorebook::engine_lorebook::Lorebook;
use tavern::lorebook::scan_request::ScanSettings;
use tavern::lorebook::timed_effects::TimedEffects;
use tavern::macros::variables::Variables;
use tavern::personas::persona_placement::PersonaPlacement;
use tavern::presets::complete_preset::{GenerationTrigger, Preset};
use tavern::presets::message_formats::ExampleFormat;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message::MessageRole;
use crate::prompt::author_note::AuthorNote;
use crate::prompt::blocks::{BlockPayload, HistoryPicture, RecordedQuote};
use crate::prompt::budget::ContextLimits;
use crate::prompt::history::history_window::HistoryStart;
use crate::prompt::history::summary_block::PromptSummaries;
use crate::prompt::memory_block::{MemoryLine, RecordedRecall};
use crate::prompt::scripts::prompt_scripts::PromptScripts;
use crate::providers::vision::PictureCost;
use crate::spaces::membership::{MembershipKind, MembershipStatus, Participation};
use crate::spaces::space::CardHandlingMode;

/// All inputs of one prompt of one speaker.
#[derive(Clone, Debug)]
pub struct PromptContext {
    pub conversation: ConversationId,
    /// The name of the space.
    pub space_name: String,
    /// The speaker: one of `members`.
    pub speaker: MembershipId,
    /// The members by position.
    pub members: Vec<PromptMember>,
    /// The user that `{{user}}` refers to.
    pub user: PromptUser,
    /// The personas of the people who speak in the history, and that of the user. Empty: only the user's.
    pub personas: Vec<PromptPersona>,
    /// Which cards are included.
    pub card_handling: CardHandlingMode,
    /// The prefix and suffix of each field when several cards are included.
    pub field_affixes: (String, String),
    /// Replaces the scenario of every card.
    pub scenario_override: Option<String>,
    /// The order of the prompt, its texts and the sampling settings.
    pub preset: Preset,
    /// The templates with which the prompt becomes one text; `None`: it is sent as messages.
    pub templates: Option<TextTemplates>,
    /// What the user should know about these inputs.
    pub warnings: Vec<ImportWarning>,
    /// The generation trigger.
    pub trigger: GenerationTrigger,
    pub note: AuthorNote,
    /// The lorebooks whose entries may activate.
    pub lore: LoreInput,
    /// The memories that were recalled for it.
    pub memories: RecalledMemories,
    /// The number of user messages.
    pub n_user_turns: i64,
    /// A reply is not cut where another member begins to speak.
    pub allows_other_speakers: bool,
    /// Whether the provider is OpenAI itself, whose API accepts a name for each message.
    pub is_openai: bool,
    /// Whether the prompt may end with the beginning of the reply.
    pub accepts_prefill: bool,
    /// The message that the model continues; `None`: it writes a new one.
    pub continuation: Option<Continuation>,
    /// A user's instruction for the continuation.
    pub continue_request: Option<String>,
    /// A user's instruction for the text that the model writes for them.
    pub impersonation_request: Option<String>,
    /// The instructions of a `/v1` request. Macros in it are not expanded.
    pub instructions: Option<String>,
    /// The messages, oldest first, without gaps up to the newest.
    pub history: Vec<HistoryLine>,
    /// How many swipes the newest message has, if an AI wrote it.
    pub n_swipes: Option<i64>,
    /// How the model counts a picture; `None`: it accepts no pictures, and gets texts instead.
    pub picture_cost: Option<PictureCost>,
    /// Where the histories of earlier prompts of this conversation begin, the newest first. `None`: the
    /// history is not stored, so that no start can be kept.
    pub history_starts: Option<Vec<HistoryStart>>,
    /// `None`: no messages are summarized.
    pub summaries: Option<PromptSummaries>,
    /// The regex scripts that may change what is sent.
    pub scripts: PromptScripts,
    /// Converts a number of tokens of our own tokenizer to tokens of the model.
    pub token_factors: TokenFactors,
    /// The share of the prompt's token limit that is used, in percent. Below 100 after a longer one was too long.
    pub budget_percent: i64,
    /// Variables of macros.
    pub variables: Variables,
    /// The name of the model.
    pub model: String,
    /// The time for `{{time}}` and `{{date}}`.
    pub now: Timestamp,
}

/// A member of the space.
#[derive(Clone, Debug)]
pub struct PromptMember {
    /// The membership.
    pub id: MembershipId,
    pub name: String,
    /// Other names under which it is addressed.
    pub aliases: Vec<String>,
    /// Human or character.
    pub kind: MembershipKind,
    /// Active or muted.
    pub participation: Participation,
    /// Whether it is still a member.
    pub status: MembershipStatus,
    /// The character of this membership.
    pub character: Option<CharacterId>,
    /// The owner of this character.
    pub owner: Option<UserId>,
    /// The character's card.
    pub card: Option<Arc<Card>>,
    /// The user's persona description.
    pub persona: Option<String>,
}

impl PromptMember {
    /// Returns whether it is a character and still a member, muted or not.
    pub fn is_character(&self) -> bool {
        self.kind == MembershipKind::Character && self.status == MembershipStatus::Active
    }

    /// Returns what `{{char}}` means in its card.
    pub fn display_name(&self) -> &str {
        let nickname = self.card.as_deref().and_then(Card::nickname);
        nickname.unwrap_or(&self.name)
    }
}

/// The user that the prompt addresses.
#[derive(Clone, Debug, Default)]
pub struct PromptUser {
    pub name: String,
    /// The description of their persona; blank if there is none.
    pub persona: String,
    /// Where it is in the prompt.
    pub placement: PersonaPlacement,
}

/// A persona in a prompt; a person without one has a section with their own description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptPersona {
    pub name: String,
    /// Not blank.
    pub text: String,
    /// Where it is in the prompt.
    pub placement: PersonaPlacement,
    /// Whether it is that of the user.
    pub is_user: bool,
    /// Its newest message in the history; 0 if it has none there.
    pub last_seq: i64,
}

/// One message of the history: not excluded from prompts, with its active swipe.
#[derive(Clone, Debug)]
pub struct HistoryLine {
    /// Its position in the timeline.
    pub seq: i64,
    /// The id of its row.
    pub message_id: MessageId,
    /// The index of the swipe.
    pub swipe: i64,
    /// The author's membership.
    pub author: MembershipId,
    /// The name of the persona under which it was posted, else the author's display name.
    pub name: String,
    /// The author's role.
    pub role: MessageRole,
    /// The text. Macros in it are not expanded.
    pub text: String,
    /// The language of the text if it is the translation of the message.
    pub translated_to: Option<String>,
    /// Who heard it, if it was whispered.
    pub whisper: Option<Whisper>,
    /// The message that it answers.
    pub quote: Option<HistoryQuote>,
    /// Its pictures in their order.
    pub pictures: Vec<HistoryPicture>,
    /// The number of tokens; 0 if unknown.
    pub tokens: i64,
    pub created_at: Timestamp,
    /// What it carries besides its text.
    pub payload: BlockPayload,
    /// It must not be dropped; if it does not fit, the prompt is refused.
    pub is_required: bool,
}

/// Who heard a whisper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whisper {
    pub audience: Audience,
    /// The names of those who heard it, without its author.
    pub to: Vec<String>,
}

/// How a prompt makes the model continue a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The newest message of the history.
    pub message: MessageId,
    /// The prompt ends with its text, as the beginning of the response, which the model extends.
    /// Otherwise the prompt ends with the continue nudge.
    pub is_prefill: bool,
}

/// The message that a message answers.
#[derive(Clone, Debug)]
pub struct HistoryQuote {
    pub recorded: RecordedQuote,
    /// The line before the text, with its line break.
    pub line: String,
    /// Who heard it, if it was whispered.
    pub audience: Option<Audience>,
}

/// What was recalled for a prompt.
#[derive(Clone, Debug, Default)]
pub struct RecalledMemories {
    /// The memories that it contains.
    pub lines: Vec<MemoryLine>,
    /// Why these are recalled, best first, and then what came close.
    pub found: Vec<RecordedRecall>,
}

/// The lorebooks of a prompt and the state of their scan.
#[derive(Clone, Debug, Default)]
pub struct LoreInput {
    /// By precedence.
    pub lorebooks: Vec<Lorebook>,
    pub settings: ScanSettings,
    /// The effects of earlier scans.
    pub timed: TimedEffects,
    /// The vectorized entries whose contents are similar to the scanned messages, by
    /// [`tavern::lorebook::compiled_entry::entry_key`].
    pub external_activations: HashSet<String>,
    /// The number of messages written by an AI.
    pub n_replies: i64,
}

impl PromptContext {
    /// Returns the token limits.
    pub fn limits(&self) -> ContextLimits {
        ContextLimits::from_preset(&self.preset)
    }

    /// Returns the number of tokens that the prompt may have.
    pub fn limit_tokens(&self) -> i64 {
        let limits = self.limits();
        (limits.context_tokens - limits.response_tokens) * self.budget_percent / 100
    }

    /// Returns the speaker, if it is one of the members.
    pub fn find_speaker(&self) -> Option<&PromptMember> {
        self.members.iter().find(|it| it.id == self.speaker)
    }

    /// Returns the names of the speaker and those of the members whose `Name:` ends its reply, both
    /// with aliases.
    pub fn reply_names(&self) -> (Vec<String>, Vec<String>) {
        let Some(speaker) = self.find_speaker() else {
            return Default::default();
        };
        let names = |it: &PromptMember| std::iter::once(it.name.clone()).chain(it.aliases.clone());
        let mut own: Vec<String> = names(speaker).collect();
        if self.is_impersonation() && !own.contains(&self.user.name) {
            own.push(self.user.name.clone());
        }
        if self.allows_other_speakers {
            return (own, Vec::new());
        }
        let others = self.members.iter().filter(|it| it.id != self.speaker);
        let mut others: Vec<String> = others.flat_map(names).collect();
        // The names of personas, each once.
        let lines = self.history.iter().filter(|it| it.author != self.speaker);
        for line in lines {
            if !line.name.is_empty() && !others.contains(&line.name) && !own.contains(&line.name) {
                others.push(line.name.clone());
            }
        }
        (own, others)
    }

    /// Returns whether each example message is sent as a message of its own.
    pub fn sends_example_messages(&self) -> bool {
        match self.preset.example_format {
            ExampleFormat::Messages => true,
            ExampleFormat::Block => false,
            ExampleFormat::Auto => self.is_openai,
        }
    }

    /// Returns whether the model writes for a user.
    pub fn is_impersonation(&self) -> bool {
        self.find_speaker()
            .is_some_and(|it| it.kind == MembershipKind::Human)
    }

    /// Returns the member that `{{char}}` refers to: the speaker. For an impersonation it is the
    /// character that spoke last, else the first one.
    pub fn character(&self) -> Option<&PromptMember> {
        if !self.is_impersonation() {
            return self.find_speaker();
        }
        let spoke = |line: &HistoryLine| self.characters().find(|it| it.id == line.author);
        let last = self.history.iter().rev().find_map(spoke);
        last.or_else(|| self.characters().next())
    }

    /// Returns the characters that are still members, by position, muted ones included.
    pub fn characters(&self) -> impl Iterator<Item = &PromptMember> {
        self.members.iter().filter(|it| it.is_character())
    }

    /// Returns whether messages of several users, or of several personas, are in the history.
    pub fn has_several_users(&self) -> bool {
        let human = |line: &&HistoryLine| line.role == MessageRole::User;
        let mut lines = self
            .history
            .iter()
            .filter(human)
            .map(|it| (it.author, &it.name));
        let first = lines.next();
        lines.any(|it| Some(it) != first)
    }

    /// Returns whether each persona has a section of its own, delimited by its name.
    pub fn has_several_personas(&self) -> bool {
        let is_person = |it: &&PromptMember| {
            it.kind == MembershipKind::Human && it.status == MembershipStatus::Active
        };
        let n_people = self.members.iter().filter(is_person).count();
        match self.personas.as_slice() {
            [] => false,
            [one] => n_people > 1 || !one.is_user,
            _ => true,
        }
    }

    /// Returns the whispers that the history contains or quotes, with their audiences.
    pub fn whispers(&self) -> impl Iterator<Item = (MessageId, &Audience)> {
        self.history.iter().flat_map(|line| {
            let own = line.whisper.as_ref();
            let own = own.map(|it| (line.message_id, &it.audience));
            let quote = line.quote.as_ref();
            let quoted =
                quote.and_then(|it| Some((it.recorded.source.message, it.audience.as_ref()?)));
            own.into_iter().chain(quoted)
        })
    }

    /// Returns whether there is more than one character.
    pub fn is_group(&self) -> bool {
        self.characters().count() > 1
    }
}
