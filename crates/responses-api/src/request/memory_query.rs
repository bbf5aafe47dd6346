//! Parses and validates the body of `POST /v1/memory/query`, which requests the newest messages of a
//! conversation of a space and searches the memories of that space.

use base::ids::ConversationId;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::request::error::RequestError;
use crate::request::object_reader;
use crate::request::object_reader::ObjectReader;

const KNOWN: [&str; 6] = [
    "conversation_id",
    "query",
    "type",
    "turns",
    "top_k",
    "threshold",
];
/// The maximum number of turns; a turn is two messages.
const MAX_TURNS: i64 = 20;
/// The maximum number of memories: as many as the settings of a space allow for a prompt.
const MAX_MEMORIES: i64 = 20;

/// What to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemorySpan {
    /// The newest messages.
    Short,
    /// Memories.
    Long,
    /// Both.
    Mixed,
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySearch {
    /// `None` if no conversation of a space can have the given id.
    pub conversation: Option<ConversationId>,
    /// What to search the memories for; not blank.
    pub query: Option<String>,
    pub span: MemorySpan,
    /// The maximum number of messages.
    pub n_messages: u64,
    /// The maximum number of memories.
    pub top_k: usize,
    /// From 0 to 1.
    pub threshold: f64,
}

impl MemorySearch {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&KNOWN);
            let conversation = conversation(body);
            let span = body.word("type").unwrap_or(MemorySpan::Mixed);
            let query = body.text("query").filter(|it| !it.trim().is_empty());
            if span == MemorySpan::Long && query.is_none() {
                body.missing("query", "A search in the memories requires a text.");
            }
            let turns = body.integer("turns", 1..=MAX_TURNS).unwrap_or(3);
            let top_k = body.integer("top_k", 1..=MAX_MEMORIES).unwrap_or(5);
            Self {
                conversation,
                query: query.map(str::to_owned),
                span,
                n_messages: u64::try_from(turns * 2).unwrap_or_default(),
                top_k: usize::try_from(top_k).unwrap_or_default(),
                threshold: body.number("threshold", 0.0..=1.0).unwrap_or(0.6),
            }
        })
    }
}

/// Returns the conversation, whose id is a number or a string of digits.
fn conversation(body: &ObjectReader<'_>) -> Option<ConversationId> {
    match body.get("conversation_id") {
        None => {
            body.missing(
                "conversation_id",
                "Send the id of a conversation of a space.",
            );
            None
        }
        // API conversations, whose ids are other strings, have no memories.
        Some(Value::String(id)) => id.parse().ok(),
        Some(id) if id.is_i64() => id.as_i64().map(ConversationId),
        Some(_) => {
            body.wrong_type("conversation_id", "an integer or a string");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use base::ids::ConversationId;
    use serde_json::{Value, json};

    use super::{KNOWN, MemorySearch, MemorySpan};
    use crate::schemas::request_bodies::MemoryQueryBody;
    use crate::schemas::request_values;

    fn parse(body: Value) -> Result<MemorySearch, (&'static str, String)> {
        let body = body.as_object().unwrap().clone();
        MemorySearch::parse(&body).map_err(|it| (it.code, it.param))
    }

    #[test]
    fn only_the_conversation_is_required() {
        let expected = MemorySearch {
            conversation: Some(ConversationId(7)),
            query: None,
            span: MemorySpan::Mixed,
            n_messages: 6,
            top_k: 5,
            threshold: 0.6,
        };

        assert_eq!(parse(json!({"conversation_id": 7})), Ok(expected.clone()));
        assert_eq!(
            parse(json!({"conversation_id": "7", "query": " "})),
            Ok(expected)
        );
        let of_api = parse(json!({"conversation_id": "conv_7"})).unwrap();
        assert_eq!(of_api.conversation, None);
    }

    #[test]
    fn an_invalid_search_names_its_field() {
        for (body, code, param) in [
            (json!({}), "missing_required_parameter", "conversation_id"),
            (
                json!({"conversation_id": [7]}),
                "invalid_type",
                "conversation_id",
            ),
            (
                json!({"conversation_id": 7, "type": "long"}),
                "missing_required_parameter",
                "query",
            ),
            (
                json!({"conversation_id": 7, "type": "all"}),
                "invalid_value",
                "type",
            ),
            (
                json!({"conversation_id": 7, "query": 5}),
                "invalid_type",
                "query",
            ),
            (
                json!({"conversation_id": 7, "turns": 0}),
                "invalid_value",
                "turns",
            ),
            (
                json!({"conversation_id": 7, "top_k": 21}),
                "invalid_value",
                "top_k",
            ),
            (
                json!({"conversation_id": 7, "threshold": 1.5}),
                "invalid_value",
                "threshold",
            ),
            (
                json!({"conversation_id": 7, "limit": 1}),
                "unknown_parameter",
                "limit",
            ),
        ] {
            assert_eq!(parse(body), Err((code, param.to_owned())));
        }
    }

    #[test]
    fn the_api_document_has_every_field() {
        let mut known = KNOWN;
        known.sort_unstable();

        assert_eq!(request_values::field_names::<MemoryQueryBody>(), known);
    }
}
