//! Decides whether a prompt is sent as one text, and with which templates.

use llm::provider_options::DETECTED;
use tavern::import_warning::ImportWarning;
use tavern::instruct::context_template::ContextTemplate;
use tavern::instruct::instruct_template::InstructTemplate;
use tavern::instruct::text_templates::TextTemplates;
use tavern::instruct::{embedded, template_choice};
use tavern::presets::complete_preset::NamesBehavior;
use tavern::presets::message_formats::ExampleFormat;

use crate::prompt::context::{PromptContext, PromptMember};
use crate::providers::detected::detected_facts::DETECTED_TEMPLATE;
use crate::providers::provider;
use crate::spaces::space::CardHandlingMode;

/// Makes the prompt of a context one text, with the templates of its preset or those for its model, if
/// its provider completes texts. A character that `calls_tools` gets messages all the same.
pub fn apply(context: &mut PromptContext, provider: &provider::Model, calls_tools: bool) {
    if !provider.kind.completes_text(&provider.settings) {
        return;
    }
    let speaker = context.find_speaker();
    if calls_tools && speaker.is_some_and(PromptMember::is_character) {
        return warn_of_tools(context);
    }
    let templates = choose(context, provider);
    set(context, templates);
}

/// Makes the prompt of a context one text. The texts of its preset that exist only for chats are
/// replaced by those of the templates, and pictures by their descriptions.
pub fn set(context: &mut PromptContext, templates: TextTemplates) {
    let preset = &mut context.preset;
    let texts = &mut preset.texts;
    texts
        .new_chat_prompt
        .clone_from(&templates.context.chat_start);
    texts
        .new_group_chat_prompt
        .clone_from(&templates.context.chat_start);
    texts
        .new_example_chat_prompt
        .clone_from(&templates.context.example_separator);
    // The text ends with the name of the speaker.
    texts.group_nudge_prompt.clear();
    // The story string has the words around these.
    texts.scenario_format = "{{scenario}}".to_owned();
    preset.names = NamesBehavior::Usual;
    preset.example_format = ExampleFormat::Block;
    if context.card_handling == CardHandlingMode::Swap || !context.is_group() {
        context.preset.texts.personality_format = "{{personality}}".to_owned();
    }
    context.picture_cost = None;
    context.templates = Some(templates);
}

/// Records that a prompt is sent as a chat although its provider completes texts.
fn warn_of_tools(context: &mut PromptContext) {
    let sentence = "The space has tools, so chat completion is used instead of text completion.";
    let warning = ImportWarning::new("text_completion_tools", sentence);
    context.warnings.push(warning);
}

fn choose(context: &mut PromptContext, provider: &provider::Model) -> TextTemplates {
    let model = &provider.model;
    let warnings = &mut context.warnings;
    let instruct = match context.preset.instruct.clone() {
        Some(instruct) => {
            warnings.extend(other_model_warning(&instruct, model));
            instruct
        }
        None => {
            let reported = provider.settings[DETECTED][DETECTED_TEMPLATE].as_str();
            let known = reported.and_then(embedded::instruct);
            let known = known.or_else(|| {
                let name = template_choice::by_model(model)?;
                embedded::instruct(name)
            });
            known.unwrap_or_else(|| {
                warnings.push(unknown_model_warning(model));
                embedded::instruct(embedded::DEFAULT).unwrap_or_default()
            })
        }
    };
    let usual = embedded::context(&instruct.name).or_else(|| embedded::context(embedded::DEFAULT));
    let usual = usual.unwrap_or_default();
    let context = match context.preset.context.clone() {
        // A file of an older version may have separators alone.
        Some(own) if own.story_string.trim().is_empty() => ContextTemplate {
            story_string: usual.story_string,
            ..own
        },
        Some(own) => own,
        None => usual,
    };
    TextTemplates { instruct, context }
}

fn unknown_model_warning(model: &str) -> ImportWarning {
    let name = embedded::DEFAULT;
    let sentence =
        format!("No instruct template is known for the model “{model}”, so {name} is used.");
    ImportWarning::new("template_unknown_model", sentence)
        .with("model", model)
        .with("template", name)
}

/// Returns a warning if a template was made for other models.
fn other_model_warning(instruct: &InstructTemplate, model: &str) -> Option<ImportWarning> {
    let stated = instruct.activation_regex.trim();
    if stated.is_empty() || template_choice::matches_model(stated, model) {
        return None;
    }
    let name = &instruct.name;
    let sentence =
        format!("The instruct template “{name}” was made for other models than “{model}”.");
    let warning = ImportWarning::new("template_other_model", sentence);
    Some(warning.with("template", name.as_str()).with("model", model))
}
