//! Defines the instruct template, which states the sequences around the messages of a text
//! completion prompt, with the names of SillyTavern's files. Unknown keys are preserved.

use base::prompt_role::PromptRole;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The sequences around the messages of a text completion prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = InstructTemplate)]
pub struct InstructTemplate {
    #[schema(max_length = 200)]
    pub name: String,
    /// Before a message of a user.
    #[schema(max_length = 2_000)]
    pub input_sequence: String,
    /// Before a message of the model.
    #[schema(max_length = 2_000)]
    pub output_sequence: String,
    /// Before a system message.
    #[schema(max_length = 2_000)]
    pub system_sequence: String,
    /// Before the first message of the chat, if a user wrote it; blank: `input_sequence`.
    #[schema(max_length = 2_000)]
    pub first_input_sequence: String,
    /// Before the newest message of a user; blank: `input_sequence`.
    #[schema(max_length = 2_000)]
    pub last_input_sequence: String,
    /// Before the first message of the chat, if the model wrote it; blank: `output_sequence`.
    #[schema(max_length = 2_000)]
    pub first_output_sequence: String,
    /// Before the reply; blank: `output_sequence`.
    #[schema(max_length = 2_000)]
    pub last_output_sequence: String,
    /// Kept for export, and the value of a macro.
    #[schema(max_length = 2_000)]
    pub last_system_sequence: String,
    #[schema(max_length = 2_000)]
    pub input_suffix: String,
    #[schema(max_length = 2_000)]
    pub output_suffix: String,
    #[schema(max_length = 2_000)]
    pub system_suffix: String,
    #[schema(max_length = 2_000)]
    pub story_string_prefix: String,
    #[schema(max_length = 2_000)]
    pub story_string_suffix: String,
    /// Ends the reply.
    #[schema(max_length = 2_000)]
    pub stop_sequence: String,
    /// Each sequence stands on a line of its own.
    pub wrap: bool,
    /// Macros in the sequences are expanded.
    #[serde(rename = "macro")]
    pub expands_macros: bool,
    pub names_behavior: InstructNames,
    /// A message of a user that is inserted if the chat does not begin with one; blank: none.
    #[schema(max_length = 20_000)]
    pub user_alignment_message: String,
    /// System messages have the sequences of messages of users.
    pub system_same_as_user: bool,
    /// Example messages have no sequences.
    pub skip_examples: bool,
    /// The context template with the same name is used if no other is chosen.
    pub bind_to_context: bool,
    /// A regular expression that matches the names of the models for which it was made; blank: any.
    #[schema(max_length = 1_000)]
    pub activation_regex: String,
    /// The input and system sequences end the reply.
    pub sequences_as_stop_strings: bool,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Which messages begin with the name of their author.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = InstructNames)]
#[serde(rename_all = "snake_case")]
pub enum InstructNames {
    None,
    /// All if there are several characters or several users, otherwise none.
    #[default]
    Force,
    Always,
}

/// Which of the variants of a sequence a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencePosition {
    First,
    Middle,
    Last,
}

impl Default for InstructTemplate {
    fn default() -> Self {
        Self {
            name: String::new(),
            input_sequence: String::new(),
            output_sequence: String::new(),
            system_sequence: String::new(),
            first_input_sequence: String::new(),
            last_input_sequence: String::new(),
            first_output_sequence: String::new(),
            last_output_sequence: String::new(),
            last_system_sequence: String::new(),
            input_suffix: String::new(),
            output_suffix: String::new(),
            system_suffix: String::new(),
            story_string_prefix: String::new(),
            story_string_suffix: String::new(),
            stop_sequence: String::new(),
            wrap: true,
            expands_macros: true,
            names_behavior: InstructNames::default(),
            user_alignment_message: String::new(),
            system_same_as_user: false,
            skip_examples: false,
            bind_to_context: false,
            activation_regex: String::new(),
            sequences_as_stop_strings: true,
            extra: Map::new(),
        }
    }
}

