//! The models that think before they answer although nobody asks them to, known by their names. Their
//! thoughts count toward the limit of tokens, so that a limit for the reply alone would end it early.

/// The tokens for the thoughts, in addition to those of the reply.
const THINKING_TOKENS: u32 = 4_096;
/// Parts of their names, compared in lower case with `.`, `_`, `:`, `/` and blanks as `-`.
const NAMES: &[&str] = &[
    "deepseek-reasoner",
    "-r1",
    "qwq",
    "qwen3",
    "gemini-2-5",
    "gemini-3",
    "gpt-5",
    "gpt-oss",
    "magistral",
    "glm-4-5",
    "glm-4-6",
    "glm-4-7",
    "glm-5",
    "grok-3-mini",
    "grok-4",
    "minimax-m",
    "seed-oss",
    "thinking",
];
/// Whole words of their names.
const WORDS: &[&str] = &["o1", "o3", "o4", "r1"];
/// Parts of the names of models that do not think although another part suggests it.
const OTHERS: &[&str] = &[
    "gpt-5-chat",
    "non-reasoning",
    "qwen3-coder",
    "qwen3-instruct",
    "instruct-2507",
    "embed",
];

/// Returns how many tokens the limit of a reply is raised for the thoughts of this model; 0 if it does
/// not think unasked.
pub fn extra_tokens(model: &str) -> u32 {
    let name = model.to_lowercase().replace(['.', '_', ':', ' ', '/'], "-");
    let has = |part: &&str| name.contains(*part);
    let thinks = NAMES.iter().any(has) || name.split('-').any(|it| WORDS.contains(&it));
    match thinks && !OTHERS.iter().any(has) {
        true => THINKING_TOKENS,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::extra_tokens;

    #[test]
    fn models_that_think_get_more_tokens() {
        for model in [
            "o3-mini",
            "openai/gpt-5.2",
            "deepseek-r1:8b",
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
            "deepseek-reasoner",
            "qwen3:8b",
            "gemini-2.5-pro",
            "moonshotai/kimi-k2-thinking",
            "x-ai/grok-4",
        ] {
            assert_eq!(extra_tokens(model), 4_096, "{model}");
        }
        for model in [
            "",
            "demo",
            "gpt-4o",
            "gpt-5-chat-latest",
            "claude-sonnet-4-5",
            "gemini-2.0-flash",
            "qwen2.5:7b",
            "qwen3-30b-a3b-instruct-2507",
            "deepseek-chat",
            "llama-3.3-70b",
            "foo1-bar",
        ] {
            assert_eq!(extra_tokens(model), 0, "{model}");
        }
    }
}
