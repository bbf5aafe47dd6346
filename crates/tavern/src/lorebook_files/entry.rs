//! Parses a stored entry (a `character_book` entry of V2 or V3, with SillyTavern's fields in
//! `extensions`) into the form that the lorebook engine uses.

use base::ids::LorebookEntryId;
use base::prompt_role::PromptRole;
use serde_json::Value;

use crate::lorebook::engine_lorebook::{
    CharacterFilter, InsertionPosition, LorebookEntry, MatchSources, SelectiveLogic,
};
use crate::lorebook_files::lenient_json;

/// The insertion order of an entry without one.
pub const DEFAULT_ORDER: i64 = 100;
/// The insertion depth, in messages, of an at-depth entry without one.
const DEFAULT_DEPTH: i64 = 4;

/// Parses an entry. Missing and invalid fields get their defaults.
pub fn read(document: &Value, key: String, id: Option<LorebookEntryId>) -> LorebookEntry {
    let field = |name: &str| document.get(name).filter(|it| !it.is_null());
    let extensions = field("extensions");
    let extension = |name: &str| {
        let value = extensions.and_then(|it| it.get(name));
        value.filter(|it| !it.is_null())
    };
    let flag = |name: &str| lenient_json::boolean(extension(name)).unwrap_or(false);
    let number = |name: &str| lenient_json::int(extension(name)).unwrap_or(0).max(0);
    let keys = lenient_json::texts(field("keys"));
    let uses_probability = lenient_json::boolean(extension("useProbability")).unwrap_or(true);
    let probability = lenient_json::float(extension("probability")).filter(|_| uses_probability);
    // SillyTavern sets `use_regex` on every entry it exports, but treats only keys between slashes
    // as patterns, and those are recognized anyway.
    let is_from_silly_tavern = extension("selectiveLogic").is_some();
    LorebookEntry {
        name: read_name(document, &keys, &key),
        key,
        id,
        secondary_keys: lenient_json::texts(field("secondary_keys")),
        selective: lenient_json::boolean(field("selective")).unwrap_or(true),
        logic: read_logic(lenient_json::int(extension("selectiveLogic"))),
        content: lenient_json::text(field("content")),
        enabled: lenient_json::boolean(field("enabled")).unwrap_or(true),
        constant: lenient_json::boolean(field("constant")).unwrap_or(false),
        is_vectorized: flag("vectorized"),
        use_regex: lenient_json::boolean(field("use_regex")).unwrap_or(false)
            && !is_from_silly_tavern,
        order: lenient_json::int(field("insertion_order")).unwrap_or(DEFAULT_ORDER),
        priority: lenient_json::int(field("priority")),
        position: read_position(field("position"), &extension),
        scan_depth: lenient_json::int(extension("scan_depth"))
            .and_then(|it| usize::try_from(it).ok()),
        case_sensitive: lenient_json::boolean(extension("case_sensitive"))
            .or_else(|| lenient_json::boolean(field("case_sensitive"))),
        whole_words: lenient_json::boolean(extension("match_whole_words")),
        group_scoring: lenient_json::boolean(extension("use_group_scoring")),
        probability: probability.unwrap_or(100.0),
        exclude_recursion: flag("exclude_recursion"),
        prevent_recursion: flag("prevent_recursion"),
        recursion_level: read_recursion_level(extension("delay_until_recursion")),
        groups: lenient_json::texts(extension("group")),
        group_override: flag("group_override"),
        group_weight: lenient_json::float(extension("group_weight"))
            .unwrap_or(100.0)
            .max(0.0),
        sticky: number("sticky"),
        cooldown: number("cooldown"),
        delay: number("delay"),
        ignore_budget: flag("ignore_budget"),
        triggers: lenient_json::texts(extension("triggers")),
        filter: extension("character_filter").and_then(read_filter),
        match_sources: MatchSources {
            persona: flag("match_persona_description"),
            description: flag("match_character_description"),
            personality: flag("match_character_personality"),
            depth_prompt: flag("match_character_depth_prompt"),
            scenario: flag("match_scenario"),
            creator_notes: flag("match_creator_notes"),
        },
        keys,
    }
}

/// Returns the display name: the stated one, else the first key, else the entry's key.
fn read_name(document: &Value, keys: &[String], key: &str) -> String {
    let stated = ["name", "comment"].map(|field| lenient_json::text(document.get(field)));
    let stated = stated.into_iter().find(|it| !it.trim().is_empty());
    let name = stated.or_else(|| keys.first().cloned());
    let name = name.unwrap_or_else(|| format!("#{key}"));
    name.trim().chars().take(200).collect()
}

fn read_logic(number: Option<i64>) -> SelectiveLogic {
    match number {
        Some(1) => SelectiveLogic::NotAll,
        Some(2) => SelectiveLogic::NotAny,
        Some(3) => SelectiveLogic::AndAll,
        _ => SelectiveLogic::AndAny,
    }
}

fn read_position<'a>(
    position: Option<&Value>,
    extension: &impl Fn(&str) -> Option<&'a Value>,
) -> InsertionPosition {
    let word = position.and_then(Value::as_str);
    let number = lenient_json::int(extension("position")).or_else(|| lenient_json::int(position));
    match number {
        Some(0) => InsertionPosition::BeforeCharacter,
        Some(2) => InsertionPosition::NoteTop,
        Some(3) => InsertionPosition::NoteBottom,
        Some(4) => InsertionPosition::AtDepth {
            depth: read_depth(lenient_json::int(extension("depth"))),
            role: match lenient_json::int(extension("role")) {
                Some(1) => PromptRole::User,
                Some(2) => PromptRole::Assistant,
                _ => PromptRole::System,
            },
        },
        Some(5) => InsertionPosition::BeforeExamples,
        Some(6) => InsertionPosition::AfterExamples,
        Some(7) => InsertionPosition::Outlet(
            lenient_json::text(extension("outlet_name"))
                .trim()
                .to_owned(),
        ),
        None if word == Some("before_char") => InsertionPosition::BeforeCharacter,
        _ => InsertionPosition::AfterCharacter,
    }
}

fn read_depth(stated: Option<i64>) -> usize {
    let depth = stated.unwrap_or(DEFAULT_DEPTH).max(0);
    usize::try_from(depth).unwrap_or(usize::MAX)
}

/// Returns the level of `delay_until_recursion`; `true` is the first level.
fn read_recursion_level(value: Option<&Value>) -> u32 {
    match value {
        Some(Value::Bool(waits)) => u32::from(*waits),
        value => u32::try_from(lenient_json::int(value).unwrap_or(0)).unwrap_or(0),
    }
}

fn read_filter(value: &Value) -> Option<CharacterFilter> {
    let filter = CharacterFilter {
        is_exclude: lenient_json::boolean(value.get("isExclude")).unwrap_or(false),
        names: lenient_json::texts(value.get("names")),
        tags: lenient_json::texts(value.get("tags")),
    };
    let is_empty = filter.names.is_empty() && filter.tags.is_empty();
    (!is_empty).then_some(filter)
}
