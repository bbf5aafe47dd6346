//! Reads and writes `chat_metadata.timedWorldInfo` of a SillyTavern chat: the sticky and cooldown effects
//! of lorebook entries, which the file names by the lorebook's name and the entry's `uid`.

use serde_json::{Map, Value, json};

/// The maximum number of effects that are read; far more than an engine keeps.
const MAX_EFFECTS: usize = 1_000;

/// The kind of a timed effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedEffectKind {
    Sticky,
    Cooldown,
}

/// A timed effect as a file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTimedEffect {
    pub kind: TimedEffectKind,
    /// The name of the lorebook.
    pub lorebook: String,
    /// The `uid` of the entry in it.
    pub entry_uid: String,
    /// The length of the chat at which it began, in messages.
    pub start: i64,
    /// The length at which it ends.
    pub end: i64,
    /// Whether it continues if the chat does not grow.
    pub is_protected: bool,
}

const FIELD: &str = "timedWorldInfo";
const KINDS: [(&str, TimedEffectKind); 2] = [
    ("sticky", TimedEffectKind::Sticky),
    ("cooldown", TimedEffectKind::Cooldown),
];

/// Returns the effects of a chat that name a lorebook and an entry.
pub fn read(chat: &Map<String, Value>) -> Vec<NamedTimedEffect> {
    let Some(timed) = chat.get(FIELD) else {
        return Vec::new();
    };
    let effects = KINDS.into_iter().flat_map(|(field, kind)| {
        let effects = timed.get(field).and_then(Value::as_object);
        let effects = effects.into_iter().flatten();
        effects.filter_map(move |(key, effect)| read_effect(kind, key, effect))
    });
    effects.take(MAX_EFFECTS).collect()
}

fn read_effect(kind: TimedEffectKind, key: &str, effect: &Value) -> Option<NamedTimedEffect> {
    // The name of a lorebook may contain dots; a `uid` does not.
    let (lorebook, uid) = key.rsplit_once('.')?;
    let number = |field: &str| effect.get(field)?.as_i64().filter(|it| *it >= 0);
    Some(NamedTimedEffect {
        kind,
        lorebook: lorebook.to_owned(),
        entry_uid: uid.to_owned(),
        start: number("start")?,
        end: number("end")?,
        is_protected: effect["protected"].as_bool().unwrap_or(false),
    })
}

/// Returns the field of a chat with these effects, or nothing if there are none. [`read`] returns those whose
/// `uid` has no dot; SillyTavern ignores them, because they do not have its hash of the entry.
pub fn write(effects: &[NamedTimedEffect]) -> Option<(String, Value)> {
    if effects.is_empty() {
        return None;
    }
    let of_kind = |kind: TimedEffectKind| {
        let effects = effects.iter().filter(|it| it.kind == kind);
        let named = effects.map(|it| {
            let effect = json!({"start": it.start, "end": it.end, "protected": it.is_protected});
            (format!("{}.{}", it.lorebook, it.entry_uid), effect)
        });
        Value::Object(named.collect())
    };
    let kinds = KINDS.map(|(field, kind)| (field.to_owned(), of_kind(kind)));
    Some((FIELD.to_owned(), Value::Object(kinds.into_iter().collect())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::{TimedEffectKind, read, write};

    #[test]
    fn effects_are_named_by_lorebook_and_entry() {
        let chat = json!({"timedWorldInfo": {
            "sticky": {"Old. Mill.7": {"hash": 1, "start": 2, "end": 5, "protected": false}},
            "cooldown": {"Mill.8": {"start": 2, "end": 9, "protected": true}, "nameless": {}, "Mill.9": {"start": -1, "end": 1}},
        }});

        let effects = read(chat.as_object().unwrap());

        let [sticky, cooldown] = effects.as_slice() else {
            panic!("{effects:?}")
        };
        assert_eq!(
            (
                sticky.kind,
                sticky.lorebook.as_str(),
                sticky.entry_uid.as_str()
            ),
            (TimedEffectKind::Sticky, "Old. Mill", "7")
        );
        assert_eq!(
            (cooldown.start, cooldown.end, cooldown.is_protected),
            (2, 9, true)
        );
        assert_eq!(read(&serde_json::Map::new()), []);
    }

    #[test]
    fn written_effects_are_read_again() {
        let chat = json!({"timedWorldInfo": {
            "sticky": {"Old. Mill.7": {"start": 2, "end": 5, "protected": false}},
            "cooldown": {"Mill.8": {"start": 2, "end": 9, "protected": true}},
        }});
        let effects = read(chat.as_object().unwrap());

        let written: Map<_, _> = write(&effects).into_iter().collect();

        assert_eq!(json!(written), chat);
        assert_eq!(write(&[]), None);
    }
}
