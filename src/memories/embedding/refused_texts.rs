//! Remembers which texts the providers refused to embed, so that this node does not send them again with each
//! task of their space. After a restart, each text is sent once more.

use std::hash::{DefaultHasher, Hash, Hasher};

use moka::sync::Cache;

use crate::memories::embedding::embedded_batch::RefusedMemory;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::vector_store::UnembeddedMemory;
use crate::providers::detected::detected_settings;

/// The maximum number of remembered texts, in 2 MB: enough for the texts of many spaces that are
/// too long for a model.
const MAX_TEXTS: u64 = 10_000;

/// A model with its settings, and the hash of a content.
type RefusedText = (u64, String);

/// The refused texts of a node. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct RefusedTexts(Cache<RefusedText, ()>);

impl Default for RefusedTexts {
    fn default() -> Self {
        Self(Cache::new(MAX_TEXTS))
    }
}

impl RefusedTexts {
    /// Remembers that a provider refused these memories.
    pub fn add(&self, choice: &EmbeddingChoice, refused: &[RefusedMemory]) {
        let model = hash_of(choice);
        for it in refused {
            self.0.insert((model, it.content_hash.clone()), ());
        }
    }

    /// Forgets all texts. Called when an admin saves a provider, because its server may have changed, too.
    pub fn clear(&self) {
        self.0.invalidate_all();
    }

    /// Returns which of these memories the provider refused with its current settings.
    pub fn find(
        &self,
        choice: &EmbeddingChoice,
        memories: &[UnembeddedMemory],
    ) -> Vec<RefusedMemory> {
        let model = hash_of(choice);
        let is_refused =
            |it: &&UnembeddedMemory| self.0.contains_key(&(model, it.content_hash.clone()));
        memories
            .iter()
            .filter(is_refused)
            .map(RefusedMemory::of)
            .collect()
    }
}

/// Returns a number that changes with the model and with each setting of its provider.
fn hash_of(choice: &EmbeddingChoice) -> u64 {
    let provider = &choice.provider;
    let mut hasher = DefaultHasher::new();
    (provider.id, &choice.model, choice.base_url_hash()).hash(&mut hasher);
    // The detected facts change every day, and do not concern embedding models.
    let settings = detected_settings::without_detected(provider.settings.clone());
    (&provider.api_key, settings.to_string()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use base::ids::{MemoryId, ProviderId};
    use llm::registry::ProviderKind;
    use serde_json::{Value, json};

    use super::RefusedTexts;
    use crate::memories::embedding::embedded_batch::RefusedMemory;
    use crate::memories::embedding::model_choice::EmbeddingChoice;
    use crate::memories::embedding::vector_store::UnembeddedMemory;
    use crate::providers::provider;

    fn choice(model: &str, settings: Value) -> EmbeddingChoice {
        EmbeddingChoice {
            provider: provider::Model {
                id: ProviderId(1),
                name: "p".to_owned(),
                kind: ProviderKind::Openai,
                base_url: None,
                api_key: None,
                model: String::new(),
                is_default: false,
                disabled: false,
                settings,
                created_at: Timestamp(0),
            },
            model: model.to_owned(),
        }
    }

    fn memory(content_hash: &str) -> UnembeddedMemory {
        UnembeddedMemory {
            id: MemoryId(1),
            content: "A text.".to_owned(),
            content_hash: content_hash.to_owned(),
        }
    }

    #[test]
    fn a_refusal_is_remembered_until_content_model_or_settings_change() {
        let texts = RefusedTexts::default();
        let long = [memory("long")];
        texts.add(&choice("m", json!({})), &[RefusedMemory::of(&long[0])]);
        let is_refused = |model, settings, memories: &[UnembeddedMemory]| {
            !texts.find(&choice(model, settings), memories).is_empty()
        };

        assert!(is_refused("m", json!({}), &long));
        assert!(!is_refused("m", json!({}), &[memory("short")]));
        assert!(!is_refused("n", json!({}), &long));
        assert!(!is_refused("m", json!({"embedding_dimensions": 4}), &long));
    }
}
