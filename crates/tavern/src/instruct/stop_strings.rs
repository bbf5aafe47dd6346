//! Lists the texts that end the reply of a text completion, the most important ones first.

use base::prompt_role::PromptRole;

use crate::instruct::context_template::ContextTemplate;
use crate::instruct::instruct_template::{InstructTemplate, SequencePosition};

/// Returns the stop strings of a prompt, each once. `own` are those of the preset, `others` the names of
/// all other members and personas.
pub fn list(
    instruct: &InstructTemplate,
    context: &ContextTemplate,
    own: &[String],
    others: &[String],
) -> Vec<String> {
    let mut stops = Vec::new();
    let mut add = |stop: String| {
        if !stop.trim().is_empty() && !stops.contains(&stop) {
            stops.push(stop);
        }
    };
    add(instruct.stop_sequence.clone());
    own.iter().cloned().for_each(&mut add);
    if instruct.sequences_as_stop_strings {
        for (role, position) in [
            (PromptRole::User, SequencePosition::Middle),
            (PromptRole::User, SequencePosition::First),
            (PromptRole::User, SequencePosition::Last),
            (PromptRole::System, SequencePosition::Middle),
        ] {
            add(sequence_stop(instruct.prefix(role, position)));
        }
    }
    if context.names_as_stop_strings {
        others.iter().for_each(|it| add(format!("\n{it}:")));
    }
    if context.use_stop_strings {
        for text in [&context.chat_start, &context.example_separator] {
            if !text.trim().is_empty() {
                add(format!("\n{}", text.trim()));
            }
        }
    }
    if context.single_line {
        // Not blank for `add`, which ignores white space.
        stops.push("\n".to_owned());
    }
    stops
}

/// Returns the stop string for a sequence. A special token never occurs in a reply; any other sequence
/// may, within a line. A sequence with names is none.
fn sequence_stop(sequence: &str) -> String {
    let sequence = sequence.trim();
    if sequence.contains("{{") {
        return String::new();
    }
    match sequence.starts_with(['<', '[']) {
        _ if sequence.is_empty() => String::new(),
        true => sequence.to_owned(),
        false => format!("\n{sequence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::list;
    use crate::instruct::context_template::ContextTemplate;
    use crate::instruct::embedded;

    fn names() -> Vec<String> {
        ["Ann", "Cleo"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_stop_sequence_comes_first_and_the_names_last() {
        let instruct = embedded::instruct("ChatML").unwrap();
        let own = ["END".to_owned()];

        assert_eq!(
            list(&instruct, &ContextTemplate::default(), &own, &names()),
            [
                "<|im_end|>",
                "END",
                "<|im_start|>user",
                "<|im_start|>system",
                "\nAnn:",
                "\nCleo:"
            ]
        );
    }

    #[test]
    fn a_sequence_of_words_ends_a_reply_only_at_the_start_of_a_line() {
        let mut instruct = embedded::instruct("Alpaca").unwrap();
        let context = ContextTemplate {
            use_stop_strings: true,
            single_line: true,
            names_as_stop_strings: false,
            ..embedded::context("Alpaca").unwrap()
        };

        assert_eq!(
            list(&instruct, &context, &[], &names()),
            ["\n### Instruction:", "\n### Input:", "\n***", "\n"]
        );
        instruct.sequences_as_stop_strings = false;
        assert_eq!(list(&instruct, &context, &[], &names()), ["\n***", "\n"]);
    }
}
