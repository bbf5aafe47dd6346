//! Encrypts the summary of a compacted history into a response item, and decrypts such items when
//! their owner sends them back.
//!
//! **Invariant:** a summary is encrypted for the user who requested it and cannot be decrypted for
//! anyone else.

use base::ids::UserId;
use llm::secret::Secret;
use responses_api::item::{ItemBody, OutputItem};
use responses_api::request::items::item_view::{ItemContent, ItemView};
use serde_json::{Value, json};

use crate::providers::encryption::SecretCipher;
use crate::responses::error::ResponseEngineError;
use crate::responses::input::sealed_reasoning;

/// The text before a summary that is sent back to the model.
const HEADING: &str = "A summary of the conversation until now, written by you:";

/// Returns the item that contains a summary for this user.
pub fn item(sealer: &SecretCipher, user: UserId, text: &str) -> Value {
    let compaction = ItemBody::Compaction {
        encrypted_content: encrypt(sealer, user, text),
    };
    OutputItem::new(compaction).to_value()
}

fn encrypt(sealer: &SecretCipher, user: UserId, text: &str) -> String {
    sealer.encrypt(&Secret::new(text), &encryption_context(user))
}

/// Binds a summary to its user.
fn encryption_context(user: UserId) -> String {
    format!("compaction/{user}")
}

/// Replaces each compaction item by its decrypted summary, as a developer message, and decrypts the
/// reasoning of reasoning items.
///
/// # Errors
/// Returns `UndecryptableItem` when an item was not encrypted by this server for this user.
pub fn expand(
    sealer: &SecretCipher,
    user: UserId,
    mut prior: Vec<Value>,
    mut input: Vec<Value>,
) -> Result<(Vec<Value>, Vec<Value>), ResponseEngineError> {
    let previous = |_| "previous_response_id".to_owned();
    decrypt_all(sealer, user, &mut prior, previous)?;
    let param = |at| format!("input[{at}].encrypted_content");
    decrypt_all(sealer, user, &mut input, param)?;
    Ok((prior, input))
}

/// Checks that every compaction item and all reasoning of a list was encrypted for this user.
///
/// # Errors
/// Returns `UndecryptableItem` when one was not.
pub fn require_readable(
    sealer: &SecretCipher,
    user: UserId,
    items: &[Value],
) -> Result<(), ResponseEngineError> {
    let param = |at| format!("items[{at}].encrypted_content");
    decrypt_all(sealer, user, &mut items.to_vec(), param)
}

fn decrypt_all(
    sealer: &SecretCipher,
    user: UserId,
    items: &mut [Value],
    param: impl Fn(usize) -> String,
) -> Result<(), ResponseEngineError> {
    for (at, item) in items.iter_mut().enumerate() {
        let encrypted_content = match ItemView::of(item).content {
            ItemContent::Compaction { encrypted_content } => encrypted_content,
            ItemContent::Reasoning(_) => {
                let opened = sealed_reasoning::open(sealer, user, item);
                opened.map_err(|_| ResponseEngineError::UndecryptableItem(param(at)))?;
                continue;
            }
            _ => continue,
        };
        let decrypted = sealer.decrypt(encrypted_content, &encryption_context(user));
        let open = decrypted.map_err(|_| ResponseEngineError::UndecryptableItem(param(at)))?;
        let text = format!("{HEADING}\n\n{}", open.expose());
        let content = json!([{ "type": "input_text", "text": text }]);
        *item = json!({ "type": "message", "role": "developer", "content": content });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base::ids::UserId;
    use serde_json::json;

    use super::{encrypt, expand};
    use crate::providers::encryption::SecretCipher;
    use crate::responses::error::ResponseEngineError;

    #[test]
    fn a_summary_becomes_a_developers_message_in_its_place() {
        let sealer = SecretCipher::new("a secret of some length");
        let sealed = encrypt(&sealer, UserId(7), "Ann likes tea.");
        let item = json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": sealed });
        let before = json!({ "type": "message", "role": "user" });

        let (_, input) = expand(&sealer, UserId(7), vec![], vec![before.clone(), item]).unwrap();

        assert_eq!(input[0], before);
        assert_eq!(input[1]["role"], "developer");
        let text = input[1]["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("\n\nAnn likes tea."));
    }

    #[test]
    fn a_summary_cannot_be_decrypted_for_another_user() {
        let sealer = SecretCipher::new("a secret of some length");
        let sealed = encrypt(&sealer, UserId(7), "Ann likes tea.");
        let item = json!({ "type": "compaction", "encrypted_content": sealed });

        let refused = expand(&sealer, UserId(8), vec![], vec![item]).unwrap_err();

        let ResponseEngineError::UndecryptableItem(param) = refused else {
            panic!("{refused}");
        };
        assert_eq!(param, "input[0].encrypted_content");
    }
}
