//! The templates that are built in, for the formats that the makers of models publish.

use crate::instruct::context_template::ContextTemplate;
use crate::instruct::instruct_template::InstructTemplate;

/// The name of the template for unknown models.
pub const DEFAULT: &str = "ChatML";

/// The names of all templates.
pub const NAMES: [&str; 7] = [
    DEFAULT,
    "Llama 3",
    "Mistral V3",
    "Mistral Tekken",
    "Gemma",
    "Alpaca",
    "Vicuna",
];

/// The story string of all templates.
const STORY_STRING: &str = "\
{{#if anchorBefore}}{{anchorBefore}}
{{/if}}{{#if system}}{{system}}
{{/if}}{{#if wiBefore}}{{wiBefore}}
{{/if}}{{#if persona}}{{persona}}
{{/if}}{{#if description}}{{description}}
{{/if}}{{#if personality}}Personality of {{char}}: {{personality}}
{{/if}}{{#if scenario}}Scenario: {{scenario}}
{{/if}}{{#if wiAfter}}{{wiAfter}}
{{/if}}{{#if anchorAfter}}{{anchorAfter}}
{{/if}}{{trim}}";

/// Returns the instruct template with this name.
pub fn instruct(name: &str) -> Option<InstructTemplate> {
    let template = match name {
        "ChatML" => InstructTemplate {
            stop_sequence: own("<|im_end|>"),
            story_string_prefix: own("<|im_start|>system"),
            story_string_suffix: own("<|im_end|>\n"),
            ..with_roles(
                [
                    "<|im_start|>user",
                    "<|im_start|>assistant",
                    "<|im_start|>system",
                ],
                ["<|im_end|>\n"; 3],
            )
        },
        "Llama 3" => InstructTemplate {
            stop_sequence: own("<|eot_id|>"),
            story_string_prefix: own("<|start_header_id|>system<|end_header_id|>\n\n"),
            story_string_suffix: own("<|eot_id|>"),
            wrap: false,
            ..with_roles(
                [
                    "<|start_header_id|>user<|end_header_id|>\n\n",
                    "<|start_header_id|>assistant<|end_header_id|>\n\n",
                    "<|start_header_id|>system<|end_header_id|>\n\n",
                ],
                ["<|eot_id|>"; 3],
            )
        },
        "Mistral V3" => InstructTemplate {
            story_string_prefix: own("[INST] "),
            story_string_suffix: own("[/INST] Understood.</s>"),
            ..mistral("[INST] ", " ")
        },
        "Mistral Tekken" => InstructTemplate {
            story_string_prefix: own("[INST]"),
            story_string_suffix: own("[/INST]Understood.</s>"),
            ..mistral("[INST]", "")
        },
        "Gemma" => InstructTemplate {
            stop_sequence: own("<end_of_turn>"),
            story_string_prefix: own("<start_of_turn>user"),
            story_string_suffix: own("<end_of_turn>\n"),
            // The format has no role for system messages.
            system_same_as_user: true,
            ..with_roles(
                ["<start_of_turn>user", "<start_of_turn>model", ""],
                ["<end_of_turn>\n", "<end_of_turn>\n", ""],
            )
        },
        "Alpaca" => with_roles(
            ["### Instruction:", "### Response:", "### Input:"],
            ["\n\n"; 3],
        ),
        "Vicuna" => InstructTemplate {
            stop_sequence: own("</s>"),
            wrap: false,
            story_string_suffix: own("\n\n"),
            ..with_roles(
                ["USER: ", "ASSISTANT: ", "SYSTEM: "],
                ["\n", "</s>\n", "\n"],
            )
        },
        _ => return None,
    };
    Some(InstructTemplate {
        name: own(name),
        ..template
    })
}

/// Returns the context template with this name; all have the same story string. Formats without special
/// tokens separate example messages with a line.
pub fn context(name: &str) -> Option<ContextTemplate> {
    let separator = match name {
        "Alpaca" | "Vicuna" => "***",
        _ if NAMES.contains(&name) => "",
        _ => return None,
    };
    Some(ContextTemplate {
        name: own(name),
        story_string: own(STORY_STRING),
        example_separator: own(separator),
        chat_start: own(separator),
        ..ContextTemplate::default()
    })
}

fn mistral(input: &str, output: &str) -> InstructTemplate {
    InstructTemplate {
        stop_sequence: own("</s>"),
        wrap: false,
        system_same_as_user: true,
        ..with_roles([input, output, ""], ["[/INST]", "</s>", ""])
    }
}

/// Creates a template from the sequences before and after messages of users, the model and the system.
fn with_roles(
    [input, output, system]: [&str; 3],
    [input_suffix, output_suffix, system_suffix]: [&str; 3],
) -> InstructTemplate {
    InstructTemplate {
        input_sequence: own(input),
        output_sequence: own(output),
        system_sequence: own(system),
        input_suffix: own(input_suffix),
        output_suffix: own(output_suffix),
        system_suffix: own(system_suffix),
        ..InstructTemplate::default()
    }
}

fn own(text: &str) -> String {
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{NAMES, context, instruct};
    use crate::instruct::story_string::StoryString;
    use crate::instruct::template_limits;

    #[test]
    fn every_template_is_valid() {
        for name in NAMES {
            let (instruct, context) = (instruct(name).unwrap(), context(name).unwrap());
            assert!(StoryString::parse(&context.story_string).is_ok());
            assert_eq!(template_limits::check_instruct(&instruct), Ok(()), "{name}");
            assert_eq!(template_limits::check_context(&context), Ok(()), "{name}");
        }
        assert!(instruct("Other").is_none() && context("Other").is_none());
    }
}
