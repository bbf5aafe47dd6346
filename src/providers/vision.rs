//! Decides whether the model of a provider accepts pictures, and what a picture costs.
//!
//! The setting `vision` of the provider decides; if it is `auto`, what a call of this model has shown, then
//! what the provider's list of models states, then the model's name. An unknown model gets
//! no pictures.

use llm::provider_options::DETECTED;
use llm::registry::ProviderKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Whether pictures are sent to the models of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Vision)]
#[serde(rename_all = "snake_case")]
pub enum Vision {
    /// The server decides for each model.
    #[default]
    Auto,
    On,
    Off,
}

/// How a provider counts the tokens of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureCost {
    /// 85, and 170 per tile of 512 pixels after its scaling.
    OpenAi,
    /// Width × height / 750.
    Anthropic,
    /// 258 per tile.
    Gemini,
    /// Unknown: 1,000 per picture.
    Other,
}

/// Parts of the names of models that accept pictures. Compared in lower case with `.`, `_`, `:` and blanks as `-`.
const VISION_NAMES: &[&str] = &[
    "gpt-4o",
    "chatgpt-4o",
    "gpt-4-1",
    "gpt-4-5",
    "gpt-4-turbo",
    "gpt-5",
    "claude-3",
    "claude-opus",
    "claude-sonnet",
    "claude-haiku",
    "gemini",
    "gemma-3",
    "gemma3",
    "gemma-4",
    "gemma4",
    "llava",
    "moondream",
    "minicpm-v",
    "minicpm-o",
    "pixtral",
    "mistral-small-3",
    "mistral-small3",
    "mistral-medium-3",
    "mistral-large-3",
    "ministral-3",
    "llama-4",
    "llama4",
    "internvl",
    "molmo",
    "grok-4",
    "glm-4v",
    "glm-4-5v",
    "glm-4-6v",
    "kimi-vl",
    "kimi-k2-5",
    "phi-4-multimodal",
    "phi-3-5-vision",
    "phi-3-vision",
    "idefics",
    "smolvlm",
    "cogvlm",
    "deepseek-vl",
    "step-3",
    "nova-lite",
    "nova-pro",
    "-vl",
    "qwen-vl",
    "vision",
    "multimodal",
];
/// Whole words of the names of models that accept pictures.
const VISION_WORDS: &[&str] = &["o1", "o3", "o4"];
/// Parts of the names of models that accept only text although another part suggests pictures.
const TEXT_NAMES: &[&str] = &[
    "o1-mini",
    "o1-preview",
    "o3-mini",
    "gemma-3-1b",
    "gemma3-1b",
    "gemma-3-270m",
    "gemma3-270m",
    "embed",
    "audio",
    "tts",
    "transcribe",
    "whisper",
    "rerank",
];

/// Returns whether pictures are sent to a model of a provider of this kind with these settings.
pub fn has_vision(kind: ProviderKind, settings: &Value, model: &str) -> bool {
    let setting = serde_json::from_value(settings["vision"].clone()).unwrap_or_default();
    match setting {
        Vision::On => true,
        Vision::Off => false,
        Vision::Auto => detected(settings, model)
            .unwrap_or_else(|| kind != ProviderKind::Demo && is_vision_model(model)),
    }
}

/// Where the server has detected whether a model accepts pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisionSource {
    /// A call of the model.
    Call,
    /// The provider's list of models.
    List,
}

impl VisionSource {
    /// Returns the key in the detected facts under which it is recorded.
    pub fn key(self) -> &'static str {
        match self {
            Self::Call => "vision",
            Self::List => "listed_vision",
        }
    }
}

/// Returns what was detected about a model: by a call, else from the list.
fn detected(settings: &Value, model: &str) -> Option<bool> {
    let found = |it: VisionSource| settings[DETECTED][it.key()][model].as_bool();
    found(VisionSource::Call).or_else(|| found(VisionSource::List))
}

