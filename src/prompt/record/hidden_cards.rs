//! Removes the texts of cards that a user may not read from the prompts that the user receives:
//! previews, stored prompts and exports.
//!
//! **Invariant:** a text of unknown origin counts as text of every card of the space.

use std::collections::HashSet;

use base::ids::CharacterId;
use tavern::macros::card_use::CardUse;

use crate::prompt::blocks::{BlockKind, PromptBlock};
use crate::prompt::lore::LoreReport;
use crate::prompt::record::sent_prompt::SentPrompt;
use crate::prompt::record::stop_strings::RecordedStops;
use crate::regex_scripts::script_report;
use crate::regex_scripts::script_report::AppliedScript;

/// The cards of a space that a user may not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenCards(HashSet<CharacterId>);

impl HiddenCards {
    /// Creates the set of hidden cards of a space.
    pub fn new(ids: HashSet<CharacterId>) -> Self {
        Self(ids)
    }

    /// Returns whether the user may not read this card.
    pub fn contains(&self, id: CharacterId) -> bool {
        self.0.contains(&id)
    }

    /// Returns whether the user may read every card.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a text of this origin is hidden; `entered`: the cards of the prompt, if
    /// known.
    pub fn hides(&self, origin: CardUse, entered: Option<&[CharacterId]>) -> bool {
        match (origin, entered) {
            (CardUse::None, _) => false,
            (CardUse::Entered, Some(ids)) => ids.iter().any(|id| self.contains(*id)),
            (CardUse::Entered, None) | (CardUse::Unknown, _) => !self.is_empty(),
        }
    }

    /// Removes hidden text from a prompt for display. A block keeps its kind, token count and
    /// label, unless its label is text of a card (an entry of an embedded lorebook).
    pub fn withhold(
        &self,
        blocks: &mut [PromptBlock],
        lore: &mut LoreReport,
        entered: Option<&[CharacterId]>,
    ) {
        for block in blocks {
            if self.hides(block.card_use, entered) {
                block.text.clear();
                block.withheld = true;
                if block.kind == BlockKind::Lore {
                    block.label = LORE_LABEL.to_owned();
                }
            }
        }
        self.withhold_lore(lore, entered);
    }

    /// Removes hidden text from a stored prompt that is exported.
    pub fn withhold_from_record(&self, record: &mut SentPrompt) {
        let entered = record.cards.take();
        if let Some(text) = &mut record.text
            && self.hides(text.card_use, entered.as_deref())
        {
            text.layout = None;
        }
        if self.hides(record.stop.card_use, entered.as_deref()) {
            record.stop = RecordedStops::default();
        }
        self.withhold_scripts(&mut record.scripts, entered.as_deref());
        let public = record.public_scripts.iter_mut();
        public.for_each(|it| self.withhold_scripts(it, entered.as_deref()));
        for piece in record.blocks_mut() {
            let is_old = entered.is_none() && piece.kind != BlockKind::History;
            let origin = if is_old {
                CardUse::Unknown
            } else {
                piece.card_use
            };
            if self.hides(origin, entered.as_deref()) {
                piece.text.clear();
                if piece.kind == BlockKind::Lore {
                    piece.label = LORE_LABEL.to_owned();
                }
            }
        }
        self.withhold_lore(&mut record.lore, entered.as_deref());
        if let Some(lore) = &mut record.public_lore {
            self.withhold_lore(lore, entered.as_deref());
        }
    }

    /// Removes the names of scripts of hidden cards.
    pub fn withhold_scripts(&self, scripts: &mut [AppliedScript], entered: Option<&[CharacterId]>) {
        if self.hides(CardUse::Entered, entered) {
            script_report::withhold_names(scripts);
        }
    }

    fn withhold_lore(&self, lore: &mut LoreReport, entered: Option<&[CharacterId]>) {
        if !self.hides(CardUse::Entered, entered) {
            return;
        }
        // An entry without an id belongs to a card's embedded lorebook.
        let of_cards = lore.fired.iter_mut().chain(&mut lore.dropped);
        for entry in of_cards.filter(|it| it.entry_id.is_none()) {
            entry.name.clear();
            entry.book.clear();
            entry.because.clear();
        }
        // Warnings name entries and keys, including those of the embedded lorebook.
        lore.warnings.clear();
        lore.warnings_coded.clear();
    }
}

const LORE_LABEL: &str = "Lore";
