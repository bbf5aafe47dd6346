//! Estimates how many tokens a text has for a model: the count of our own tokenizer times a factor for the
//! tokenizer of the model and the script of the text. No I/O.
//!
//! The factors are upper estimates, because a prompt that is too long is refused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::registry::ProviderKind;
use crate::tokens;

/// The limits of a corrected factor.
const MIN_FACTOR: f64 = 0.8;
const MAX_FACTOR: f64 = 3.0;

/// The tokenizer of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tokenizer)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// Chosen by the kind of the provider and the name of the model.
    #[default]
    Auto,
    O200kBase,
    Cl100kBase,
    Claude,
    Mistral,
    Llama3,
    Gemma,
    Qwen,
    Deepseek,
}

/// How many tokens a model has for one token of our own tokenizer, by script.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenFactors {
    latin: f64,
    cyrillic: f64,
    hangul: f64,
    /// Chinese characters and kana.
    han: f64,
    other: f64,
}

/// For models with the vocabulary of our own tokenizer, o200k.
const EXACT: TokenFactors = by_script([1.0, 1.0, 1.0, 1.0, 1.0]);
/// OpenAI's models before o200k.
const CL100K: TokenFactors = by_script([1.05, 1.4, 1.7, 1.4, 1.7]);
const CLAUDE: TokenFactors = by_script([1.15, 1.7, 1.7, 1.1, 2.5]);
/// Mistral, Llama 3, Gemma, Qwen and DeepSeek.
const OPEN_MODELS: TokenFactors = by_script([1.1, 1.3, 1.7, 1.1, 2.0]);
const UNKNOWN: TokenFactors = by_script([1.15, 1.7, 2.0, 1.1, 2.5]);

const OPEN_NAMES: [&str; 13] = [
    "mistral",
    "mixtral",
    "ministral",
    "magistral",
    "codestral",
    "pixtral",
    "llama",
    "gemma",
    "qwen",
    "qwq",
    "deepseek",
    "devstral",
    "nemo",
];
const CL100K_NAMES: [&str; 4] = ["gpt-4-", "gpt-3.5", "gpt-35", "text-embedding"];
const O200K_NAMES: [&str; 7] = ["gpt-", "chatgpt", "o1", "o3", "o4", "codex", "computer-use"];

const fn by_script([latin, cyrillic, hangul, han, other]: [f64; 5]) -> TokenFactors {
    TokenFactors {
        latin,
        cyrillic,
        hangul,
        han,
        other,
    }
}

impl Default for TokenFactors {
    fn default() -> Self {
        EXACT
    }
}

impl TokenFactors {
    /// Returns the factors for a model, by the kind of its provider and its name.
    pub fn of_model(kind: ProviderKind, model: &str) -> Self {
        let model = model.to_lowercase();
        // The name after the vendor, as in `openai/gpt-5`.
        let name = model.rsplit('/').next().unwrap_or_default();
        let begins = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
        if kind == ProviderKind::Demo {
            EXACT
        } else if kind == ProviderKind::Anthropic || name.contains("claude") {
            CLAUDE
        } else if begins(&CL100K_NAMES) || name == "gpt-4" {
            CL100K
        } else if kind == ProviderKind::Openai || begins(&O200K_NAMES) {
            EXACT
        } else if OPEN_NAMES.iter().any(|it| name.contains(it)) {
            OPEN_MODELS
        } else {
            UNKNOWN
        }
    }

    /// Returns the factors of a tokenizer; with `Auto`, those for the model.
    pub fn of_tokenizer(tokenizer: Tokenizer, kind: ProviderKind, model: &str) -> Self {
        match tokenizer {
            Tokenizer::Auto => Self::of_model(kind, model),
            Tokenizer::O200kBase => EXACT,
            Tokenizer::Cl100kBase => CL100K,
            Tokenizer::Claude => CLAUDE,
            Tokenizer::Mistral
            | Tokenizer::Llama3
            | Tokenizer::Gemma
            | Tokenizer::Qwen
            | Tokenizer::Deepseek => OPEN_MODELS,
        }
    }

    /// Returns the same factor for every script.
    pub fn uniform(factor: f64) -> Self {
        by_script([factor; 5])
    }

    /// Returns the factors multiplied by a correction, within limits.
    pub fn corrected(self, correction: f64) -> Self {
        let factors = [self.latin, self.cyrillic, self.hangul, self.han, self.other];
        by_script(factors.map(|it| (it * correction).clamp(MIN_FACTOR, MAX_FACTOR)))
    }

    /// Returns the smallest factor.
    pub fn smallest(self) -> f64 {
        let others = [self.cyrillic, self.hangul, self.han, self.other];
        others.into_iter().fold(self.latin, f64::min)
    }

    /// Estimates the tokens of a text. Never negative.
    pub fn count(self, text: &str) -> i64 {
        self.apply(text, tokens::count(text))
    }

