//! Which roles a model's chat template accepts, and in which order: as set, otherwise by the endpoint
//! and the name of the model.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How messages are arranged for the chat template of a model.
///
/// Each of the last three includes what the one before it does.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[schema(as = RoleHandling)]
#[serde(rename_all = "snake_case")]
pub enum RoleHandling {
    /// The server decides by the endpoint and the model.
    #[default]
    Auto,
    /// The messages as they were built.
    Native,
    /// Consecutive messages of one role become one message.
    MergeConsecutive,
    /// System messages after the first message of another role become user messages.
    NoSystemAfterFirst,
    /// The roles alternate; the first message after the system text and the last one are the user's.
    StrictAlternation,
}

/// The role in which the leading system text is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SystemRole)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// The server decides by the model.
    #[default]
    Auto,
    System,
    Developer,
    /// In front of the first user message.
    User,
}

/// Parts of the names of models whose templates require alternating roles.
const ALTERNATING: &[&str] = &[
    "mistral",
    "mixtral",
    "ministral",
    "magistral",
    "codestral",
    "pixtral",
    "gemma",
];
/// Parts of the names of models whose templates accept system text only at the beginning, with the
/// hosts of their vendors, whose APIs accept it everywhere.
const SYSTEM_FIRST: &[(&str, &[&str])] = &[
    ("qwen", &["aliyuncs.com"]),
    ("qwq", &["aliyuncs.com"]),
    ("glm", &["bigmodel.cn", "z.ai"]),
    ("phi", &[]),
];
/// Parts of the names of models that reject consecutive messages of one role.
const MERGED: &[&str] = &["deepseek-reasoner", "-r1"];

impl RoleHandling {
    /// Returns the handling for a model at a host: this value unless it is `Auto`.
    pub fn resolve(self, host: &str, model: &str) -> Self {
        if self != Self::Auto {
            return self;
        }
        let model = model.to_lowercase();
        let is_vendor = |hosts: &[&str]| hosts.iter().any(|it| is_host(host, it));
        let is_system_first = SYSTEM_FIRST
            .iter()
            .any(|(name, hosts)| has_name(&model, name) && !is_vendor(hosts));
        if is_host(host, "api.mistral.ai") || ALTERNATING.iter().any(|it| model.contains(it)) {
            Self::StrictAlternation
        } else if is_system_first {
            Self::NoSystemAfterFirst
        } else if MERGED.iter().any(|it| model.contains(it)) {
            Self::MergeConsecutive
        } else {
            Self::Native
        }
    }
}

impl SystemRole {
    /// Returns the role for a model: this value unless it is `Auto`.
    pub fn resolve(self, model: &str) -> Self {
        match self {
            Self::Auto if is_early_gemma(&model.to_lowercase()) => Self::User,
            Self::Auto => Self::System,
            set => set,
        }
    }
}

fn is_host(host: &str, domain: &str) -> bool {
    let subdomain = host.strip_suffix(domain);
    subdomain.is_some_and(|it| it.is_empty() || it.ends_with('.'))
}

/// Returns whether a name contains another one that no letter precedes: `dolphin` is no `phi`. The
/// prefix of `chatglm` belongs to the name.
fn has_name(model: &str, name: &str) -> bool {
    model.match_indices(name).any(|(at, _)| {
        let before = &model[..at];
        before.ends_with("chat") || !before.ends_with(|it: char| it.is_alphabetic())
    })
}

/// Returns whether a model is a Gemma of the first two generations, which have no system role:
/// `gemma-2-9b`, `gemma:7b`, but not `gemma-3-4b`. A number before `b` is a size.
fn is_early_gemma(model: &str) -> bool {
    let Some((_, rest)) = model.split_once("gemma") else {
        return false;
    };
    let rest = rest.trim_start_matches(['-', '_', ':', ' ']);
    let digits = rest.len()
        - rest
            .trim_start_matches(|it: char| it.is_ascii_digit())
            .len();
    let (number, unit) = rest.split_at(digits);
    let is_size = unit.starts_with('b');
    !number.parse::<u32>().is_ok_and(|it| it >= 3 && !is_size)
}

#[cfg(test)]
mod tests {
    use super::{RoleHandling, SystemRole};

    fn auto(host: &str, model: &str) -> RoleHandling {
        RoleHandling::Auto.resolve(host, model)
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        use RoleHandling::{MergeConsecutive, Native, NoSystemAfterFirst, StrictAlternation};
        for (host, model, expected) in [
            ("api.mistral.ai", "open-large", StrictAlternation),
            ("openrouter.ai", "mistralai/Mistral-Nemo", StrictAlternation),
            ("localhost", "mixtral:8x7b", StrictAlternation),
            ("localhost", "gemma-3-27b-it", StrictAlternation),
            ("localhost", "Qwen2.5-72B", NoSystemAfterFirst),
            ("dashscope.aliyuncs.com", "qwen-max", Native),
            ("fakealiyuncs.com", "qwen-max", NoSystemAfterFirst),
            ("localhost", "qwq-32b", NoSystemAfterFirst),
            ("localhost", "chatglm3-6b", NoSystemAfterFirst),
            ("api.z.ai", "glm-4.6", Native),
            ("localhost", "microsoft/phi-4", NoSystemAfterFirst),
            ("localhost", "dolphin-llama3", Native),
            ("api.deepseek.com", "deepseek-reasoner", MergeConsecutive),
            ("localhost", "deepseek-r1:70b", MergeConsecutive),
            ("localhost", "deepseek-r1-distill-qwen", NoSystemAfterFirst),
            ("localhost", "llama3.3", Native),
            ("", "", Native),
        ] {
            assert_eq!(auto(host, model), expected, "{host} {model}");
        }
    }

    #[test]
    fn a_setting_is_stronger_than_the_name_of_the_model() {
        let set = RoleHandling::Native.resolve("api.mistral.ai", "mistral-large");

        assert_eq!(set, RoleHandling::Native);
        assert_eq!(SystemRole::System.resolve("gemma-2-9b"), SystemRole::System);
    }

    #[test]
    fn only_early_gemmas_have_no_system_role() {
        for early in [
            "gemma-2-9b-it",
            "gemma:7b",
            "google/gemma-2b",
            "Gemma2",
            "codegemma",
        ] {
            assert_eq!(SystemRole::Auto.resolve(early), SystemRole::User, "{early}");
        }
        for other in [
            "gemma-3-4b-it",
            "gemma3:27b",
            "gemma-3n-e4b",
            "gemma4",
            "llama3",
        ] {
            assert_eq!(
                SystemRole::Auto.resolve(other),
                SystemRole::System,
                "{other}"
            );
        }
    }
}
