//! Builds the blocks of a prompt, except those of messages and what `chat_sections.rs` adds to them, from
//! the preset's texts, the cards, the personas, the lorebooks and the author's note; `builder.rs` orders
//! them.

use base::prompt_role::PromptRole;
use tavern::cards::card::Card;
use tavern::lorebook::engine_lorebook::InsertionPosition;
use tavern::macros::bindings::{Bindings, BoundText};
use tavern::macros::card_use::CardUse;
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::expand;
use tavern::personas::persona_placement::{PersonaPlacement, PersonaPosition};
use tavern::presets::complete_preset::{ExampleMessagesMode, PresetEntry, PromptSlot};

use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock};
use crate::prompt::cards::card_texts::CardTexts;
use crate::prompt::cards::example_messages::ExampleMessage;
use crate::prompt::cards::{card_texts, example_messages};
use crate::prompt::context::PromptContext;
use crate::prompt::lore::PromptLore;
use crate::prompt::memory_block;
use crate::prompt::scripts::script_pass::ScriptPass;

/// The names of example messages in OpenAI's API.
const EXAMPLE_USER: &str = "example_user";
const EXAMPLE_ASSISTANT: &str = "example_assistant";
/// The title of a persona that is not where the preset has it.
const PERSONA_LABEL: &str = "Persona";

/// Builds the blocks of one context. Blank blocks are omitted.
pub struct Sections<'a> {
    pub context: &'a PromptContext,
    pub cards: &'a CardTexts,
    pub lore: &'a PromptLore,
    pub environment: &'a MacroEnvironment,
    pub scripts: &'a ScriptPass<'a>,
    /// The card use of text from the included cards.
    pub card_text: CardUse,
    /// Whether the summary was inserted into a text of a card, the persona or the scenario.
    pub have_cards_summary: bool,
}

