//! The pieces of a prompt: what each says. Their order is the preset's.

use crate::characters::card::Card;
use crate::llm::request::PromptRole;
use crate::lore::engine_lorebook::InsertionPosition;
use crate::presets::document::ExampleMessagesMode;
use crate::presets::document::PresetEntry;
use crate::presets::document::PromptSlot;
use crate::prompt::blocks::Block;
use crate::prompt::blocks::Kind;
use crate::prompt::card_use::CardUse;
use crate::prompt::cards::Cards;
use crate::prompt::cards::EXAMPLE_MARK;
use crate::prompt::context::Context;
use crate::prompt::lore::Lore;
use crate::prompt::macros::bindings::Bindings;
use crate::prompt::macros::bindings::BoundText;
use crate::prompt::macros::environment::MacroEnvironment;
use crate::prompt::macros::expansion::expand;

/// Makes the pieces of one context. A piece that has nothing to say is not made.
pub struct Sections<'a> {
    pub context: &'a Context,
    pub cards: &'a Cards,
    pub lore: &'a Lore,
    pub world: &'a MacroEnvironment,
    /// What text of the cards that entered counts as.
    pub card_text: CardUse,
}

impl Sections<'_> {
    /// What an entry of the preset stands for, without what was said.
    pub fn of(&self, entry: &PresetEntry) -> Vec<Block> {
        let texts = &self.context.preset.texts;
        let meanings = &self.cards.meanings;
        match entry.slot {
            None => self.text(Kind::Entry, entry, self.expanded(&entry.text)),
            Some(PromptSlot::Main) => self.replaced(Kind::Main, entry, Card::system_prompt),
            Some(PromptSlot::PostHistory) => {
                self.replaced(Kind::PostHistory, entry, Card::post_history_instructions)
            }
            Some(PromptSlot::LoreBefore) => self.lore.at(&InsertionPosition::BeforeCharacter),
            Some(PromptSlot::LoreAfter) => self.lore.at(&InsertionPosition::AfterCharacter),
            Some(PromptSlot::Persona) => {
                let text = self.around(&meanings.persona, &texts.persona_format);
                self.text(Kind::Persona, entry, text)
            }
            Some(PromptSlot::Description) => {
                let text = said(&meanings.description).to_owned();
                self.world.record_card_use(CardUse::Entered);
                self.text(Kind::Description, entry, text)
            }
            Some(PromptSlot::Personality) => self.personality(entry),
            Some(PromptSlot::Scenario) => {
                let text = self.around(&meanings.scenario, &texts.scenario_format);
                let scenario = self.text(Kind::Scenario, entry, text);
                self.beside(scenario, &InsertionPosition::Scenario)
            }
            Some(PromptSlot::Examples) => self.examples(entry),
            Some(PromptSlot::History) => Vec::new(),
        }
    }

    /// Each personality is introduced as that of its owner.
    fn personality(&self, entry: &PresetEntry) -> Vec<Block> {
        let format = &self.context.preset.texts.personality_format;
        let each = self.cards.personalities.iter().map(|(own, text)| {
            let own = Bindings {
                personality: BoundText::Expanded(text.clone()),
                ..own.clone()
            };
            expand(format, &own, self.world)
        });
        let text = each.collect::<Vec<_>>().join("\n");
        let personality = self.text(Kind::Personality, entry, text);
        self.beside(personality, &InsertionPosition::Personality)
    }

    /// How the speaker talks: one piece for each block of example messages.
    fn examples(&self, entry: &PresetEntry) -> Vec<Block> {
        let mut blocks = self.lore.at(&InsertionPosition::BeforeExamples);
        if self.context.preset.examples != ExampleMessagesMode::Disabled {
            let words = self.expanded(&self.context.preset.texts.new_example_chat_prompt);
            for block in example_blocks(said(&self.cards.meanings.example_messages)) {
                let text = format!("{words}\n{}", block.trim());
                self.world.record_card_use(CardUse::Entered);
                blocks.extend(self.text(Kind::Example, entry, text.trim().to_owned()));
            }
        }
        blocks.extend(self.lore.at(&InsertionPosition::AfterExamples));
        blocks
    }

    /// Where the real conversation begins, and of whom it is.
    pub fn new_chat(&self) -> Option<Block> {
        let texts = &self.context.preset.texts;
        let line = match self.context.is_group() {
            true => &texts.new_group_chat_prompt,
            false => &texts.new_chat_prompt,
        };
        let line = self.expanded(line);
        self.system(Kind::NewChat, "New chat", line)
    }

    /// Whose turn it is, where there are several who might think it is theirs.
    pub fn group_nudge(&self) -> Option<Block> {
        let needs_one = self.context.is_group() && !self.context.writes_for_human();
        let nudge = &self.context.preset.texts.group_nudge_prompt;
        let nudge = needs_one.then(|| self.expanded(nudge))?;
        self.system(Kind::GroupNudge, "Group nudge", nudge)
    }

    /// That these words are a human's, and what they ask of them. No macro runs in what they ask.
    pub fn impersonation(&self) -> Option<Block> {
        if !self.context.writes_for_human() {
            return None;
        }
        let mut text = self.expanded(&self.context.preset.texts.impersonation_prompt);
        if let Some(instruction) = &self.context.instruction {
            let user = &self.cards.meanings.user;
            text += &format!("\n[{user} asks for this: {instruction}]");
        }
        self.system(Kind::Impersonation, "Impersonation", text.trim().to_owned())
    }

    /// What a program says of the turn, word for word.
    pub fn directions(&self) -> Option<Block> {
        let text = self.context.directions.as_deref().unwrap_or_default();
        self.system(Kind::Entry, "Instructions", text.trim().to_owned())
    }

    /// The author's note with the lore around it, which stands there even without one.
    pub fn note(&self) -> Vec<Block> {
        let note = &self.context.note;
        let mut blocks = self.lore.at(&InsertionPosition::NoteTop);
        if note.is_due(self.context.n_user_turns) {
            let world = self.world;
            let text = world.without_variables(|| self.expanded(&note.text));
            blocks.extend(self.system(Kind::AuthorNote, "Author's note", text));
        }
        blocks.extend(self.lore.at(&InsertionPosition::NoteBottom));
        for (n, block) in blocks.iter_mut().enumerate() {
            block.role = note.role;
            block.joins = n > 0;
        }
        blocks
    }

    /// The texts that end the answer.
    pub fn stop(&self) -> Vec<String> {
        let stop = self.context.preset.stop.iter();
        let stop = stop.map(|it| expand(it, &self.cards.meanings, self.world));
        stop.filter(|it| !it.is_empty()).collect()
    }

    fn expanded(&self, text: &str) -> String {
        let text = expand(text, &self.cards.meanings, self.world);
        text.trim().to_owned()
    }

    /// The card's own text, in which `{{original}}` is the entry's; else that one.
    fn replaced(&self, kind: Kind, entry: &PresetEntry, own: fn(&Card) -> &str) -> Vec<Block> {
        let card = self.context.speaking().and_then(|it| it.card.as_ref());
        let own = card.map_or("", own);
        let text = match own.trim().is_empty() || entry.forbid_overrides {
            true => self.expanded(&entry.text),
            false => {
                let meanings = Bindings {
                    original: Some(entry.text.clone()),
                    ..self.cards.meanings.clone()
                };
                self.world.record_card_use(CardUse::Entered);
                expand(own, &meanings, self.world).trim().to_owned()
            }
        };
        self.text(kind, entry, text)
    }

    /// A field in the words that say what it is; nothing without it.
    fn around(&self, field: &BoundText, format: &str) -> String {
        match said(field).is_empty() {
            true => String::new(),
            false => self.expanded(format),
        }
    }

    /// A piece of the card, and below it the lore that asks to stand there.
    fn beside(&self, mut blocks: Vec<Block>, place: &InsertionPosition) -> Vec<Block> {
        blocks.extend(self.lore.at(place));
        blocks
    }

    fn text(&self, kind: Kind, entry: &PresetEntry, text: String) -> Vec<Block> {
        let card_use = self.card_use();
        if text.is_empty() {
            return Vec::new();
        }
        vec![Block {
            card_use,
            ..Block::new(kind, &entry.label, entry.role, text)
        }]
    }

    fn system(&self, kind: Kind, label: &str, text: String) -> Option<Block> {
        let card_use = self.card_use();
        (!text.is_empty()).then(|| Block {
            card_use,
            ..Block::new(kind, label, PromptRole::System, text)
        })
    }

    /// Whether the text that was expanded last comes from a card.
    fn card_use(&self) -> CardUse {
        match self.world.take_card_use() {
            CardUse::Entered => self.card_text,
            other => other,
        }
    }
}

/// What a field says; the cards of a prompt have been read.
fn said(field: &BoundText) -> &str {
    let (BoundText::Source(text) | BoundText::Expanded(text)) = field;
    text.trim()
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
