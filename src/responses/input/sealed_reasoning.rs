//! Encrypts the reasoning of a model, in the form that its API expects back, into reasoning items, and
//! decrypts such items when their owner sends them back or continues a stored response.
//!
//! **Invariant:** reasoning is encrypted for the user who requested it and cannot be decrypted for
//! any other user.

use base::ids::UserId;
use llm::reasoning::thought::Thought;
use llm::secret::Secret;
use responses_api::item::{SEALED_FIELD, SealedReasoning};
use serde_json::{Value, json};

use crate::providers::encryption::{DecryptError, SecretCipher};
use crate::responses::request::ResponseRequest;

/// Encrypts the reasoning of one response.
#[derive(Clone)]
pub struct ReasoningSealer {
    cipher: SecretCipher,
    user: UserId,
    /// Whether the client receives it.
    is_shown: bool,
}

impl ReasoningSealer {
    /// Returns the sealer for a response, or `None` if its reasoning cannot be sent back.
    pub fn new(
        cipher: &SecretCipher,
        user: UserId,
        is_shown: bool,
        is_stored: bool,
    ) -> Option<Self> {
        (is_shown || is_stored).then(|| Self {
            cipher: cipher.clone(),
            user,
            is_shown,
        })
    }

    /// Returns the sealer for a request of this user.
    pub fn of_request(
        cipher: &SecretCipher,
        user: UserId,
        request: &ResponseRequest,
    ) -> Option<Self> {
        let is_shown = request.stored.reasoning.includes_encrypted;
        Self::new(cipher, user, is_shown, request.store)
    }

    /// Encrypts a thought.
    pub fn seal(&self, thought: &Thought) -> SealedReasoning {
        let text = serde_json::to_string(thought).expect("a thought has text keys only");
        let context = encryption_context(self.user);
        SealedReasoning {
            text: self.cipher.encrypt(&Secret::new(&text), &context),
            is_shown: self.is_shown,
        }
    }
}

/// Binds reasoning to its user.
fn encryption_context(user: UserId) -> String {
    format!("reasoning/{user}")
}

/// The error for content that has the format of this server's encrypted reasoning, but cannot be decrypted
/// for this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidEncryptedReasoning;

/// Replaces the encrypted content of a reasoning item by the thought in it, as JSON. An item with the
/// encrypted content of another service loses its content, because no model here can use it.
///
/// # Errors
/// Returns `InvalidEncryptedReasoning` when it has the format of this server and cannot be decrypted for the
/// user.
pub fn open(
    cipher: &SecretCipher,
    user: UserId,
    item: &mut Value,
) -> Result<(), InvalidEncryptedReasoning> {
    let given = item["encrypted_content"].as_str();
    let Some(sealed) = item[SEALED_FIELD].as_str().or(given) else {
        return Ok(());
    };
    match cipher.decrypt(sealed, &encryption_context(user)) {
        Ok(thought) => {
            item["encrypted_content"] = json!(thought.expose());
            Ok(())
        }
        Err(DecryptError::UnknownFormat) => {
            *item = json!({ "type": "reasoning", "summary": [] });
            Ok(())
        }
        Err(DecryptError::OtherSecret) => Err(InvalidEncryptedReasoning),
    }
}

#[cfg(test)]
mod tests {
    use base::ids::UserId;
    use llm::reasoning::thought::{Thought, ThoughtField};
    use serde_json::{Value, json};

    use super::{InvalidEncryptedReasoning, ReasoningSealer, open};
    use crate::providers::encryption::SecretCipher;

    fn thought() -> Thought {
        Thought::Text {
            field: ThoughtField::ReasoningContent,
            text: "Hm.".to_owned(),
        }
    }

    fn item(cipher: &SecretCipher) -> Value {
        let sealer = ReasoningSealer::new(cipher, UserId(7), true, false).unwrap();
        let sealed = sealer.seal(&thought()).text;
        json!({ "type": "reasoning", "summary": [], "encrypted_content": sealed })
    }

    #[test]
    fn reasoning_is_decrypted_for_its_user_only() {
        let cipher = SecretCipher::new("a secret of some length");
        let mut own = item(&cipher);
        let mut foreign = own.clone();

        assert_eq!(open(&cipher, UserId(7), &mut own), Ok(()));
        assert_eq!(
            open(&cipher, UserId(8), &mut foreign),
            Err(InvalidEncryptedReasoning)
        );

        let opened = own["encrypted_content"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Thought>(opened).unwrap(), thought());
    }

    #[test]
    fn reasoning_of_another_service_is_left_out() {
        let cipher = SecretCipher::new("a secret of some length");
        let summary = json!([{ "type": "summary_text", "text": "Hm." }]);
        let mut item =
            json!({ "type": "reasoning", "summary": summary, "encrypted_content": "gAAAA" });

        assert_eq!(open(&cipher, UserId(7), &mut item), Ok(()));

        assert_eq!(item, json!({ "type": "reasoning", "summary": [] }));
    }
}
