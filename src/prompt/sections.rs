//! The pieces of a prompt: what each says. Their order is the builder's.

use serde::Serialize;
use utoipa::ToSchema;

use crate::characters::card::Card;
use crate::llm::request::Role;
use crate::prompt::context::Context;
use crate::prompt::context::IMPERSONATION;
use crate::prompt::context::Member;
use crate::prompt::macros::Meanings;
use crate::prompt::macros::expand;
use crate::spaces::membership::Participation;
use crate::spaces::membership::Status;

/// Begins a block of example messages.
const EXAMPLE_MARK: &str = "<START>";

/// What a piece of a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PromptBlockKind)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Main,
    Persona,
    Description,
    Personality,
    Scenario,
    Example,
    NewChat,
    History,
    GroupNudge,
    PostHistory,
    Impersonation,
}

/// One piece of a prompt, as it is shown to people who ask what was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PromptBlock)]
pub struct Block {
    /// What it is.
    pub kind: Kind,
    /// What it is called in a list: `Description`, or who said a line.
    pub label: String,
    /// On whose side it stands.
    pub role: Role,
    /// Who said it, if anybody did.
    pub name: Option<String>,
    /// How long it is, its speaker's name counted in.
    pub tokens: i64,
    /// What it says.
    pub text: String,
    /// It did not fit and is not sent.
    pub dropped: bool,
}

/// Makes the pieces of one context. A piece that has nothing to say is not made.
pub struct Sections<'a> {
    context: &'a Context,
    /// The speaker's card; a human who speaks through the AI has none.
    card: Option<&'a Card>,
    meanings: Meanings,
    count: &'a dyn Fn(&str) -> i64,
}

impl<'a> Sections<'a> {
    /// The pieces of this context; `count` tells how many tokens a text has.
    pub fn new(context: &'a Context, count: &'a dyn Fn(&str) -> i64) -> Self {
        Self {
            context,
            card: context.speaking().and_then(|it| it.card.as_ref()),
            meanings: meanings(context),
            count,
        }
    }

    /// What the model is to do: the card's words for it, else the space's.
    pub fn main_prompt(&self) -> Option<Block> {
        let own = self.card.map_or("", Card::system_prompt);
        self.replaced(Kind::Main, "Main prompt", own, &self.context.main_prompt)
    }

    /// Who the user is.
    pub fn persona(&self) -> Option<Block> {
        let text = self.expanded(&self.meanings.persona);
        self.introduced(Kind::Persona, "Persona", "About {{user}}: ", text)
    }

    /// Who speaks.
    pub fn description(&self) -> Option<Block> {
        let text = self.expanded(&self.meanings.description);
        self.system(Kind::Description, "Description", text)
    }

    /// The same in a few words.
    pub fn personality(&self) -> Option<Block> {
        let text = self.expanded(&self.meanings.personality);
        self.introduced(
            Kind::Personality,
            "Personality",
            "Personality of {{char}}: ",
            text,
        )
    }

    /// Where it takes place.
    pub fn scenario(&self) -> Option<Block> {
        let text = self.expanded(&self.meanings.scenario);
        self.introduced(Kind::Scenario, "Scenario", "Scenario: ", text)
    }

    /// How the speaker talks: one piece for each block of example messages.
    pub fn examples(&self) -> Vec<Block> {
        let blocks = example_blocks(&self.meanings.example_messages);
        let texts = blocks.into_iter().map(|it| self.expanded(it));
        let blocks = texts.filter_map(|text| {
            self.introduced(
                Kind::Example,
                "Example messages",
                "[Example messages]\n",
                text,
            )
        });
        blocks.collect()
    }

    /// Where the real conversation begins, and of whom it is.
    pub fn new_chat(&self) -> Option<Block> {
        let line = match self.context.is_group() {
            true => "[Start a new group chat. Group members: {{group}}]",
            false => "[Start a new chat]",
        };
        self.system(Kind::NewChat, "New chat", self.expanded(line))
    }

    /// Whose turn it is, where there are several who might think it is theirs.
    pub fn group_nudge(&self) -> Option<Block> {
        let needs_one = self.context.is_group() && !self.context.writes_for_human();
        let nudge = needs_one.then(|| self.expanded(&self.context.group_nudge))?;
        self.system(Kind::GroupNudge, "Group nudge", nudge)
    }

    /// The last word: the card's, else the space's.
    pub fn post_history(&self) -> Option<Block> {
        let own = self.card.map_or("", Card::post_history_instructions);
        let label = "Post-history instructions";
        self.replaced(Kind::PostHistory, label, own, &self.context.post_history)
    }

