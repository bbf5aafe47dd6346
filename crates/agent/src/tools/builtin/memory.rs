//! The declarations of the built-in tool `troupe:memory`, which searches and changes the memories of a
//! character. The application implements it, because memories are stored in the database.

use llm::tool::Tool;
use serde_json::{Map, Value, json};

/// The maximum number of memories that a search returns.
pub const MAX_RESULTS: u64 = 20;
/// The kinds of memories.
const KINDS: [&str; 4] = ["relation", "preference", "event", "snippet"];

/// Returns the declaration with all actions.
pub fn declaration() -> Tool {
    let mut properties = search_properties(&["search", "remember", "forget"]);
    let others = json!({
        "content": {
            "type": "string",
            "description": "For remember: one sentence in the third person, with names instead of pronouns.",
        },
        "about": {
            "type": "string",
            "description": "For remember: the name of the member it is about.",
        },
        "importance": {
            "type": "number", "minimum": 0, "maximum": 1,
            "description": "For remember: from 0 to 1. Left out: 0.5.",
        },
        "memory_id": { "type": "integer", "description": "For forget: the id from a search." },
    });
    if let Value::Object(others) = others {
        properties.extend(others);
    }
    let description = "Your long-term memory, which outlasts this conversation. `search` (query) finds memories, \
        `remember` (content, kind) adds one of your own, `forget` (memory_id) deletes one of your own. \
        Changes take effect when your reply is complete.";
    tool(description, properties)
}

/// Returns the declaration for models that may only search.
pub fn search_declaration() -> Tool {
    let description =
        "Your long-term memory: `search` (query) finds what you remember from all conversations.";
    tool(description, search_properties(&["search"]))
}

fn tool(description: &str, properties: Map<String, Value>) -> Tool {
    Tool {
        name: "troupe_memory".to_owned(),
        description: Some(description.to_owned()),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": ["action"],
            "additionalProperties": false,
        }),
        strict: None,
    }
}

fn search_properties(actions: &[&str]) -> Map<String, Value> {
    let kind = match actions.len() {
        1 => "Only memories of this kind.",
        _ => "For search: only memories of this kind. For remember: the kind, which is required.",
    };
    let properties = json!({
        "action": { "type": "string", "enum": actions },
        "query": { "type": "string", "description": "For search: what to look for." },
        "kind": { "type": "string", "enum": KINDS, "description": kind },
        "top_k": {
            "type": "integer", "minimum": 1, "maximum": MAX_RESULTS,
            "description": "For search: the maximum number of memories. Left out: 5.",
        },
    });
    match properties {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{declaration, search_declaration};

    #[test]
    fn a_model_that_may_only_search_is_offered_nothing_else() {
        let (all, search) = (declaration(), search_declaration());

        let actions = |it: &llm::tool::Tool| it.parameters["properties"]["action"]["enum"].clone();
        assert_eq!(actions(&all).as_array().map(Vec::len), Some(3));
        assert_eq!(actions(&search), serde_json::json!(["search"]));
        assert!(search.parameters["properties"].get("content").is_none());
        assert_eq!(all.name, search.name);
    }
}
