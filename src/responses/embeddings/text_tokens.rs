//! Counts the tokens of the texts that a program embeds, and enforces the limits of a request.

use llm::tokens;
use responses_api::request::create_embeddings::{EmbeddedTexts, MAX_TEXT_TOKENS, MAX_TOKENS};

use crate::responses::embeddings::relay_error::RelayError;

/// Returns the number of tokens of all texts. Must be called in a blocking task.
///
/// # Errors
/// Returns `TextTooLong` for the first text that is too long, and `InputTooLong` when all texts
/// together are too long. Texts after the limit are not counted.
pub fn count(input: &EmbeddedTexts) -> Result<u64, RelayError> {
    let texts = match input {
        EmbeddedTexts::Texts(texts) => texts,
        // Their limits were checked with the request.
        EmbeddedTexts::TokenIds(texts) => {
            let n_tokens: usize = texts.iter().map(Vec::len).sum();
            return Ok(n_tokens as u64);
        }
    };
    let mut n_tokens = 0;
    for (index, text) in texts.iter().enumerate() {
        let n_of_text = usize::try_from(tokens::count(text)).unwrap_or_default();
        if n_of_text > MAX_TEXT_TOKENS {
            return Err(RelayError::TextTooLong { index });
        }
        n_tokens += n_of_text;
        if n_tokens > MAX_TOKENS {
            return Err(RelayError::InputTooLong);
        }
    }
    Ok(n_tokens as u64)
}

#[cfg(test)]
mod tests {
    use responses_api::request::create_embeddings::EmbeddedTexts;

    use super::count;
    use crate::responses::embeddings::relay_error::RelayError;

    /// A text with this many tokens.
    fn text(n_tokens: usize) -> String {
        " a".repeat(n_tokens)
    }

    #[test]
    fn the_tokens_of_all_texts_are_added() {
        let texts = EmbeddedTexts::Texts(vec![text(8_192), text(3)]);
        let ids = EmbeddedTexts::TokenIds(vec![vec![7; 5], vec![7]]);

        assert_eq!(count(&texts).unwrap(), 8_195);
        assert_eq!(count(&ids).unwrap(), 6);
    }

    #[test]
    fn a_text_and_all_texts_have_a_limit() {
        let longer = count(&EmbeddedTexts::Texts(vec![text(1), text(8_193)]));
        let many = count(&EmbeddedTexts::Texts(vec![text(8_000); 38]));

        assert!(matches!(longer, Err(RelayError::TextTooLong { index: 1 })));
        assert!(matches!(many, Err(RelayError::InputTooLong)));
    }
}
