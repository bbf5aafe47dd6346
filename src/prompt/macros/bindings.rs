//! Whose words a text is, and who is there: what the macros of people and cards stand for.

/// What the macros of people and cards stand for.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// Who speaks, or whose card this is.
    pub character: String,
    /// Whether that is a nickname, which only the card holds.
    pub is_nicknamed: bool,
    /// Who is spoken to.
    pub user: String,
    /// Who the user plays.
    pub persona: BoundText,
    pub description: BoundText,
    pub personality: BoundText,
    pub scenario: BoundText,
    pub example_messages: BoundText,
    /// The card's own main prompt and post-history instructions.
    pub system_prompt: BoundText,
    pub post_history: BoundText,
    /// What the card calls its version.
    pub version: String,
    /// All characters, or the only one.
    pub group: String,
    /// All characters that are not muted.
    pub group_not_muted: String,
    /// Everybody but the speaker.
    pub not_character: String,
    /// Every person with a seat.
    pub users: String,
    /// The text that the present one replaces, if it replaces any.
    pub original: Option<String>,
}

/// A text that a macro stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundText {
    /// As it is written: the macros in it are run where it is put in.
    Source(String),
    /// Its macros have been run, by whoever knew what they mean in it.
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

/// What a name stands for.
pub enum Binding<'a> {
    /// A name: nothing in it is run.
    Name(&'a str),
    Text(&'a BoundText),
}

impl Bindings {
    /// Whether the macro of this name, in small letters, stands for text of a card.
    pub fn is_card_text(&self, name: &str) -> bool {
        match name {
            "char" | "bot" | "group" | "charifnotgroup" => self.is_nicknamed,
            "user" | "users" | "groupnotmuted" | "notchar" | "persona" => false,
            _ => true,
        }
    }

    /// What the macro of this name, in small letters, stands for.
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