/// Returns whether a model with this name is known to accept pictures.
pub fn is_vision_model(model: &str) -> bool {
    let name = model.to_lowercase().replace(['.', '_', ':', ' ', '/'], "-");
    let has = |part: &&str| name.contains(*part);
    if TEXT_NAMES.iter().any(has) {
        return false;
    }
    VISION_NAMES.iter().any(has) || name.split('-').any(|it| VISION_WORDS.contains(&it))
}

impl PictureCost {
    /// Returns how providers of this kind count.
    pub fn of(kind: ProviderKind) -> Self {
        match kind {
            ProviderKind::Openai => Self::OpenAi,
            ProviderKind::Anthropic => Self::Anthropic,
            ProviderKind::Gemini => Self::Gemini,
            _ => Self::Other,
        }
    }

    /// Returns the number of tokens of a picture of this size.
    pub fn tokens(self, (width, height): (i64, i64)) -> i64 {
        let tiles = |side: i64, width: i64, height: i64| {
            ceil_div(width.max(1), side) * ceil_div(height.max(1), side)
        };
        match self {
            Self::OpenAi => {
                let (width, height) = scaled(width, height);
                85 + 170 * tiles(512, width, height)
            }
            Self::Anthropic => ceil_div(width * height, 750).max(1),
            Self::Gemini if width <= 384 && height <= 384 => 258,
            Self::Gemini => 258 * tiles(768, width, height),
            Self::Other => 1_000,
        }
    }
}

fn ceil_div(dividend: i64, divisor: i64) -> i64 {
    (dividend + divisor - 1) / divisor
}

/// Returns the size to which OpenAI scales a picture down: at most 2,048 pixels for the longer side and 768
/// for the shorter one.
fn scaled(width: i64, height: i64) -> (i64, i64) {
    let fit = |(width, height): (i64, i64), side: i64, most: i64| match side > most {
        true => (width * most / side, height * most / side),
        false => (width, height),
    };
    let (width, height) = fit((width, height), width.max(height), 2_048);
    fit((width, height), width.min(height), 768)
}

#[cfg(test)]
mod tests {
    use super::{PictureCost, is_vision_model};

    #[test]
    fn models_that_accept_pictures_are_known_by_their_names() {
        for model in [
            "gpt-4o-mini",
            "openai/gpt-4.1",
            "gpt-5.2",
            "o3",
            "o4-mini",
            "claude-3-haiku-20240307",
            "claude-sonnet-4-5",
            "anthropic/claude-opus-4.1",
            "gemini-2.5-flash",
            "gemma3:12b",
            "google/gemma-3-27b-it",
            "llava:13b",
            "qwen2.5vl-7b-vl",
            "Qwen/Qwen2.5-VL-72B-Instruct",
            "llama3.2-vision",
            "pixtral-12b",
            "mistral-small3.1",
        ] {
            assert!(is_vision_model(model), "{model}");
        }
        for model in [
            "",
            "gpt-3.5-turbo",
            "gpt-4",
            "o1-mini",
            "o3-mini",
            "claude-2.1",
            "llama-3.3-70b",
            "mistral-7b",
            "deepseek-chat",
            "qwen3:8b",
            "gemma3:1b",
            "phi-4",
            "command-r",
            "text-embedding-3-large",
            "gemini-embedding-001",
            "mythomax-l2-13b",
        ] {
            assert!(!is_vision_model(model), "{model}");
        }
    }

    #[test]
    fn a_picture_is_counted_as_the_provider_does() {
        for (cost, size, tokens) in [
            (PictureCost::OpenAi, (640, 480), 85 + 170 * 2),
            (PictureCost::OpenAi, (1_024, 1_024), 85 + 170 * 4),
            (PictureCost::OpenAi, (2_048, 4_096), 85 + 170 * 6),
            (PictureCost::Anthropic, (1_000, 1_000), 1_334),
            (PictureCost::Gemini, (384, 384), 258),
            (PictureCost::Gemini, (1_000, 700), 258 * 2),
            (PictureCost::Other, (2_048, 2_048), 1_000),
        ] {
            assert_eq!(cost.tokens(size), tokens, "{cost:?} {size:?}");
        }
    }
}
