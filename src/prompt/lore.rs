//! Scans the lorebooks of a prompt with the engine of `tavern`, builds the blocks of the activated
//! entries, and reports why entries were activated or dropped. No I/O.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use base::ids::LorebookEntryId;
use base::prompt_role::PromptRole;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tavern::cards::card::Card;
use tavern::import_warning;
use tavern::import_warning::ImportWarning;
use tavern::lorebook::engine;
use tavern::lorebook::engine_lorebook::InsertionPosition;
use tavern::lorebook::scan_request::{MatchTexts, ScanRequest, ScanSpeaker, ScannedMessage};
use tavern::lorebook::scan_result::{ActivatedEntry, EntryRef, ScanResult};
use tavern::macros::bindings::BoundText;
use tavern::macros::card_use::CardUse;
use tavern::macros::environment::{MacroEnvironment, MacroSeed};
use tavern::macros::expansion::expand;
use tavern::macros::random;
use tavern::presets::cache_layout::CacheLayout;
use utoipa::ToSchema;

use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock};
use crate::prompt::cards::card_texts;
use crate::prompt::cards::card_texts::CardTexts;
use crate::prompt::context::PromptContext;

/// The name of a text of a lorebook in a failure of its macros.
const LORE_FIELD: &str = "World Info";
/// The depth at which `stable_first` inserts lore that may be absent from the next prompt.
const STABLE_FIRST_DEPTH: usize = 4;

/// The result of the scan for one prompt.
#[derive(Default)]
pub struct PromptLore {
    /// `None` if no lorebook takes part.
    outcome: Option<ScanResult>,
    layout: CacheLayout,
    /// The texts before and after all lore of one position.
    format: (String, String),
    /// Texts into which macros inserted text of a card.
    card_uses: HashMap<String, CardUse>,
    /// Texts into which macros may have inserted the summary.
    with_summary: HashSet<String>,
}

/// The lore of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptLore)]
pub struct LoreReport {
    /// The activated entries.
    pub fired: Vec<ReportedEntry>,
    /// The entries that were activated but exceeded the token budget.
    pub dropped: Vec<ReportedEntry>,
    /// Problems of the lorebooks and of the templates, as sentences.
    pub warnings: Vec<String>,
    /// The same problems in the same order, with codes. Empty for prompts that were stored before
    /// codes existed.
    #[serde(default)]
    pub warnings_coded: Vec<ImportWarning>,
}

/// An entry, and why it was activated or dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptLoreEntry)]
pub struct ReportedEntry {
    /// Null for an entry of a lorebook embedded in a card.
    pub entry_id: Option<LorebookEntryId>,
    pub name: String,
    /// The name of the lorebook.
    pub book: String,
    pub because: String,
}

impl LoreReport {
    /// Returns the report with further warnings.
    pub fn with_warnings(mut self, more: Vec<ImportWarning>) -> Self {
        self.warnings.extend(import_warning::sentences(&more));
        self.warnings_coded.extend(more);
        self
    }

    /// Returns what both reports contain.
    pub fn in_common_with(&self, other: &Self) -> Self {
        let both = |own: &[ReportedEntry], others: &[ReportedEntry]| {
            let common = own.iter().filter(|it| others.contains(it));
            common.cloned().collect()
        };
        let warnings = self.warnings.iter().enumerate();
        let warnings: Vec<(usize, &String)> = warnings
            .filter(|(_, it)| other.warnings.contains(it))
            .collect();
        let coded = warnings
            .iter()
            .filter_map(|(at, _)| self.warnings_coded.get(*at));
        Self {
            fired: both(&self.fired, &other.fired),
            dropped: both(&self.dropped, &other.dropped),
            warnings_coded: coded.cloned().collect(),
            warnings: warnings.into_iter().map(|(_, it)| it.clone()).collect(),
        }
    }
}

