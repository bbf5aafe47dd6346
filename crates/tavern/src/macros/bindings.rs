//! Stores the values of the macros for names and card fields, such as `{{char}}`, and finds the
//! value of a macro by its name.

/// The values of the macros for names and card fields.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// The speaker, or the owner of the card.
    pub character: String,
    /// Whether `character` is a nickname, which only the card contains.
    pub is_nicknamed: bool,
    /// The user that is addressed.
    pub user: String,
    /// The user's persona description.
    pub persona: BoundText,
    pub description: BoundText,
    pub personality: BoundText,
    pub scenario: BoundText,
    pub example_messages: BoundText,
    /// The card's own main prompt and post-history instructions.
    pub system_prompt: BoundText,
    pub post_history: BoundText,
    /// The card's depth prompt.
    pub depth_prompt: BoundText,
    /// The creator's notes for users.
    pub creator_notes: BoundText,
    /// The first message and the alternate greetings of the card, unexpanded.
    pub greetings: Vec<String>,
    /// The version of the card.
    pub version: String,
    /// The personas of all users who speak. It counts as text of a card, because macros in a persona
    /// may insert such text.
    pub persona_list: BoundText,
    /// The main prompt that is sent, and that of the preset.
    pub main_prompt: BoundText,
    pub preset_main_prompt: BoundText,
    /// The author's note that is sent, that of the speaker and that of the space.
    pub authors_note: BoundText,
    pub speaker_note: BoundText,
    pub space_note: BoundText,
    /// All characters, separated by commas.
    pub group: String,
    /// All characters that are not muted.
    pub group_not_muted: String,
    /// All members except the speaker.
    pub not_character: String,
    /// All human members.
    pub users: String,
    /// The value of `{{original}}`: the text that the current one replaces.
    pub original: Option<String>,
}

/// The value of a macro for a text field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundText {
    /// Unexpanded: the macros in it are expanded where it is inserted.
    Source(String),
    /// Unexpanded, like a source, but written by a person who may not set variables: those that the
    /// macros in it set are discarded.
    OfPerson(String),
    /// Already expanded, with the bindings of its owner.
    Expanded(String),
}

impl Default for BoundText {
    fn default() -> Self {
        Self::Source(String::new())
    }
}

impl<T: Into<String>> From<T> for BoundText {
    fn from(text: T) -> Self {
        Self::Source(text.into())
    }
}

/// The value of a macro.
pub enum Binding<'a> {
    /// A name: macros in it are not expanded.
    Name(&'a str),
    Text(&'a BoundText),
}

impl Bindings {
    /// Returns whether the macro with this first name inserts text of a card.
    pub fn is_card_text(&self, name: &str) -> bool {
        match name {
            "char" | "group" => self.is_nicknamed,
            "user" | "users" | "groupnotmuted" | "notchar" | "persona" => false,
            "defaultsystemprompt" | "authorsnote" | "charauthorsnote" | "defaultauthorsnote" => {
                false
            }
            _ => true,
        }
    }

    /// Returns the value of the macro with this first name.
    pub fn get(&self, name: &str) -> Option<Binding<'_>> {
        let meaning = match name {
            "char" => Binding::Name(&self.character),
            "user" => Binding::Name(&self.user),
            "users" => Binding::Name(&self.users),
            "group" => Binding::Name(&self.group),
            "groupnotmuted" => Binding::Name(&self.group_not_muted),
            "notchar" => Binding::Name(&self.not_character),
            "charversion" => Binding::Name(&self.version),
            "persona" => Binding::Text(&self.persona),
            "persona_list" => Binding::Text(&self.persona_list),
            "description" => Binding::Text(&self.description),
            "personality" => Binding::Text(&self.personality),
            "scenario" => Binding::Text(&self.scenario),
            "mesexamples" => Binding::Text(&self.example_messages),
            "charprompt" => Binding::Text(&self.system_prompt),
            "charinstruction" => Binding::Text(&self.post_history),
            "chardepthprompt" => Binding::Text(&self.depth_prompt),
            "charcreatornotes" => Binding::Text(&self.creator_notes),
            "systemprompt" => Binding::Text(&self.main_prompt),
            "defaultsystemprompt" => Binding::Text(&self.preset_main_prompt),
            "authorsnote" => Binding::Text(&self.authors_note),
            "charauthorsnote" => Binding::Text(&self.speaker_note),
            "defaultauthorsnote" => Binding::Text(&self.space_note),
            _ => return None,
        };
        Some(meaning)
    }
}
