//! Defines the object of an assistant as clients see it.
//!
//! **Invariant:** the order of the fields is the order on the wire.

use base::clock::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::objects::{ObjectType, seconds};
use crate::schemas::request_values;

/// The values in the object of an assistant whose settings do not contain them.
const DEFAULT_TEMPERATURE: f64 = 1.0;
const DEFAULT_TOP_P: f64 = 1.0;

/// An assistant as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAssistant {
    pub id: String,
    pub created_at: Timestamp,
    pub name: Option<String>,
    pub description: Option<String>,
    pub model: String,
    pub instructions: Option<String>,
    pub tools: Value,
    pub metadata: Value,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub response_format: Option<Value>,
}

/// An assistant.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct AssistantObject {
    pub id: String,
    object: ObjectType,
    /// In seconds since 1970.
    created_at: i64,
    name: Option<String>,
    description: Option<String>,
    model: String,
    instructions: Option<String>,
    #[schema(value_type = Vec<Object>)]
    tools: Value,
    #[schema(value_type = Object)]
    metadata: Value,
    temperature: f64,
    top_p: f64,
    #[schema(schema_with = request_values::answer_format)]
    response_format: Value,
}

impl From<StoredAssistant> for AssistantObject {
    fn from(stored: StoredAssistant) -> Self {
        Self {
            id: stored.id,
            object: ObjectType::Assistant,
            created_at: seconds(stored.created_at),
            name: stored.name,
            description: stored.description,
            model: stored.model,
            instructions: stored.instructions,
            tools: stored.tools,
            metadata: stored.metadata,
            temperature: stored.temperature.unwrap_or(DEFAULT_TEMPERATURE),
            top_p: stored.top_p.unwrap_or(DEFAULT_TOP_P),
            response_format: stored.response_format.unwrap_or_else(|| json!("auto")),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::json;

    use super::{AssistantObject, StoredAssistant};

    #[test]
    fn an_assistant_has_exactly_this_json() {
        let stored = StoredAssistant {
            id: "asst_1".to_owned(),
            created_at: Timestamp(1_999),
            name: Some("Ada".to_owned()),
            description: None,
            model: "m".to_owned(),
            instructions: None,
            tools: json!([]),
            metadata: json!({}),
            temperature: None,
            top_p: Some(0.5),
            response_format: None,
        };

        let json = serde_json::to_string(&AssistantObject::from(stored)).unwrap();

        assert_eq!(
            json,
            r#"{"id":"asst_1","object":"assistant","created_at":1,"name":"Ada","description":null,"model":"m","instructions":null,"tools":[],"metadata":{},"temperature":1.0,"top_p":0.5,"response_format":"auto"}"#
        );
    }
}
