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
    /// The version of the card.
    pub version: String,
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
    /// Returns whether the macro with this lower-case name inserts text of a card.
    pub fn is_card_text(&self, name: &str) -> bool {
        match name {
            "char" | "bot" | "group" | "charifnotgroup" => self.is_nicknamed,
            "user" | "users" | "groupnotmuted" | "notchar" | "persona" => false,
            _ => true,
        }
    }

    /// Returns the value of the macro with this lower-case name.
    pub fn get(&self, name: &str) -> Option<Binding<'_>> {
        let meaning = match name {
            "char" | "bot" => Binding::Name(&self.character),
            "user" => Binding::Name(&self.user),
            "users" => Binding::Name(&self.users),
            "group" | "charifnotgroup" => Binding::Name(&self.group),
            "groupnotmuted" => Binding::Name(&self.group_not_muted),
            "notchar" => Binding::Name(&self.not_character),
            "charversion" | "char_version" => Binding::Name(&self.version),
            "persona" => Binding::Text(&self.persona),
            "description" | "chardescription" => Binding::Text(&self.description),
            "personality" | "charpersonality" => Binding::Text(&self.personality),
            "scenario" | "charscenario" => Binding::Text(&self.scenario),
            "mesexamples" | "mesexamplesraw" => Binding::Text(&self.example_messages),
            "charprompt" => Binding::Text(&self.system_prompt),
            "charinstruction" | "charjailbreak" => Binding::Text(&self.post_history),
            _ => return None,
        };
        Some(meaning)
    }
}