impl InstructTemplate {
    /// The keys of the sequences, in the order of [`sequences`](Self::sequences).
    pub const SEQUENCE_KEYS: [&str; 14] = [
        "input_sequence",
        "output_sequence",
        "system_sequence",
        "first_input_sequence",
        "last_input_sequence",
        "first_output_sequence",
        "last_output_sequence",
        "last_system_sequence",
        "input_suffix",
        "output_suffix",
        "system_suffix",
        "story_string_prefix",
        "story_string_suffix",
        "stop_sequence",
    ];

    /// Returns the sequence before a message.
    pub fn prefix(&self, role: PromptRole, position: SequencePosition) -> &str {
        let usual = match role {
            PromptRole::User => &self.input_sequence,
            PromptRole::Assistant => &self.output_sequence,
            PromptRole::System if self.system_same_as_user => &self.input_sequence,
            PromptRole::System => &self.system_sequence,
        };
        let variant = match (role, position) {
            (PromptRole::User, SequencePosition::First) => &self.first_input_sequence,
            (PromptRole::User, SequencePosition::Last) => &self.last_input_sequence,
            (PromptRole::Assistant, SequencePosition::First) => &self.first_output_sequence,
            (PromptRole::Assistant, SequencePosition::Last) => &self.last_output_sequence,
            _ => usual,
        };
        if variant.is_empty() { usual } else { variant }
    }

    /// Returns the sequence after a message.
    pub fn suffix(&self, role: PromptRole) -> &str {
        match role {
            PromptRole::User => &self.input_suffix,
            PromptRole::Assistant => &self.output_suffix,
            PromptRole::System if self.system_same_as_user => &self.input_suffix,
            PromptRole::System => &self.system_suffix,
        }
    }

    /// Returns what stands between a sequence and the text.
    pub fn separator(&self) -> &'static str {
        if self.wrap { "\n" } else { "" }
    }

    /// Returns the texts in which macros are expanded.
    pub fn macro_texts_mut(&mut self) -> [&mut String; 15] {
        [
            &mut self.input_sequence,
            &mut self.output_sequence,
            &mut self.system_sequence,
            &mut self.first_input_sequence,
            &mut self.last_input_sequence,
            &mut self.first_output_sequence,
            &mut self.last_output_sequence,
            &mut self.last_system_sequence,
            &mut self.input_suffix,
            &mut self.output_suffix,
            &mut self.system_suffix,
            &mut self.story_string_prefix,
            &mut self.story_string_suffix,
            &mut self.stop_sequence,
            &mut self.user_alignment_message,
        ]
    }

    /// Returns the sequences around messages and the story string.
    pub fn sequences(&self) -> [&str; 14] {
        [
            &self.input_sequence,
            &self.output_sequence,
            &self.system_sequence,
            &self.first_input_sequence,
            &self.last_input_sequence,
            &self.first_output_sequence,
            &self.last_output_sequence,
            &self.last_system_sequence,
            &self.input_suffix,
            &self.output_suffix,
            &self.system_suffix,
            &self.story_string_prefix,
            &self.story_string_suffix,
            &self.stop_sequence,
        ]
    }

    /// Returns the value of the macro with this first name in lower case; `None`: it is none of these.
    pub fn macro_value(&self, name: &str) -> Option<&str> {
        use PromptRole::{Assistant, User};
        use SequencePosition::{First, Last};
        Some(match name {
            "instructinput" => &self.input_sequence,
            "instructusersuffix" => &self.input_suffix,
            "instructoutput" => &self.output_sequence,
            "instructassistantsuffix" => &self.output_suffix,
            "instructsystemprefix" => &self.system_sequence,
            "instructsystemsuffix" => &self.system_suffix,
            "instructfirstassistantprefix" => self.prefix(Assistant, First),
            "instructlastassistantprefix" => self.prefix(Assistant, Last),
            "instructfirstuserprefix" => self.prefix(User, First),
            "instructlastuserprefix" => self.prefix(User, Last),
            "instructstorystringprefix" => &self.story_string_prefix,
            "instructstorystringsuffix" => &self.story_string_suffix,
            "instructstop" => &self.stop_sequence,
            "instructuserfiller" => &self.user_alignment_message,
            "instructsysteminstructionprefix" => &self.last_system_sequence,
            _ => return None,
        })
    }
}
