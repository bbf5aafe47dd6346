//! The context window of a model, in tokens: what a list of models states, or what is known about the
//! models of a vendor.

use serde_json::Value;

use crate::registry::ProviderKind;

/// Fields in which lists of models state the window, in order of precedence: LM Studio (what is
/// loaded, before what is possible), llama.cpp, vLLM, OpenRouter and Together, Mistral, Gemini, Groq.
const FIELDS: [&str; 7] = [
    "/loaded_context_length",
    "/meta/n_ctx",
    "/max_model_len",
    "/context_length",
    "/max_context_length",
    "/inputTokenLimit",
    "/context_window",
];
/// Values outside of it are errors of a list.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 512..=10_000_000;

/// The beginning of the names of a vendor's models, the longest first, and their windows.
type Windows = &'static [(&'static str, u32)];

const OPENAI: Windows = &[
    ("gpt-5-chat", 128_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-4o", 128_000),
    ("chatgpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4", 8_192),
    ("gpt-3.5-turbo-instruct", 4_096),
    ("gpt-3.5-turbo", 16_385),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];
const ANTHROPIC: Windows = &[
    ("claude-instant", 100_000),
    ("claude-2.0", 100_000),
    ("claude", 200_000),
];
const GEMINI: Windows = &[
    ("gemini-1.0", 30_720),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini", 1_048_576),
    ("gemma-3", 32_768),
];
const DEEPSEEK: Windows = &[("deepseek", 128_000)];
const XAI: Windows = &[
    ("grok-2-vision", 32_768),
    ("grok-2", 131_072),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
];

/// Returns the window that an entry of a list of models states.
pub fn stated(entry: &Value) -> Option<u32> {
    let field = |it: &str| entry.pointer(it)?.as_u64();
    let stated = FIELDS.into_iter().find_map(field);
    let stated = stated.filter(|it| PLAUSIBLE.contains(it))?;
    u32::try_from(stated).ok()
}

/// Returns the window of a model that its vendor serves. A server with other models of these names,
/// for example a local one, may have less memory.
pub fn of_vendor(kind: ProviderKind, host: &str, model: &str) -> Option<u32> {
    let windows = match (kind, host) {
        (ProviderKind::Openai, "" | "api.openai.com")
        | (ProviderKind::OpenaiCompatible, "api.openai.com") => OPENAI,
        (ProviderKind::Anthropic, "" | "api.anthropic.com") => ANTHROPIC,
        (ProviderKind::Gemini, "" | "generativelanguage.googleapis.com") => GEMINI,
        (ProviderKind::OpenaiCompatible, "api.deepseek.com") => DEEPSEEK,
        (ProviderKind::OpenaiCompatible, "api.x.ai") => XAI,
        _ => return None,
    };
    let model = model.to_lowercase();
    let name = model.trim_start_matches("models/");
    let found = windows.iter().find(|(start, _)| name.starts_with(start));
    found.map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ANTHROPIC, DEEPSEEK, GEMINI, OPENAI, XAI, of_vendor, stated};
    use crate::registry::ProviderKind;

    #[test]
    fn lists_state_windows_in_several_forms() {
        for (entry, window) in [
            (json!({"context_length": 32_768}), Some(32_768)),
            (json!({"max_model_len": 16_384}), Some(16_384)),
            (json!({"inputTokenLimit": 1_048_576}), Some(1_048_576)),
            (
                json!({"meta": {"n_ctx": 4_096, "n_ctx_train": 131_072}}),
                Some(4_096),
            ),
            (json!({"meta": {"n_ctx_train": 131_072}}), None),
            (
                json!({"max_context_length": 131_072, "loaded_context_length": 8_192}),
                Some(8_192),
            ),
            (json!({"context_window": 131_072}), Some(131_072)),
            (json!({"context_length": 0}), None),
            (json!({"context_length": -5}), None),
            (json!({"context_length": "8192"}), None),
            (json!({"context_length": 99_000_000_000_u64}), None),
            (json!({}), None),
            (json!("m"), None),
        ] {
            assert_eq!(stated(&entry), window, "{entry}");
        }
    }

    #[test]
    fn the_models_of_vendors_are_known_by_their_names() {
        for (kind, host, model, window) in [
            (ProviderKind::Openai, "", "gpt-4o-mini", Some(128_000)),
            (ProviderKind::Openai, "", "gpt-4", Some(8_192)),
            (
                ProviderKind::Openai,
                "api.openai.com",
                "GPT-5.2",
                Some(400_000),
            ),
            (ProviderKind::Openai, "proxy.example", "gpt-4o", None),
            (ProviderKind::Openai, "", "unheard-of", None),
            (
                ProviderKind::Anthropic,
                "",
                "claude-sonnet-4-5",
                Some(200_000),
            ),
            (
                ProviderKind::Gemini,
                "",
                "models/gemini-2.5-flash",
                Some(1_048_576),
            ),
            (
                ProviderKind::OpenaiCompatible,
                "api.deepseek.com",
                "deepseek-chat",
                Some(128_000),
            ),
            (
                ProviderKind::OpenaiCompatible,
                "127.0.0.1",
                "deepseek-r1",
                None,
            ),
            (ProviderKind::Ollama, "127.0.0.1", "gemma3:12b", None),
            (ProviderKind::Demo, "", "demo", None),
        ] {
            assert_eq!(
                of_vendor(kind, host, model),
                window,
                "{kind} {host} {model}"
            );
        }
    }

    #[test]
    fn a_longer_name_is_listed_before_a_shorter_one() {
        for windows in [OPENAI, ANTHROPIC, GEMINI, DEEPSEEK, XAI] {
            for (at, (later, _)) in windows.iter().enumerate() {
                let hides = |it: &&(&str, u32)| later.starts_with(it.0);
                let hidden_by = windows[..at].iter().find(hides);
                assert_eq!(hidden_by, None, "{later}");
            }
        }
    }
}
