//! One entry, read from the document in which it is kept: that of a `character_book` of V2 or V3,
//! with what SillyTavern knows beside that in `extensions`.

use crate::ids::LorebookEntryId;
use crate::llm::request::PromptRole;
use crate::lore::book::CharacterFilter;
use crate::lore::book::Entry;
use crate::lore::book::Logic;
use crate::lore::book::LooksAt;
use crate::lore::book::Place;
use crate::lore::loose;
use serde_json::Value;

/// Where an entry stands that does not say it.
pub const USUAL_ORDER: i64 = 100;
/// How many messages follow an entry that stands at a depth and does not say which.
const USUAL_DEPTH: i64 = 4;

/// Reads an entry. What it does not say, and what cannot be read, is as usual.
pub fn read(document: &Value, key: String, id: Option<LorebookEntryId>) -> Entry {
    let field = |name: &str| document.get(name).filter(|it| !it.is_null());
    let extensions = field("extensions");
    let extension = |name: &str| {
        let value = extensions.and_then(|it| it.get(name));
        value.filter(|it| !it.is_null())
    };
    let flag = |name: &str| loose::truth(extension(name)).unwrap_or(false);
    let number = |name: &str| loose::int(extension(name)).unwrap_or(0).max(0);
    let keys = loose::texts(field("keys"));
    let uses_probability = loose::truth(extension("useProbability")).unwrap_or(true);
    let probability = loose::float(extension("probability")).filter(|_| uses_probability);
    // SillyTavern says of each of its entries that it uses patterns; there only keys between
    // slashes do, and those are seen to be patterns anyway.
    let is_from_silly_tavern = extension("selectiveLogic").is_some();
    Entry {
        name: name(document, &keys, &key),
        key,
        id,
        secondary_keys: loose::texts(field("secondary_keys")),
        selective: loose::truth(field("selective")).unwrap_or(true),
        logic: logic(loose::int(extension("selectiveLogic"))),
        content: loose::text(field("content")),
        enabled: loose::truth(field("enabled")).unwrap_or(true),
        constant: loose::truth(field("constant")).unwrap_or(false),
        use_regex: loose::truth(field("use_regex")).unwrap_or(false) && !is_from_silly_tavern,
        order: loose::int(field("insertion_order")).unwrap_or(USUAL_ORDER),
        priority: loose::int(field("priority")),
        place: place(field("position"), &extension),
        scan_depth: loose::int(extension("scan_depth")).and_then(|it| usize::try_from(it).ok()),
        case_sensitive: loose::truth(extension("case_sensitive"))
            .or_else(|| loose::truth(field("case_sensitive"))),
        whole_words: loose::truth(extension("match_whole_words")),
        group_scoring: loose::truth(extension("use_group_scoring")),
        probability: probability.unwrap_or(100.0),
        exclude_recursion: flag("exclude_recursion"),
        prevent_recursion: flag("prevent_recursion"),
        recursion_level: level(extension("delay_until_recursion")),
        groups: loose::texts(extension("group")),
        group_override: flag("group_override"),
        group_weight: loose::float(extension("group_weight"))
            .unwrap_or(100.0)
            .max(0.0),
        sticky: number("sticky"),
        cooldown: number("cooldown"),
        delay: number("delay"),
        ignore_budget: flag("ignore_budget"),
        triggers: loose::texts(extension("triggers")),
        filter: extension("character_filter").and_then(filter),
        looks_at: LooksAt {
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

/// What an entry is called: as it says, else by its first key, else by its number.
fn name(document: &Value, keys: &[String], key: &str) -> String {
    let stated = ["name", "comment"].map(|field| loose::text(document.get(field)));
    let stated = stated.into_iter().find(|it| !it.trim().is_empty());
    let name = stated.or_else(|| keys.first().cloned());
    let name = name.unwrap_or_else(|| format!("#{key}"));
    name.trim().chars().take(200).collect()
}

fn logic(number: Option<i64>) -> Logic {
    match number {
        Some(1) => Logic::NotAll,
        Some(2) => Logic::NotAny,
        Some(3) => Logic::AndAll,
        _ => Logic::AndAny,
    }
}

fn place<'a>(position: Option<&Value>, extension: &impl Fn(&str) -> Option<&'a Value>) -> Place {
    let word = position.and_then(Value::as_str);
    let number = loose::int(extension("position")).or_else(|| loose::int(position));
    match number {
        Some(0) => Place::BeforeCharacter,
        Some(2) => Place::NoteTop,
        Some(3) => Place::NoteBottom,
        Some(4) => Place::AtDepth {
            depth: depth(loose::int(extension("depth"))),
            role: match loose::int(extension("role")) {
                Some(1) => PromptRole::User,
                Some(2) => PromptRole::Assistant,
                _ => PromptRole::System,
            },
        },
        Some(5) => Place::BeforeExamples,
        Some(6) => Place::AfterExamples,
        Some(7) => Place::Outlet(loose::text(extension("outlet_name")).trim().to_owned()),
        None if word == Some("before_char") => Place::BeforeCharacter,
        _ => Place::AfterCharacter,
    }
}

fn depth(stated: Option<i64>) -> usize {
    let depth = stated.unwrap_or(USUAL_DEPTH).max(0);
    usize::try_from(depth).unwrap_or(usize::MAX)
}

/// `true` is the first level.
fn level(value: Option<&Value>) -> u32 {
    match value {
        Some(Value::Bool(waits)) => u32::from(*waits),
        value => u32::try_from(loose::int(value).unwrap_or(0)).unwrap_or(0),
    }
}

fn filter(value: &Value) -> Option<CharacterFilter> {
    let filter = CharacterFilter {
        is_exclude: loose::truth(value.get("isExclude")).unwrap_or(false),
        names: loose::texts(value.get("names")),
        tags: loose::texts(value.get("tags")),
    };
    let is_empty = filter.names.is_empty() && filter.tags.is_empty();
    (!is_empty).then_some(filter)
}
