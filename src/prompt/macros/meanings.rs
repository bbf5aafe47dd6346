//! Whose words a text is, and who is there: what the macros of people and cards stand for.

/// What the macros of people and cards stand for.
#[derive(Clone, Debug, Default)]
pub struct Meanings {
    /// Who speaks, or whose card this is.
    pub character: String,
    /// Whether that is a nickname, which only the card holds.
    pub is_nicknamed: bool,
    /// Who is spoken to.
    pub user: String,
    /// Who the user plays.
    pub persona: Field,
    pub description: Field,
    pub personality: Field,
    pub scenario: Field,
    pub example_messages: Field,
    /// The card's own main prompt and post-history instructions.
    pub system_prompt: Field,
    pub post_history: Field,
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
pub enum Field {
    /// As it is written: the macros in it are run where it is put in.
    Written(String),
    /// Its macros have been run, by whoever knew what they mean in it.
    Expanded(String),
}

impl Default for Field {
    fn default() -> Self {
        Self::Written(String::new())
    }
}

impl<T: Into<String>> From<T> for Field {
    fn from(text: T) -> Self {
        Self::Written(text.into())
    }
}

/// What a name stands for.
pub enum Meaning<'a> {
    /// A name: nothing in it is run.
    Name(&'a str),
    Field(&'a Field),
}

impl Meanings {
    /// Whether the macro of this name, in small letters, stands for text of a card.
    pub fn is_of_card(&self, name: &str) -> bool {
        match name {
            "char" | "bot" | "group" | "charifnotgroup" => self.is_nicknamed,
            "user" | "users" | "groupnotmuted" | "notchar" | "persona" => false,
            _ => true,
        }
    }

    /// What the macro of this name, in small letters, stands for.
    pub fn of(&self, name: &str) -> Option<Meaning<'_>> {
        let meaning = match name {
            "char" | "bot" => Meaning::Name(&self.character),
            "user" => Meaning::Name(&self.user),
            "users" => Meaning::Name(&self.users),
            "group" | "charifnotgroup" => Meaning::Name(&self.group),
            "groupnotmuted" => Meaning::Name(&self.group_not_muted),
            "notchar" => Meaning::Name(&self.not_character),
            "charversion" | "char_version" => Meaning::Name(&self.version),
            "persona" => Meaning::Field(&self.persona),
            "description" | "chardescription" => Meaning::Field(&self.description),
            "personality" | "charpersonality" => Meaning::Field(&self.personality),
            "scenario" | "charscenario" => Meaning::Field(&self.scenario),
            "mesexamples" | "mesexamplesraw" => Meaning::Field(&self.example_messages),
            "charprompt" => Meaning::Field(&self.system_prompt),
            "charinstruction" | "charjailbreak" => Meaning::Field(&self.post_history),
            _ => return None,
        };
        Some(meaning)
    }
}