    /// That these words are a human's, and what they ask of them. No macro runs in what they ask.
    pub fn impersonation(&self) -> Option<Block> {
        if !self.context.writes_for_human() {
            return None;
        }
        let mut text = self.expanded(IMPERSONATION);
        if let Some(instruction) = &self.context.instruction {
            let user = &self.meanings.user;
            text += &format!("\n[{user} asks for this: {instruction}]");
        }
        self.system(Kind::Impersonation, "Impersonation", text)
    }

    /// The texts that end the answer.
    pub fn stop(&self) -> Vec<String> {
        let stop = &self.context.sampling.stop;
        let stop = stop.iter().map(|it| expand(it, &self.meanings));
        stop.filter(|it| !it.is_empty()).collect()
    }

    fn expanded(&self, text: &str) -> String {
        expand(text, &self.meanings).trim().to_owned()
    }

    /// The card's `own` text, in which `{{original}}` is the one it replaces; else that one.
    fn replaced(&self, kind: Kind, label: &str, own: &str, original: &str) -> Option<Block> {
        if own.trim().is_empty() {
            return self.system(kind, label, self.expanded(original));
        }
        let meanings = Meanings {
            original: Some(original.to_owned()),
            ..self.meanings.clone()
        };
        self.system(kind, label, expand(own, &meanings).trim().to_owned())
    }

    /// `text` after a few words that say what it is; nothing without it.
    fn introduced(&self, kind: Kind, label: &str, words: &str, text: String) -> Option<Block> {
        if text.is_empty() {
            return None;
        }
        let words = expand(words, &self.meanings);
        self.system(kind, label, words + &text)
    }

    fn system(&self, kind: Kind, label: &str, text: String) -> Option<Block> {
        if text.is_empty() {
            return None;
        }
        Some(Block {
            kind,
            label: label.to_owned(),
            role: Role::System,
            name: None,
            tokens: (self.count)(&text),
            text,
            dropped: false,
        })
    }
}

/// What the macros mean while the speaker of this context speaks.
pub fn meanings(context: &Context) -> Meanings {
    let character = context.character();
    let called = character.map_or(context.user.name.as_str(), Member::called);
    let others = context.cast.iter();
    let others = others.filter(|it| it.status == Status::Active);
    let others = others.filter(|it| Some(it.id) != character.map(|it| it.id));
    let not_muted = context.characters();
    let not_muted = not_muted.filter(|it| it.participation == Participation::Active);
    let scenario = context
        .scenario_override
        .as_deref()
        .unwrap_or_default()
        .trim();
    Meanings {
        character: called.to_owned(),
        user: context.user.name.clone(),
        persona: context.user.persona.clone(),
        description: joined(context, Card::description),
        personality: joined(context, Card::personality),
        scenario: match scenario {
            "" => joined(context, Card::scenario),
            instead => instead.to_owned(),
        },
        example_messages: joined(context, Card::mes_example),
        group: listed(context.characters(), called),
        group_not_muted: listed(not_muted, called),
        not_character: listed(others, &context.user.name),
        original: None,
        now: Some(context.now),
    }
}

/// Whose cards enter the prompt, by position: that of `{{char}}` alone. A mode that appends others adds
/// its arm here; as `{{char}}` in a card means its owner, each then is expanded before it is joined.
fn owners(context: &Context) -> Vec<&Member> {
    context.character().into_iter().collect()
}

/// One field of all cards that enter, one below the other.
fn joined(context: &Context, field: fn(&Card) -> &str) -> String {
    let cards = owners(context)
        .into_iter()
        .filter_map(|it| it.card.as_ref());
    let texts = cards.map(|it| field(it).trim()).filter(|it| !it.is_empty());
    texts.collect::<Vec<_>>().join("\n")
}

/// Display names, separated by commas; `nobody` when there are none.
fn listed<'a>(members: impl Iterator<Item = &'a Member>, nobody: &str) -> String {
    let names: Vec<&str> = members.map(|it| it.name.as_str()).collect();
    match names.is_empty() {
        true => nobody.to_owned(),
        false => names.join(", "),
    }
}

/// Splits example messages at their marks, whatever the case of these.
fn example_blocks(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices('<') {
        let mark = text.get(at..at + EXAMPLE_MARK.len());
        if mark.is_some_and(|it| it.eq_ignore_ascii_case(EXAMPLE_MARK)) {
            blocks.push(&text[from..at]);
            from = at + EXAMPLE_MARK.len();
        }
    }
    blocks.push(&text[from..]);
    blocks.retain(|it| !it.trim().is_empty());
    blocks
}