    /// Estimates the tokens of a text that has `counted` tokens by our own tokenizer.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // far below 2^52
    pub fn apply(self, text: &str, counted: i64) -> i64 {
        if self == EXACT {
            return counted;
        }
        (counted as f64 * self.factor(text)).ceil() as i64
    }

    /// Returns the factor of a text: the mean of the factors of its characters, weighted by their tokens.
    fn factor(self, text: &str) -> f64 {
        if text.is_ascii() {
            return self.latin;
        }
        let (mut factors, mut weights) = (0.0, 0.0);
        for it in text.chars() {
            let (factor, weight) = self.of_character(it);
            factors += factor * weight;
            weights += weight;
        }
        if weights > 0.0 {
            factors / weights
        } else {
            self.latin
        }
    }

    /// Returns the factor of a character, and as its weight the approximate number of its tokens.
    fn of_character(self, it: char) -> (f64, f64) {
        match u32::from(it) {
            0..=0x36f | 0x1e00..=0x1eff | 0x2000..=0x2bff => (self.latin, 0.25),
            0x400..=0x52f => (self.cyrillic, 0.4),
            0x1100..=0x11ff | 0x3130..=0x318f | 0xac00..=0xd7af => (self.hangul, 0.8),
            0x2e80..=0x312f
            | 0x31a0..=0xa4cf
            | 0xf900..=0xfaff
            | 0xff00..=0xffef
            | 0x2_0000..=0x3_ffff => (self.han, 0.8),
            _ => (self.other, 0.6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CL100K, CLAUDE, EXACT, OPEN_MODELS, TokenFactors, Tokenizer, UNKNOWN};
    use crate::registry::ProviderKind::{Anthropic, Demo, Openai, OpenaiCompatible};
    use crate::tokens;

    #[test]
    fn the_family_follows_from_the_kind_and_the_name() {
        for (kind, model, expected) in [
            (Demo, "demo", EXACT),
            (Openai, "gpt-5.1", EXACT),
            (Openai, "gpt-4-turbo", CL100K),
            (Openai, "gpt-4", CL100K),
            (OpenaiCompatible, "openai/gpt-4o", EXACT),
            (Anthropic, "anything", CLAUDE),
            (OpenaiCompatible, "anthropic/claude-sonnet-4.5", CLAUDE),
            (OpenaiCompatible, "mistral-small-latest", OPEN_MODELS),
            (OpenaiCompatible, "Qwen/Qwen3-32B", OPEN_MODELS),
            (OpenaiCompatible, "my-merge-24b", UNKNOWN),
        ] {
            assert_eq!(TokenFactors::of_model(kind, model), expected, "{model}");
        }
    }

    #[test]
    fn a_tokenizer_that_is_set_replaces_the_family_of_the_name() {
        let factors =
            |tokenizer| TokenFactors::of_tokenizer(tokenizer, OpenaiCompatible, "my-merge-24b");

        assert_eq!(factors(Tokenizer::Auto), UNKNOWN);
        assert_eq!(factors(Tokenizer::O200kBase), EXACT);
        assert_eq!(factors(Tokenizer::Cl100kBase), CL100K);
        assert_eq!(factors(Tokenizer::Llama3), OPEN_MODELS);
        let stored = serde_json::to_value([Tokenizer::O200kBase, Tokenizer::Cl100kBase]);
        assert_eq!(
            stored.unwrap(),
            serde_json::json!(["o200k_base", "cl100k_base"])
        );
    }

    #[test]
    fn each_script_has_its_factor_and_a_mixed_text_is_between() {
        let factor = |text: &str| CLAUDE.factor(text);

        assert!((factor("Good evening.") - 1.15).abs() < 1e-9);
        assert!((factor("Добрыйвечер") - 1.7).abs() < 1e-9);
        assert!((factor("안녕하세요") - 1.7).abs() < 1e-9);
        assert!((factor("こんばんは今夜") - 1.1).abs() < 1e-9);
        assert!((factor("शुभसंध्या") - 2.5).abs() < 1e-9);
        let mixed = factor("Good evening, добрый вечер");
        assert!((1.3..1.6).contains(&mixed), "{mixed}");
    }

    #[test]
    fn an_exact_count_is_not_changed_and_others_are_rounded_up() {
        let text = "The rain has stopped.";
        let counted = tokens::count(text);

        assert_eq!(TokenFactors::default().count(text), counted);
        assert_eq!(TokenFactors::uniform(1.5).apply(text, 5), 8);
        assert_eq!(UNKNOWN.count(""), 0);
    }

    #[test]
    fn a_correction_stays_within_limits() {
        let low = UNKNOWN.corrected(0.1);
        let high = UNKNOWN.corrected(9.0);

        assert_eq!(
            (low, high),
            (TokenFactors::uniform(0.8), TokenFactors::uniform(3.0))
        );
        assert!((UNKNOWN.corrected(0.9).smallest() - 0.99).abs() < 1e-9);
    }
}