/// Scans the lorebooks. Activated outlet entries are stored in `environment`.
pub fn activate(
    context: &PromptContext,
    environment: &mut MacroEnvironment,
    count: &dyn Fn(&str) -> i64,
) -> PromptLore {
    let format = &context.preset.texts.lore_format;
    let (before, after) = format.split_once("{0}").unwrap_or_default();
    if context.lore.lorebooks.is_empty() {
        return PromptLore::default();
    }
    // The cards are expanded again later, when the outlets are known.
    let cards = environment.without_variables(|| card_texts::expand_cards(context, environment));
    environment.macro_use.take();
    let have_cards_summary = environment.take_summary_use();
    let card_uses = RefCell::new(HashMap::new());
    let with_summary = RefCell::new(HashSet::new());
    let expanded = |text: &str| {
        environment.take_card_use();
        environment.set_field(LORE_FIELD);
        let expanded = expand(text, &cards.bindings, environment);
        let mut failure = environment.failure.borrow_mut();
        if let Some(failure) = failure.as_mut().filter(|it| it.field == LORE_FIELD) {
            failure.field = format!("{LORE_FIELD}: {}", entry_name(context, text));
        }
        let card_use = environment.take_card_use();
        let text = expanded.trim();
        if !card_use.is_none() {
            card_uses.borrow_mut().insert(text.to_owned(), card_use);
        }
        if environment.take_summary_use() || have_cards_summary {
            with_summary.borrow_mut().insert(text.to_owned());
        }
        expanded
    };
    let outcome = scan_lorebooks(context, &cards, &expanded, count, environment.seed);
    let format = (expanded(before), expanded(after));
    let lore = PromptLore {
        layout: context.preset.cache_layout,
        format,
        card_uses: card_uses.into_inner(),
        with_summary: with_summary.into_inner(),
        outcome: Some(outcome),
    };
    for (fired, name) in lore
        .activated()
        .filter_map(|it| Some((it, outlet_name(&it.position)?)))
    {
        let text = environment.outlets.entry(name.to_owned()).or_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(fired.text.trim());
    }
    lore
}

/// Returns the name of the entry with this text.
fn entry_name<'a>(context: &'a PromptContext, text: &str) -> &'a str {
    let lorebooks = context.lore.lorebooks.iter();
    let mut entries = lorebooks.flat_map(|it| &it.entries);
    // The decorators before the text are not part of it.
    let found = entries.find(|it| it.content.trim_end().ends_with(text.trim_end()));
    found.map_or("a key", |it| it.name.as_str())
}

fn scan_lorebooks(
    context: &PromptContext,
    cards: &CardTexts,
    expand: &dyn Fn(&str) -> String,
    count: &dyn Fn(&str) -> i64,
    seed: MacroSeed,
) -> ScanResult {
    let lines = context.history.iter().rev();
    let spoken = lines.filter(|it| !it.text.trim().is_empty());
    let messages: Vec<ScannedMessage<'_>> = spoken
        .map(|it| ScannedMessage {
            seq: it.seq,
            name: &it.name,
            text: &it.text,
        })
        .collect();
    let speaker = context.character();
    let card = speaker.and_then(|it| it.card.as_deref());
    let mut names: Vec<&str> = speaker.iter().map(|it| it.name.as_str()).collect();
    names.extend(card.map(Card::name));
    names.extend(card.and_then(Card::nickname));
    let tags = card.map(Card::tags).unwrap_or_default();
    let depth_prompts: Vec<&str> = cards
        .depth_prompts
        .iter()
        .map(|it| it.prompt.prompt.as_str())
        .collect();
    let depth_prompt = depth_prompts.join("\n");
    let last = context.history.last().map_or(0, |it| it.seq);
    engine::activate(&ScanRequest {
        lorebooks: &context.lore.lorebooks,
        settings: context.lore.settings.clone(),
        messages: &messages,
        n_messages: last,
        n_replies: context.lore.n_replies,
        extra_texts: &[],
        texts: MatchTexts {
            persona: field_text(&cards.bindings.persona),
            description: field_text(&cards.bindings.description),
            personality: field_text(&cards.bindings.personality),
            depth_prompt: &depth_prompt,
            scenario: field_text(&cards.bindings.scenario),
            creator_notes: card.map_or("", Card::creator_notes),
        },
        speaker: ScanSpeaker {
            names: &names,
            tags: &tags,
        },
        trigger: context.trigger.into(),
        timed_effects: &context.lore.timed,
        external_activations: &context.lore.external_activations,
        expand,
        count_tokens: count,
        seed: random::lore_seed(seed),
    })
}

impl PromptLore {
    /// Returns the lore blocks of one position, highest order last.
    pub fn blocks_at(&self, place: &InsertionPosition) -> Vec<PromptBlock> {
        let at_position = self
            .activated_with_text()
            .filter(|(_, it)| self.position_of(it) == *place);
        let mut blocks: Vec<PromptBlock> = at_position
            .map(|(n, it)| self.block(n, it, PromptRole::System))
            .collect();
        let (before, after) = &self.format;
        if let Some(first) = blocks.first_mut() {
            first.text.insert_str(0, before);
            first.card_use = first.card_use.max(self.card_use_of(before));
            first.has_summary |= self.has_summary(before);
        }
        if let Some(last) = blocks.last_mut() {
            last.text.push_str(after);
            last.card_use = last.card_use.max(self.card_use_of(after));
            last.has_summary |= self.has_summary(after);
        }
        for block in blocks.iter_mut().skip(1) {
            block.joins = true;
        }
        blocks
    }

