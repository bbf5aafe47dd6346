//! Parses the arguments of a call of `troupe:memory`. No I/O.

use agent::tools::builtin::memory::MAX_RESULTS;
use agent::tools::tool::ToolArguments;
use base::ids::MemoryId;
use recall::content::{MAX_CONTENT_CHARS, one_line};
use recall::snippet::looks_like_secret;
use serde::Deserialize;
use serde_json::Value;

use crate::memories::memory::MemoryKind;

/// The number of memories that a search returns if the call states none.
const DEFAULT_RESULTS: u64 = 5;
/// The importance of a memory if the call states none.
const DEFAULT_IMPORTANCE: f64 = 0.5;
/// The maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 2_000;

/// The action of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryAction {
    Search {
        query: String,
        kind: Option<MemoryKind>,
        top_k: usize,
    },
    Remember(RememberedFact),
    Forget(MemoryId),
}

/// A memory to add.
#[derive(Clone, Debug, PartialEq)]
pub struct RememberedFact {
    /// One line.
    pub content: String,
    pub kind: MemoryKind,
    /// The name of a member.
    pub about: Option<String>,
    pub importance: f64,
}

impl MemoryAction {
    /// Parses the arguments of a call.
    ///
    /// # Errors
    /// Returns a sentence for the model that says what is wrong.
    pub fn parse(arguments: &ToolArguments) -> Result<Self, String> {
        match text(arguments, "action")? {
            Some("search") => search(arguments),
            Some("remember") => remember(arguments).map(Self::Remember),
            Some("forget") => forget(arguments),
            _ => Err("`action` must be search, remember or forget.".to_owned()),
        }
    }
}

fn search(arguments: &ToolArguments) -> Result<MemoryAction, String> {
    let query = text(arguments, "query")?.filter(|it| !it.trim().is_empty());
    let query = query.ok_or("`query` must be a text.")?;
    let top_k = match given(arguments, "top_k") {
        None => DEFAULT_RESULTS,
        Some(value) => value
            .as_u64()
            .filter(|it| (1..=MAX_RESULTS).contains(it))
            .ok_or_else(|| format!("`top_k` must be between 1 and {MAX_RESULTS}."))?,
    };
    Ok(MemoryAction::Search {
        query: query.chars().take(MAX_QUERY_CHARS).collect(),
        kind: kind(arguments)?,
        top_k: usize::try_from(top_k).unwrap_or(usize::MAX),
    })
}

fn remember(arguments: &ToolArguments) -> Result<RememberedFact, String> {
    let content = text(arguments, "content")?.and_then(one_line);
    let content = content
        .ok_or_else(|| format!("`content` must have 1 to {MAX_CONTENT_CHARS} characters."))?;
    if looks_like_secret(&content) {
        return Err("Passwords and keys are not remembered.".to_owned());
    }
    let importance = match given(arguments, "importance") {
        None => DEFAULT_IMPORTANCE,
        Some(value) => value
            .as_f64()
            .filter(|it| (0.0..=1.0).contains(it))
            .ok_or("`importance` must be between 0 and 1.")?,
    };
    Ok(RememberedFact {
        content,
        kind: kind(arguments)?.ok_or_else(wrong_kind)?,
        about: text(arguments, "about")?.map(str::to_owned),
        importance,
    })
}

fn forget(arguments: &ToolArguments) -> Result<MemoryAction, String> {
    let id = given(arguments, "memory_id");
    // Some models send every id as a text.
    let id = id.and_then(|it| match it {
        Value::String(digits) => digits.parse().ok(),
        number => number.as_i64(),
    });
    let id = id.ok_or("`memory_id` must be the id of a memory.")?;
    Ok(MemoryAction::Forget(MemoryId(id)))
}

fn kind(arguments: &ToolArguments) -> Result<Option<MemoryKind>, String> {
    let Some(value) = given(arguments, "kind") else {
        return Ok(None);
    };
    let kind = MemoryKind::deserialize(value).map_err(|_| wrong_kind())?;
    Ok(Some(kind))
}

fn wrong_kind() -> String {
    "`kind` must be relation, preference, event or snippet.".to_owned()
}

fn text<'a>(arguments: &'a ToolArguments, name: &str) -> Result<Option<&'a str>, String> {
    match given(arguments, name) {
        None => Ok(None),
        Some(value) => {
            let text = value.as_str();
            text.map(Some)
                .ok_or_else(|| format!("`{name}` must be a text."))
        }
    }
}

/// Returns an argument; null counts as left out.
fn given<'a>(arguments: &'a ToolArguments, name: &str) -> Option<&'a Value> {
    arguments.get(name).filter(|it| !it.is_null())
}

#[cfg(test)]
mod tests {
    use agent::tools::builtin::memory;
    use base::ids::MemoryId;
    use serde_json::{Value, json};

    use super::{MemoryAction, RememberedFact};
    use crate::memories::memory::MemoryKind;

    fn parse(arguments: Value) -> Result<MemoryAction, String> {
        MemoryAction::parse(arguments.as_object().unwrap())
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let search = MemoryAction::Search {
            query: "the dog".to_owned(),
            kind: None,
            top_k: 5,
        };
        let remember = MemoryAction::Remember(RememberedFact {
            content: "Ann has a dog.".to_owned(),
            kind: MemoryKind::Relation,
            about: None,
            importance: 0.5,
        });

        assert_eq!(
            parse(json!({"action": "search", "query": "the dog", "kind": null})),
            Ok(search)
        );
        assert_eq!(
            parse(json!({"action": "remember", "content": "Ann has\na dog.", "kind": "relation"})),
            Ok(remember)
        );
        assert_eq!(
            parse(json!({"action": "forget", "memory_id": "7"})),
            Ok(MemoryAction::Forget(MemoryId(7)))
        );
    }

    #[test]
    fn every_declared_kind_is_known() {
        let declared = memory::declaration().parameters["properties"]["kind"]["enum"].clone();

        for kind in declared.as_array().unwrap() {
            let call = json!({"action": "search", "query": "dog", "kind": kind});
            assert!(parse(call).is_ok(), "{kind}");
        }
    }

    #[test]
    fn an_invalid_call_is_refused_with_the_argument() {
        for (arguments, argument) in [
            (json!({}), "`action`"),
            (json!({"action": "dream"}), "`action`"),
            (json!({"action": 5}), "`action`"),
            (json!({"action": "search"}), "`query`"),
            (json!({"action": "search", "query": " "}), "`query`"),
            (
                json!({"action": "search", "query": "dog", "top_k": 0}),
                "`top_k`",
            ),
            (
                json!({"action": "search", "query": "dog", "kind": "fact"}),
                "`kind`",
            ),
            (
                json!({"action": "remember", "content": " ", "kind": "event"}),
                "`content`",
            ),
            (
                json!({"action": "remember", "content": "x".repeat(2_001), "kind": "event"}),
                "`content`",
            ),
            (
                json!({"action": "remember", "content": "It rained."}),
                "`kind`",
            ),
            (
                json!({"action": "remember", "content": "It rained.", "kind": "event", "importance": 2}),
                "`importance`",
            ),
            (json!({"action": "forget"}), "`memory_id`"),
            (json!({"action": "forget", "memory_id": 1.5}), "`memory_id`"),
        ] {
            let message = parse(arguments.clone()).unwrap_err();
            assert!(message.contains(argument), "{arguments}: {message}");
        }
    }

    #[test]
    fn a_secret_is_refused() {
        let secret =
            json!({"action": "remember", "content": "Ann's password is rosebud.", "kind": "event"});

        assert!(parse(secret).is_err());
    }
}
