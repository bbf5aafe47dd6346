//! How much a model should reason before it answers one request, as a named level and as a token budget
//! of the APIs.

use serde::{Deserialize, Serialize};

/// How much a model should reason. APIs with fewer levels receive the nearest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
}

impl Effort {
    /// Returns the name of the level in OpenAI's API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }

    /// Returns the name of the level for APIs that support only `low`, `medium` and `high`; `None` if the model
    /// should not reason.
    pub fn as_level(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Minimal | Self::Low => Some("low"),
            Self::Medium => Some("medium"),
            Self::High | Self::Xhigh => Some("high"),
        }
    }

    /// Returns the maximum number of reasoning tokens. The lowest is the minimum of Anthropic's API,
    /// the highest is the maximum of some Gemini models.
    pub fn max_tokens(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Minimal | Self::Low => 1_024,
            Self::Medium => 8_192,
            Self::High | Self::Xhigh => 24_576,
        }
    }

    /// Returns the token limit for a reply of at most `max_tokens` tokens and the reasoning before it.
    pub fn add_tokens(self, max_tokens: u32) -> u32 {
        max_tokens.saturating_add(self.max_tokens())
    }
}

#[cfg(test)]
mod tests {
    use super::Effort;

    #[test]
    fn a_level_that_an_api_lacks_becomes_the_nearest_one() {
        let levels = [
            (Effort::None, None),
            (Effort::Minimal, Some("low")),
            (Effort::Low, Some("low")),
            (Effort::Medium, Some("medium")),
            (Effort::High, Some("high")),
            (Effort::Xhigh, Some("high")),
        ];
        for (effort, level) in levels {
            assert_eq!(effort.as_level(), level, "{effort:?}");
        }
        assert_eq!(Effort::Low.add_tokens(u32::MAX), u32::MAX);
    }
}
