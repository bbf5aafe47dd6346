//! Decides how a request to Anthropic's API asks for reasoning: in which form, which depends on the
//! generation of the model, and with which token limit.

use serde_json::{Value, json};

use crate::provider_options::ProviderOptions;
use crate::reasoning::effort::Effort;
use crate::request::Request;
use crate::role_alternation::AlternatingMessages;

/// The API requires a limit; every model supports this one.
const DEFAULT_MAX_TOKENS: u32 = 4_096;

/// The API rejects a smaller budget for reasoning, in tokens.
const MIN_BUDGET: u32 = 1_024;

/// The last minor version of the fourth generation that needs a budget for its reasoning, and that
/// accepts the beginning of its response.
const LAST_MINOR_OF_FIRST_MODELS: u32 = 5;

/// A higher number in the name of a model is a date, not a version.
const MAX_VERSION: u32 = 1_000_000;

/// The token limit of a request, and how the model reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinkingPlan {
    /// Includes the reasoning.
    pub max_tokens: u32,
    /// The field `thinking`; `None` if the model should not reason.
    pub field: Option<Value>,
    /// The effort in `output_config`, for models that decide themselves how much they reason.
    pub level: Option<&'static str>,
}

impl ThinkingPlan {
    /// Returns the plan for a request.
    pub fn new(request: &Request, options: &ProviderOptions, prompt: &AlternatingMessages) -> Self {
        // The API rejects a forced tool call together with thinking.
        let effort = options.effort(request);
        let effort = effort.filter(|it| *it > Effort::None && !request.requires_tool_call());
        let default = || effort.map_or(DEFAULT_MAX_TOKENS, |it| it.add_tokens(DEFAULT_MAX_TOKENS));
        let limit = options.token_limit(request).unwrap_or_else(default);
        let plan = |max_tokens, field, level| Self {
            max_tokens,
            field,
            level,
        };
        match effort {
            None => plan(limit, None, None),
            Some(effort) if !needs_budget(&request.model) => {
                let field = json!({ "type": "adaptive", "display": "summarized" });
                plan(limit, Some(field), effort.as_level())
            }
            Some(_) if prompt.is_answering_unexplained_calls() => plan(limit, None, None),
            Some(effort) => {
                // If the caller's limit includes the reasoning, half of it remains for the reply.
                let most = request.effort.map_or(u32::MAX, |_| limit / 2);
                let budget = effort.max_tokens().min(most).max(MIN_BUDGET);
                let max_tokens = match budget < limit {
                    true => limit,
                    false => limit.saturating_add(budget),
                };
                let field = json!({ "type": "enabled", "budget_tokens": budget });
                plan(max_tokens, Some(field), None)
            }
        }
    }
}

/// Returns the lowest limit that leaves a token for the reply after the smallest budget.
pub fn min_output_tokens(request: &Request) -> u32 {
    let reasons = request.effort.is_some_and(|it| it != Effort::None);
    match reasons && needs_budget(&request.model) {
        true => MIN_BUDGET + 1,
        false => 1,
    }
}

/// Returns whether a model reasons only within a given budget: versions 3.7 to 4.5. Later ones, and
/// models of unknown names, decide themselves.
fn needs_budget(model: &str) -> bool {
    if model.contains("claude-3-7") {
        return true;
    }
    is_early_fourth_generation(model)
}

/// Returns whether a model continues the beginning of its response: versions up to 4.5. The API
/// rejects the request for later ones.
pub fn accepts_prefill(model: &str) -> bool {
    let is_older = ["claude-3-", "claude-2", "claude-instant"];
    is_older.iter().any(|it| model.contains(it)) || is_early_fourth_generation(model)
}

/// Returns whether the version of a model is from 4.0 to 4.5.
fn is_early_fourth_generation(model: &str) -> bool {
    let families = ["claude-opus-", "claude-sonnet-", "claude-haiku-"];
    let version = families.iter().find_map(|it| model.split_once(it));
    let Some((_, version)) = version else {
        return false;
    };
    let mut numbers = version.split('-').map(|it| it.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    let is_old = |it: u32| it <= LAST_MINOR_OF_FIRST_MODELS || it > MAX_VERSION;
    major == Some(4) && minor.is_none_or(is_old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ThinkingPlan, accepts_prefill, needs_budget};
    use crate::provider_options::ProviderOptions;
    use crate::reasoning::effort::Effort;
    use crate::request::Request;
    use crate::role_alternation::AlternatingMessages;

    fn plan(model: &str, effort: Effort, max_tokens: Option<u32>) -> ThinkingPlan {
        let request = Request {
            model: model.to_owned(),
            max_tokens,
            effort: Some(effort),
            ..Request::default()
        };
        let prompt = AlternatingMessages::from_messages(&request);
        ThinkingPlan::new(&request, &ProviderOptions::default(), &prompt)
    }

    #[test]
    fn only_models_up_to_version_4_5_accept_the_beginning_of_their_response() {
        for model in [
            "claude-3-haiku-20240307",
            "claude-3-7-sonnet-latest",
            "claude-sonnet-4-20250514",
            "claude-opus-4-5",
        ] {
            assert!(accepts_prefill(model), "{model}");
        }
        for model in [
            "claude-opus-4-6",
            "claude-sonnet-4-6",
            "claude-sonnet-5",
            "new",
        ] {
            assert!(!accepts_prefill(model), "{model}");
        }
    }

    #[test]
    fn the_generation_of_a_model_decides_the_form() {
        for model in [
            "claude-3-7-sonnet-latest",
            "claude-opus-4-20250514",
            "claude-sonnet-4-5",
            "anthropic/claude-haiku-4-5-20251001",
        ] {
            assert!(needs_budget(model), "{model}");
        }
        for model in ["claude-opus-4-6", "claude-sonnet-5", "claude-next", "m"] {
            assert!(!needs_budget(model), "{model}");
        }
    }

    #[test]
    fn a_budget_leaves_room_for_the_reply() {
        for (effort, limit, budget, max_tokens) in [
            (Effort::High, Some(20_000), 10_000, 20_000),
            (Effort::High, Some(1), 1_024, 1_025),
            (Effort::Low, None, 1_024, 5_120),
        ] {
            let plan = plan("claude-sonnet-4-5", effort, limit);

            let field = json!({ "type": "enabled", "budget_tokens": budget });
            assert_eq!((plan.max_tokens, plan.field), (max_tokens, Some(field)));
        }
    }

    #[test]
    fn an_adaptive_model_gets_a_level_and_none_disables_reasoning() {
        let high = plan("claude-opus-4-6", Effort::Xhigh, Some(300));
        assert_eq!((high.max_tokens, high.level), (300, Some("high")));
        let none = plan("claude-opus-4-6", Effort::None, None);
        assert_eq!(
            (none.max_tokens, none.field, none.level),
            (4_096, None, None)
        );
    }
}