impl Sections<'_> {
    /// Returns the blocks of a preset entry, except those of the history.
    pub fn blocks_for(&self, entry: &PresetEntry) -> Vec<PromptBlock> {
        let texts = &self.context.preset.texts;
        let meanings = &self.cards.bindings;
        self.environment.set_field(&entry.label);
        match entry.slot {
            None => self.entry_blocks(BlockKind::Entry, entry, self.expand_text(&entry.text)),
            Some(PromptSlot::Main) => {
                self.overridable_blocks(BlockKind::Main, entry, Card::system_prompt)
            }
            Some(PromptSlot::PostHistory) => self.overridable_blocks(
                BlockKind::PostHistory,
                entry,
                Card::post_history_instructions,
            ),
            Some(PromptSlot::LoreBefore) => {
                self.lore.blocks_at(&InsertionPosition::BeforeCharacter)
            }
            Some(PromptSlot::LoreAfter) => self.lore.blocks_at(&InsertionPosition::AfterCharacter),
            Some(PromptSlot::Persona) => self.personas(entry),
            Some(PromptSlot::Description) => {
                let text = field_text(&meanings.description).to_owned();
                self.environment.record_card_use(CardUse::Entered);
                self.entry_blocks(BlockKind::Description, entry, text)
            }
            Some(PromptSlot::Personality) => self.personality(entry),
            Some(PromptSlot::Scenario) => {
                let text = self.format_field(&meanings.scenario, &texts.scenario_format);
                let scenario = self.entry_blocks(BlockKind::Scenario, entry, text);
                self.with_lore(scenario, &InsertionPosition::Scenario)
            }
            Some(PromptSlot::Examples) => self.examples(entry),
            Some(PromptSlot::History) => Vec::new(),
        }
    }

    /// Returns the personas that are where the preset has the persona.
    fn personas(&self, entry: &PresetEntry) -> Vec<PromptBlock> {
        let placed = self.personas_at(PersonaPosition::InPrompt, &entry.label);
        let blocks = placed.into_iter().enumerate();
        let blocks = blocks.map(|(n, (_, block))| PromptBlock {
            joins: n > 0,
            role: entry.role,
            ..block
        });
        blocks.collect()
    }

    /// Returns the personas among the messages.
    pub fn deep_personas(&self) -> Vec<(PersonaPlacement, PromptBlock)> {
        self.environment.set_field(PERSONA_LABEL);
        self.personas_at(PersonaPosition::AtDepth, PERSONA_LABEL)
    }

    /// Returns the personas with this position: that of the user; in a space with several people, or if
    /// one person speaks under several personas, a section for each persona, delimited by its name.
    fn personas_at(
        &self,
        position: PersonaPosition,
        label: &str,
    ) -> Vec<(PersonaPlacement, PromptBlock)> {
        if !self.context.has_several_personas() {
            let user = &self.context.user;
            if user.placement.position != position {
                return Vec::new();
            }
            let format = &self.context.preset.texts.persona_format;
            let text = self.format_field(&self.cards.bindings.persona, format);
            let made = self.system_block(BlockKind::Persona, label, text);
            let own = made.map(|it| PromptBlock {
                is_required: true,
                ..it
            });
            return own.map(|it| (user.placement, it)).into_iter().collect();
        }
        let sections = self.cards.personas.iter();
        let sections =
            sections.filter(|it| it.placement.position == position && !it.text.is_empty());
        let placed = sections.map(|it| {
            let own = PromptBlock {
                is_required: it.is_user,
                priority: (it.last_seq, 0),
                card_use: self.origin(it.card_use),
                has_summary: it.has_summary || self.have_cards_summary,
                ..PromptBlock::new(
                    BlockKind::Persona,
                    label,
                    PromptRole::System,
                    it.text.clone(),
                )
            };
            (it.placement, own)
        });
        placed.collect()
    }

    /// Formats each personality with the name of its owner.
    fn personality(&self, entry: &PresetEntry) -> Vec<PromptBlock> {
        let format = &self.context.preset.texts.personality_format;
        let each = self.cards.personalities.iter().map(|(own, text)| {
            let own = Bindings {
                personality: BoundText::Expanded(text.clone()),
                ..own.clone()
            };
            expand(format, &own, self.environment)
        });
        let text = each.collect::<Vec<_>>().join("\n");
        let personality = self.entry_blocks(BlockKind::Personality, entry, text);
        self.with_lore(personality, &InsertionPosition::Personality)
    }

    /// Returns the example messages, and the lore before and after them.
    fn examples(&self, entry: &PresetEntry) -> Vec<PromptBlock> {
        let mut blocks = self.lore.blocks_at(&InsertionPosition::BeforeExamples);
        if self.context.preset.examples != ExampleMessagesMode::Disabled {
            let heading = self.expand_text(&self.context.preset.texts.new_example_chat_prompt);
            let examples =
                example_messages::split(field_text(&self.cards.bindings.example_messages));
            for (n, text) in examples.into_iter().enumerate() {
                let own = self.example_dialogue(entry, &heading, text).into_iter();
                blocks.extend(own.map(|block| PromptBlock {
                    example_dialogue: Some(n),
                    ..block
                }));
            }
        }
        blocks.extend(self.lore.blocks_at(&InsertionPosition::AfterExamples));
        blocks
    }

    /// Returns the blocks of an example dialogue: one for each message, or one for the whole text.
    fn example_dialogue(&self, entry: &PresetEntry, heading: &str, text: &str) -> Vec<PromptBlock> {
        let block = |text: String| {
            self.environment.record_card_use(CardUse::Entered);
            self.entry_blocks(BlockKind::Example, entry, text)
        };
        let messages = match self.context.sends_example_messages() {
            true => self.example_messages(text),
            false => Vec::new(),
        };
        if messages.is_empty() {
            let text = format!("{heading}\n{}", text.trim());
            return block(text.trim().to_owned());
        }
        let mut blocks = block(heading.to_owned());
        for message in messages {
            let name = match message.is_of_user {
                true => EXAMPLE_USER,
                false => EXAMPLE_ASSISTANT,
            };
            // Other APIs do not accept these names; for them, the text keeps the name of the speaker.
            let name = self.context.is_openai.then(|| name.to_owned());
            blocks.extend(block(message.text).into_iter().map(|it| PromptBlock {
                name: name.clone(),
                ..it
            }));
        }
        blocks
    }

    fn example_messages(&self, text: &str) -> Vec<ExampleMessage> {
        let owners = card_texts::included_members(self.context).into_iter();
        let names: Vec<&str> = owners
            .flat_map(|it| [it.name.as_str(), it.display_name()])
            .collect();
        let user = self.cards.bindings.user.as_str();
        let keeps_names = self.context.is_group() || !self.context.is_openai;
        example_messages::read(text, (user, &names), keeps_names)
    }

    /// Returns the instructions of a `/v1` request, unchanged.
    pub fn instructions(&self) -> Option<PromptBlock> {
        let text = self.context.instructions.as_deref().unwrap_or_default();
        self.system_block(BlockKind::Entry, "Instructions", text.trim().to_owned())
    }

    /// Returns the author's note with the personas and the lore around it. The lore is inserted even if
    /// the note is not due, and the personas whenever it is, even if it has no text.
    pub fn note(&self) -> Vec<PromptBlock> {
        let note = &self.context.note;
        let mut blocks = self.lore.blocks_at(&InsertionPosition::NoteTop);
        if note.is_due(self.context.n_user_turns) {
            let world = self.environment;
            let personas = |position| {
                world.set_field(PERSONA_LABEL);
                let placed = self.personas_at(position, PERSONA_LABEL);
                placed.into_iter().map(|it| it.1)
            };
            blocks.extend(personas(PersonaPosition::NoteTop));
            world.set_field("Author's note");
            let text = world.without_variables(|| self.expand_text(&note.text));
            blocks.extend(self.system_block(BlockKind::AuthorNote, "Author's note", text));
            blocks.extend(personas(PersonaPosition::NoteBottom));
        }
        blocks.extend(self.lore.blocks_at(&InsertionPosition::NoteBottom));
        for (n, block) in blocks.iter_mut().enumerate() {
            block.role = note.role;
            block.joins = n > 0;
        }
        blocks
    }

    /// Returns the block of the recalled memories. Macros in it are not expanded.
    pub fn memories(&self) -> Option<PromptBlock> {
        let lines = &self.context.memories.lines;
        let text = memory_block::render(lines, self.context.now)?;
        let ids = lines.iter().map(|it| it.id).collect();
        Some(PromptBlock {
            origin: BlockOrigin::Memories(ids),
            ..PromptBlock::new(BlockKind::Memory, "Memories", PromptRole::System, text)
        })
    }

    /// Returns the texts that end the reply.
    pub fn stop_sequences(&self) -> Vec<String> {
        self.environment.set_field("Stop strings");
        let stop = self.context.preset.stop.iter();
        let stop = stop.map(|it| expand(it, &self.cards.bindings, self.environment));
        stop.filter(|it| !it.is_empty()).collect()
    }

    /// Expands the macros of a text of the preset.
    pub fn expand_text(&self, text: &str) -> String {
        let text = expand(text, &self.cards.bindings, self.environment);
        text.trim().to_owned()
    }

    /// Returns the card's own text, with the entry's text as `{{original}}`, or else the entry's
    /// text.
    fn overridable_blocks(
        &self,
        kind: BlockKind,
        entry: &PresetEntry,
        own: fn(&Card) -> &str,
    ) -> Vec<PromptBlock> {
        let card = self
            .context
            .find_speaker()
            .and_then(|it| it.card.as_deref());
        let own = card.map_or("", own);
        let text = match own.trim().is_empty() || entry.forbid_overrides {
            true => self.expand_text(&entry.text),
            false => {
                let meanings = Bindings {
                    original: Some(entry.text.clone()),
                    ..self.cards.bindings.clone()
                };
                self.environment.record_card_use(CardUse::Entered);
                expand(own, &meanings, self.environment).trim().to_owned()
            }
        };
        self.entry_blocks(kind, entry, text)
    }

    /// Formats a field with the preset's template; empty if the field is empty.
    fn format_field(&self, field: &BoundText, format: &str) -> String {
        match field_text(field).is_empty() {
            true => String::new(),
            false => self.expand_text(format),
        }
    }

    /// Returns a block of the card, followed by the lore of that position.
    fn with_lore(
        &self,
        mut blocks: Vec<PromptBlock>,
        place: &InsertionPosition,
    ) -> Vec<PromptBlock> {
        blocks.extend(self.lore.blocks_at(place));
        blocks
    }

    fn entry_blocks(&self, kind: BlockKind, entry: &PresetEntry, text: String) -> Vec<PromptBlock> {
        let (card_use, has_summary) = (self.card_use(), self.has_summary());
        if text.is_empty() {
            return Vec::new();
        }
        vec![PromptBlock {
            card_use,
            has_summary,
            ..PromptBlock::new(kind, &entry.label, entry.role, text)
        }]
    }

    /// Returns a block with the text that was expanded last; `None` if it is empty.
    pub fn system_block(&self, kind: BlockKind, label: &str, text: String) -> Option<PromptBlock> {
        let (card_use, has_summary) = (self.card_use(), self.has_summary());
        (!text.is_empty()).then(|| PromptBlock {
            card_use,
            has_summary,
            ..PromptBlock::new(kind, label, PromptRole::System, text)
        })
    }

    /// Returns whether the text expanded last comes from a card.
    fn card_use(&self) -> CardUse {
        self.origin(self.environment.take_card_use())
    }

    /// Returns the card use of a text, for which macros have recorded `card_use`.
    pub fn origin(&self, card_use: CardUse) -> CardUse {
        match card_use {
            CardUse::Entered => self.card_text,
            other => other,
        }
    }

    /// Returns whether the text expanded last may contain the summary.
    fn has_summary(&self) -> bool {
        self.environment.take_summary_use() || self.have_cards_summary
    }
}

/// Returns the text of a field after the cards were expanded.
fn field_text(field: &BoundText) -> &str {
    let (BoundText::Source(text) | BoundText::OfPerson(text) | BoundText::Expanded(text)) = field;
    text.trim()
}
