//! Cuts a text at a number of tokens that is lower than the lowest limit of the provider's API.

use llm::provider::Provider;
use llm::request::Request;
use llm::tokens;

/// The text of one answer so far, which is short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenCap {
    max_tokens: usize,
    text: String,
}

impl TokenCap {
    /// Returns the cap of a request, or `None` if the provider enforces the limit itself.
    pub fn new(request: &Request, provider: &dyn Provider) -> Option<Self> {
        let limit = request.max_tokens?;
        (limit < provider.min_output_tokens(request)).then(|| Self {
            max_tokens: limit as usize,
            text: String::new(),
        })
    }

    /// Returns the part of the next piece that is within the limit.
    pub fn cut<'a>(&mut self, piece: &'a str) -> &'a str {
        let n_before = self.text.len();
        self.text.push_str(piece);
        let n_kept = tokens::cut(&self.text, self.max_tokens).len();
        // A longer text may be divided into tokens differently, so that less of it is kept.
        let end = n_kept.saturating_sub(n_before).min(piece.len());
        self.text.truncate(n_before + end);
        &piece[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::TokenCap;

    #[test]
    fn a_text_ends_after_the_last_token() {
        let mut cap = TokenCap {
            max_tokens: 2,
            text: String::new(),
        };

        let kept: Vec<&str> = ["Hello", " world", ", again"].map(|it| cap.cut(it)).into();

        assert_eq!(kept, ["Hello", " world", ""]);
    }
}
