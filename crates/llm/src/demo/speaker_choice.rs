//! Chooses the next speaker of a group chat, when the demo model is asked for it.

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use crate::tool::OutputSchema;

/// The name of the schema by which a model is asked who speaks next.
pub const SCHEMA_NAME: &str = "next_speaker";

/// The reason that the demo model states: it understands nothing of the conversation.
const REASON: &str = "The demo model drew this name.";

/// Returns an answer that names one of the allowed speakers; `None` if something else is asked.
pub fn answer(schema: &OutputSchema, rng: &mut ChaCha8Rng) -> Option<Value> {
    if schema.name != SCHEMA_NAME {
        return None;
    }
    let names = schema
        .schema
        .pointer("/properties/speakers/items/enum")?
        .as_array()?;
    let name = names.choose(rng)?;
    Some(json!({ "speakers": [name], "reason": REASON }))
}