    /// Returns the blocks inserted among the messages, with their depths.
    pub fn depth_blocks(&self) -> Vec<(usize, PromptBlock)> {
        let deep = self
            .activated_with_text()
            .filter_map(|(n, it)| match self.position_of(it) {
                InsertionPosition::AtDepth { depth, role } => {
                    Some((depth, self.block(n, it, role)))
                }
                _ => None,
            });
        deep.collect()
    }

    /// Returns the depth at which an activated entry is inserted among the messages, if it is.
    pub fn depth_of(&self, entry: usize) -> Option<usize> {
        match self.position_of(self.activated().nth(entry)?) {
            InsertionPosition::AtDepth { depth, .. } => Some(depth),
            _ => None,
        }
    }

    /// Returns the report for users: activated entries, and those that exceeded the budget of the
    /// lore or of the prompt.
    pub fn report(&self, blocks: &[PromptBlock]) -> LoreReport {
        let Some(outcome) = &self.outcome else {
            return LoreReport::default();
        };
        let is_dropped = |n: usize| {
            let mut blocks = blocks.iter();
            blocks.any(|it| it.origin == BlockOrigin::Lore(n) && it.dropped)
        };
        let (dropped, fired): (Vec<_>, Vec<_>) = self
            .activated_with_text()
            .partition(|(n, _)| is_dropped(*n));
        let evicted = dropped.iter().map(|(_, it)| &it.entry);
        let dropped = outcome.dropped.iter().chain(evicted);
        LoreReport {
            fired: fired
                .iter()
                .map(|(_, it)| to_reported_entry(&it.entry, it.reason.to_string()))
                .collect(),
            dropped: dropped
                .map(|it| to_reported_entry(it, "budget".to_owned()))
                .collect(),
            warnings: import_warning::sentences(&outcome.warnings),
            warnings_coded: outcome.warnings.clone(),
        }
    }

    /// Returns the result of the scan, or `None` if no lorebook takes part.
    pub fn into_scan(self) -> Option<ScanResult> {
        self.outcome
    }

    /// Returns the effects for the next scan, or `None` if no lorebook takes part.
    pub fn timed_effects(&self) -> Option<Value> {
        let outcome = self.outcome.as_ref()?;
        serde_json::to_value(&outcome.timed_effects).ok()
    }

    fn block(&self, n: usize, fired: &ActivatedEntry, role: PromptRole) -> PromptBlock {
        let text = fired.text.trim();
        // An entry without an id belongs to a card's embedded lorebook.
        let card_use = match fired.entry.entry_id {
            None => CardUse::Entered.max(self.card_use_of(text)),
            Some(_) => self.card_use_of(text),
        };
        PromptBlock {
            priority: (fired.priority, fired.order),
            origin: BlockOrigin::Lore(n),
            card_use,
            has_summary: self.has_summary(text),
            ..PromptBlock::new(BlockKind::Lore, &fired.entry.name, role, text.to_owned())
        }
    }

    fn card_use_of(&self, text: &str) -> CardUse {
        self.card_uses.get(text.trim()).copied().unwrap_or_default()
    }

    fn has_summary(&self, text: &str) -> bool {
        self.with_summary.contains(text.trim())
    }

    /// Returns where an activated entry is inserted. With `stable_first`, an entry around the cards that may be
    /// absent from the next prompt is inserted among the messages instead, so that the prompts begin alike.
    fn position_of(&self, activated: &ActivatedEntry) -> InsertionPosition {
        use InsertionPosition::{AfterCharacter, AfterExamples, BeforeCharacter, BeforeExamples};

        let is_early = matches!(
            activated.position,
            BeforeCharacter | AfterCharacter | BeforeExamples | AfterExamples
        );
        match self.layout {
            CacheLayout::StableFirst if is_early && !activated.is_constant => {
                InsertionPosition::AtDepth {
                    depth: STABLE_FIRST_DEPTH,
                    role: PromptRole::System,
                }
            }
            _ => activated.position.clone(),
        }
    }

    fn activated(&self) -> impl Iterator<Item = &ActivatedEntry> {
        self.outcome.iter().flat_map(|it| &it.activated)
    }

    /// Returns the activated entries whose text is not blank.
    fn activated_with_text(&self) -> impl Iterator<Item = (usize, &ActivatedEntry)> {
        let all = self.activated().enumerate();
        all.filter(|(_, it)| !it.text.trim().is_empty())
    }
}

fn to_reported_entry(named: &EntryRef, because: String) -> ReportedEntry {
    ReportedEntry {
        entry_id: named.entry_id,
        name: named.name.clone(),
        book: named.lorebook.clone(),
        because,
    }
}

fn outlet_name(place: &InsertionPosition) -> Option<&str> {
    match place {
        InsertionPosition::Outlet(name) => Some(name.trim()),
        _ => None,
    }
}

fn field_text(field: &BoundText) -> &str {
    let (BoundText::Source(text) | BoundText::OfPerson(text) | BoundText::Expanded(text)) = field;
    text
}
