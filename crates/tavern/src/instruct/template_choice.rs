//! Chooses an embedded template by the chat template that a model server reports, or by the name of
//! the model, and checks whether a template was made for a model.

use crate::lorebook::scan_budget::MAX_PATTERN_STEPS;
use crate::pattern::js_pattern::JsPattern;
use crate::pattern::matcher::Matcher;
use crate::pattern::pattern_text::PatternText;

/// Parts of the names of models, and their template. The first match counts. Names are compared in lower
/// case, without `-`, `_`, `.`, `:` and blanks.
const BY_MODEL: [(&str, &str); 30] = [
    ("vicuna", "Vicuna"),
    ("alpaca", "Alpaca"),
    ("mythomax", "Alpaca"),
    ("chatml", "ChatML"),
    ("hermes", "ChatML"),
    ("dolphin", "ChatML"),
    ("qwen", "ChatML"),
    ("qwq", "ChatML"),
    ("smollm", "ChatML"),
    ("internlm", "ChatML"),
    ("orca", "ChatML"),
    ("nemotron3", "ChatML"),
    ("llama33", "Llama 3"),
    ("llama32", "Llama 3"),
    ("llama31", "Llama 3"),
    ("llama3", "Llama 3"),
    ("l33", "Llama 3"),
    ("l31", "Llama 3"),
    ("l370b", "Llama 3"),
    ("l38b", "Llama 3"),
    ("nemo", "Mistral Tekken"),
    ("tekken", "Mistral Tekken"),
    ("pixtral", "Mistral Tekken"),
    ("ministral", "Mistral Tekken"),
    ("mistralsmall", "Mistral Tekken"),
    ("mistral", "Mistral V3"),
    ("mixtral", "Mistral V3"),
    ("codestral", "Mistral V3"),
    ("gemma", "Gemma"),
    ("yi34b", "ChatML"),
];

/// Returns the name of the template for a model; `None`: the model is unknown.
pub fn by_model(model: &str) -> Option<&'static str> {
    let separators = ['-', '_', '.', ':', ' '];
    let name: String = model.to_lowercase().replace(separators, "");
    let found = BY_MODEL.iter().find(|(part, _)| name.contains(part));
    found.map(|(_, template)| *template)
}

/// Returns the name of the template that a chat template of a model server corresponds to.
pub fn by_chat_template(chat_template: &str) -> Option<&'static str> {
    let has = |token: &str| chat_template.contains(token);
    if has("<|im_start|>") {
        Some("ChatML")
    } else if has("<|start_header_id|>") {
        Some("Llama 3")
    } else if has("<start_of_turn>") {
        Some("Gemma")
    } else if has("[SYSTEM_PROMPT]") {
        None
    } else if has("[INST] ") {
        Some("Mistral V3")
    } else if has("[INST]") {
        Some("Mistral Tekken")
    } else if has("### Instruction:") {
        Some("Alpaca")
    } else if has("USER:") && has("ASSISTANT:") {
        Some("Vicuna")
    } else {
        None
    }
}

/// Returns whether a regular expression, alone or as `/expression/flags`, matches the name of a model.
/// An invalid one matches nothing.
pub fn matches_model(stated: &str, model: &str) -> bool {
    let literal = stated.strip_prefix('/').and_then(|it| it.rsplit_once('/'));
    let (source, flags) = literal.unwrap_or((stated, "i"));
    let Ok(pattern) = JsPattern::compile(source, flags) else {
        return false;
    };
    let mut steps = MAX_PATTERN_STEPS;
    let found = Matcher::default().find(&pattern, &PatternText::new(model), &mut steps);
    matches!(found, Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::{BY_MODEL, by_chat_template, by_model, matches_model};
    use crate::instruct::embedded;

    #[test]
    fn a_known_model_has_the_template_of_its_family() {
        for (model, template) in [
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama 3"),
            ("L3.3-70B-Euryale", "Llama 3"),
            ("Mistral-Nemo-Instruct-2407", "Mistral Tekken"),
            ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral V3"),
            ("Mixtral_8x7B", "Mistral V3"),
            ("google/gemma-2-9b-it", "Gemma"),
            ("Qwen2.5-14B-Instruct", "ChatML"),
            ("NousResearch/Hermes-3-Llama-3.1-8B", "ChatML"),
            ("vicuna-13b-v1.5", "Vicuna"),
        ] {
            assert_eq!(by_model(model), Some(template), "{model}");
        }
        assert_eq!(by_model("some-model"), None);
    }

    #[test]
    fn a_template_may_name_its_models_by_a_regular_expression() {
        assert!(matches_model("/llama-?3/i", "Meta-Llama-3-8B"));
        assert!(!matches_model("/llama-?3/", "Meta-Llama-3-8B"));
        assert!(matches_model("llama-?3", "Meta-Llama-3-8B"));
        assert!(!matches_model("(", "("));
        assert!(!matches_model("(a+)+$", &("a".repeat(40) + "b")));
    }

    #[test]
    fn every_chosen_template_exists() {
        for (part, template) in BY_MODEL {
            assert!(embedded::instruct(template).is_some(), "{part}");
        }
    }

    #[test]
    fn a_chat_template_is_recognized_by_its_tokens() {
        for (text, template) in [
            ("{{'<|im_start|>' + role}}", Some("ChatML")),
            ("<|start_header_id|>", Some("Llama 3")),
            ("{{ '[INST] ' + content }}", Some("Mistral V3")),
            ("{{ '[INST]' + content }}", Some("Mistral Tekken")),
            ("[SYSTEM_PROMPT][INST]", None),
            ("<start_of_turn>", Some("Gemma")),
            ("", None),
        ] {
            assert_eq!(by_chat_template(text), template, "{text}");
        }
    }
}
