//! Finds the volatile entries of a preset, which change the beginning of the prompt with every turn, so that a
//! provider with a prompt cache processes everything after them again. The prompt inspector warns about them.
//! No I/O.

use tavern::cards::card::Card;
use tavern::import_warning::ImportWarning;
use tavern::macros::syntax::volatile_macros;
use tavern::presets::complete_preset::{PresetEntry, PromptPosition, PromptSlot};

use crate::prompt::context::PromptContext;

/// Returns a warning for each entry that precedes the history and contains a volatile macro; `entries` are
/// those that are sent, in their order.
pub fn warnings<'a>(
    context: &PromptContext,
    entries: impl Iterator<Item = &'a PresetEntry>,
) -> Vec<ImportWarning> {
    let before_history = entries.take_while(|it| it.slot != Some(PromptSlot::History));
    let at_beginning = before_history.filter(|it| it.place == PromptPosition::Relative);
    let with_own_text = at_beginning.filter(|it| sends_own_text(context, it));
    with_own_text.filter_map(warning).collect()
}

fn warning(entry: &PresetEntry) -> Option<ImportWarning> {
    let found = volatile_macros::find(&entry.text);
    if found.is_empty() {
        return None;
    }
    let names: Vec<String> = found.iter().map(|it| format!("{{{{{it}}}}}")).collect();
    let name = match entry.label.as_str() {
        "" => entry.id.as_str(),
        label => label,
    };
    let names = names.join(", ");
    let sentence = format!(
        "“{name}” changes with every turn, because it contains {names}. \
        A prompt cache cannot keep what follows it."
    );
    let warning = ImportWarning::new("entry_changes_every_turn", sentence);
    Some(warning.with("name", name).with("names", names))
}

/// Returns whether the text of an entry is sent, and not that of a card in its place.
fn sends_own_text(context: &PromptContext, entry: &PresetEntry) -> bool {
    let of_card = match entry.slot {
        None => return true,
        Some(PromptSlot::Main) => Card::system_prompt,
        Some(PromptSlot::PostHistory) => Card::post_history_instructions,
        Some(_) => return false,
    };
    let speaker = context.find_speaker();
    let own = speaker
        .and_then(|it| it.card.as_deref())
        .map_or("", of_card);
    let inserts_original = own.to_ascii_lowercase().contains("{{original}}");
    entry.forbid_overrides || own.trim().is_empty() || inserts_original
}
