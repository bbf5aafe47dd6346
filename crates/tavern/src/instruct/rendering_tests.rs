//! Tests of the rendered prompts: a group of three people and two characters in every embedded
//! template, as it is written by hand, and the settings of templates.

use base::prompt_role::PromptRole;

use super::{ExamplePart, TextLayout, TextLine, TextParts};
use crate::instruct::context_template::ContextTemplate;
use crate::instruct::control_sequences::ControlSequences;
use crate::instruct::embedded;
use crate::instruct::instruct_template::{InstructNames, InstructTemplate};
use crate::instruct::story_string::{StoryField, StoryString, StoryValues};

fn own(all: &[&str]) -> Vec<String> {
    all.iter().map(|it| (*it).to_owned()).collect()
}

fn layout_of(instruct: InstructTemplate, context: ContextTemplate) -> TextLayout {
    TextLayout {
        story: StoryString::parse(&context.story_string).unwrap(),
        instruct,
        context,
        is_group: true,
        speaker: "Elia".to_owned(),
        is_user: false,
        user: "Ann".to_owned(),
        character: "Elia".to_owned(),
        control_sequences: ControlSequences::default(),
        users: own(&["Ann", "Cleo", "Dov"]),
        characters: own(&["Bran", "Elia"]),
    }
}

fn layout(name: &str) -> TextLayout {
    let context = embedded::context(name).unwrap();
    layout_of(embedded::instruct(name).unwrap(), context)
}

fn line(role: PromptRole, name: &str, text: &str) -> TextLine {
    TextLine::Message {
        role,
        name: (!name.is_empty()).then(|| name.to_owned()),
        text: text.to_owned(),
    }
}

fn user(name: &str, text: &str) -> TextLine {
    line(PromptRole::User, name, text)
}

fn character(name: &str, text: &str) -> TextLine {
    line(PromptRole::Assistant, name, text)
}

fn system(text: &str) -> TextLine {
    line(PromptRole::System, "", text)
}

fn story() -> StoryValues {
    let values = [
        (StoryField::System, "Write the next reply of Elia."),
        (StoryField::Persona, "Ann is a smith."),
        (StoryField::Description, "Elia is an elf."),
        (StoryField::Scenario, "A tavern."),
        (StoryField::Char, "Elia"),
        (StoryField::User, "Ann"),
    ];
    values.map(|(field, text)| (field, text.to_owned())).into()
}

/// Three people and two characters, with a depth prompt in the chat and a nudge at its end.
fn group() -> TextParts {
    TextParts {
        story: story(),
        lines: vec![
            character("Bran", "Welcome."),
            user("Ann", "Hello."),
            user("Cleo", "Two ales."),
            system("Bran limps."),
            character("Bran", "Coming."),
            user("Dov", "And bread?"),
            system("[Write the next reply only as Elia.]"),
        ],
        ..TextParts::default()
    }
}

#[test]
fn chatml() {
    assert_eq!(
        layout("ChatML").render(&group()),
        "<|im_start|>system\n\
        Write the next reply of Elia.\n\
        Ann is a smith.\n\
        Elia is an elf.\n\
        Scenario: A tavern.<|im_end|>\n\
        <|im_start|>assistant\n\
        Bran: Welcome.<|im_end|>\n\
        <|im_start|>user\n\
        Ann: Hello.<|im_end|>\n\
        <|im_start|>user\n\
        Cleo: Two ales.<|im_end|>\n\
        <|im_start|>system\n\
        Bran limps.<|im_end|>\n\
        <|im_start|>assistant\n\
        Bran: Coming.<|im_end|>\n\
        <|im_start|>user\n\
        Dov: And bread?<|im_end|>\n\
        <|im_start|>system\n\
        [Write the next reply only as Elia.]<|im_end|>\n\
        <|im_start|>assistant\n\
        Elia:"
    );
}

#[test]
fn llama_3() {
    assert_eq!(
        layout("Llama 3").render(&group()),
        "<|start_header_id|>system<|end_header_id|>\n\n\
        Write the next reply of Elia.\nAnn is a smith.\nElia is an elf.\nScenario: A tavern.<|eot_id|>\
        <|start_header_id|>assistant<|end_header_id|>\n\nBran: Welcome.<|eot_id|>\
        <|start_header_id|>user<|end_header_id|>\n\nAnn: Hello.<|eot_id|>\
        <|start_header_id|>user<|end_header_id|>\n\nCleo: Two ales.<|eot_id|>\
        <|start_header_id|>system<|end_header_id|>\n\nBran limps.<|eot_id|>\
        <|start_header_id|>assistant<|end_header_id|>\n\nBran: Coming.<|eot_id|>\
        <|start_header_id|>user<|end_header_id|>\n\nDov: And bread?<|eot_id|>\
        <|start_header_id|>system<|end_header_id|>\n\n[Write the next reply only as Elia.]<|eot_id|>\
        <|start_header_id|>assistant<|end_header_id|>\n\nElia:"
    );
}

#[test]
fn mistral_v3() {
    assert_eq!(
        layout("Mistral V3").render(&group()),
        "[INST] Write the next reply of Elia.\nAnn is a smith.\nElia is an elf.\nScenario: A tavern.\
        [/INST] Understood.</s> Bran: Welcome.</s>[INST] Ann: Hello.[/INST][INST] Cleo: Two ales.[/INST]\
        [INST] Bran limps.[/INST] Bran: Coming.</s>[INST] Dov: And bread?[/INST]\
        [INST] [Write the next reply only as Elia.][/INST] Elia:"
    );
}

#[test]
fn mistral_tekken() {
    assert_eq!(
        layout("Mistral Tekken").render(&group()),
        "[INST]Write the next reply of Elia.\nAnn is a smith.\nElia is an elf.\nScenario: A tavern.\
        [/INST]Understood.</s>Bran: Welcome.</s>[INST]Ann: Hello.[/INST][INST]Cleo: Two ales.[/INST]\
        [INST]Bran limps.[/INST]Bran: Coming.</s>[INST]Dov: And bread?[/INST]\
        [INST][Write the next reply only as Elia.][/INST]Elia:"
    );
}

#[test]
fn gemma() {
    assert_eq!(
        layout("Gemma").render(&group()),
        "<start_of_turn>user\n\
        Write the next reply of Elia.\nAnn is a smith.\nElia is an elf.\nScenario: A tavern.<end_of_turn>\n\
        <start_of_turn>model\nBran: Welcome.<end_of_turn>\n\
        <start_of_turn>user\nAnn: Hello.<end_of_turn>\n\
        <start_of_turn>user\nCleo: Two ales.<end_of_turn>\n\
        <start_of_turn>user\nBran limps.<end_of_turn>\n\
        <start_of_turn>model\nBran: Coming.<end_of_turn>\n\
        <start_of_turn>user\nDov: And bread?<end_of_turn>\n\
        <start_of_turn>user\n[Write the next reply only as Elia.]<end_of_turn>\n\
        <start_of_turn>model\nElia:"
    );
}

#[test]
fn alpaca() {
    assert_eq!(
        layout("Alpaca").render(&group()),
        "Write the next reply of Elia.\nAnn is a smith.\nElia is an elf.\nScenario: A tavern.\n\
        ### Response:\nBran: Welcome.\n\n\
        ### Instruction:\nAnn: Hello.\n\n\
        ### Instruction:\nCleo: Two ales.\n\n\
        ### Input:\nBran limps.\n\n\
        ### Response:\nBran: Coming.\n\n\
        ### Instruction:\nDov: And bread?\n\n\
        ### Input:\n[Write the next reply only as Elia.]\n\n\
        ### Response:\nElia:"
    );
}

#[test]
fn vicuna() {
    assert_eq!(
        layout("Vicuna").render(&group()),
        "Write the next reply of Elia.\nAnn is a smith.\nElia is an elf.\nScenario: A tavern.\n\n\
        ASSISTANT: Bran: Welcome.</s>\n\
        USER: Ann: Hello.\n\
        USER: Cleo: Two ales.\n\
        SYSTEM: Bran limps.\n\
        ASSISTANT: Bran: Coming.</s>\n\
        USER: Dov: And bread?\n\
        SYSTEM: [Write the next reply only as Elia.]\n\
        ASSISTANT: Elia:"
    );
}

/// One person and one character, without a story.
fn pair() -> TextParts {
    TextParts {
        lines: vec![character("Bran", "Welcome."), user("Ann", "Hello.")],
        ..TextParts::default()
    }
}

#[test]
fn names_appear_as_the_template_says() {
    let render = |names_behavior, is_group| {
        let mut layout = layout("ChatML");
        (layout.instruct.names_behavior, layout.is_group) = (names_behavior, is_group);
        layout.render(&pair())
    };
    let named = "<|im_start|>assistant\nBran: Welcome.<|im_end|>\n<|im_start|>user\nAnn: Hello.<|im_end|>\n\
        <|im_start|>assistant\nElia:";
    let unnamed = "<|im_start|>assistant\nWelcome.<|im_end|>\n<|im_start|>user\nHello.<|im_end|>\n\
        <|im_start|>assistant\n";

    assert_eq!(render(InstructNames::Force, true), named);
    assert_eq!(render(InstructNames::Force, false), unnamed);
    assert_eq!(render(InstructNames::Always, false), named);
    assert_eq!(render(InstructNames::None, true), unnamed);
}

#[test]
fn the_end_has_no_space_that_belongs_to_the_next_token() {
    let mut vicuna = layout("Vicuna");
    vicuna.is_group = false;
    assert!(vicuna.render(&pair()).ends_with("Hello.\nASSISTANT:"));
    vicuna.context.always_force_name2 = true;
    assert!(vicuna.render(&pair()).ends_with("\nASSISTANT: Elia:"));
}

#[test]
fn the_reply_may_have_begun() {
    let continued = TextParts {
        prefill: Some("I am".to_owned()),
        ..pair()
    };
    let mut chatml = layout("ChatML");
    assert!(
        chatml
            .render(&continued)
            .ends_with("<|im_start|>assistant\nElia: I am")
    );
    chatml.is_group = false;
    assert!(
        chatml
            .render(&continued)
            .ends_with("<|im_start|>assistant\nI am")
    );
}

#[test]
fn an_impersonation_ends_with_the_sequence_of_a_user() {
    let mut chatml = layout("ChatML");
    (chatml.is_user, chatml.speaker) = (true, "Ann".to_owned());

    assert!(chatml.render(&pair()).ends_with("<|im_start|>user\nAnn:"));
}

#[test]
fn variants_replace_the_sequence_of_the_first_and_last_message() {
    let instruct = InstructTemplate {
        input_sequence: "U".to_owned(),
        output_sequence: "A".to_owned(),
        first_input_sequence: "U1".to_owned(),
        first_output_sequence: "A1".to_owned(),
        last_input_sequence: "U9".to_owned(),
        last_output_sequence: "A9".to_owned(),
        names_behavior: InstructNames::None,
        ..InstructTemplate::default()
    };
    let mut layout = layout_of(instruct, ContextTemplate::default());
    let mut parts = pair();
    parts
        .lines
        .extend([character("Bran", "Yes?"), user("Ann", "Bread.")]);

    assert_eq!(
        layout.render(&parts),
        "A1\nWelcome.\nU\nHello.\nA\nYes?\nU9\nBread.\nA9\n"
    );
    layout.instruct.user_alignment_message = "Begin.".to_owned();
    assert_eq!(
        layout.render(&parts),
        "U1\nBegin.\nA\nWelcome.\nU\nHello.\nA\nYes?\nU9\nBread.\nA9\n"
    );
    parts.lines.remove(0);
    assert!(layout.render(&parts).starts_with("U1\nHello.\n"));
}

#[test]
fn a_sequence_may_name_the_author() {
    let instruct = InstructTemplate {
        input_sequence: "[{{name}}]".to_owned(),
        output_sequence: "[{{name}}]".to_owned(),
        system_sequence: "[{{name}}]".to_owned(),
        names_behavior: InstructNames::None,
        ..InstructTemplate::default()
    };
    let mut parts = pair();
    parts.lines.push(system("Rain."));
    let mut layout = layout_of(instruct, ContextTemplate::default());

    assert_eq!(
        layout.render(&parts),
        "[Bran]\nWelcome.\n[Ann]\nHello.\n[System]\nRain.\n[Elia]\n"
    );
    layout.instruct.expands_macros = false;
    assert!(layout.render(&parts).starts_with("[{{name}}]\n"));
}

#[test]
fn example_messages_are_written_like_the_chat() {
    let parts = TextParts {
        examples: vec![
            ExamplePart::Other("Lore.".to_owned()),
            ExamplePart::Block("***\nAnn: Hi.\nElia: Hey.\nAll well?".to_owned()),
            ExamplePart::Block("***\nShe laughs often.".to_owned()),
        ],
        ..TextParts::default()
    };
    let mut alpaca = layout("Alpaca");

    assert_eq!(
        alpaca.render(&parts),
        "### Input:\nLore.\n\n***\n### Instruction:\nAnn: Hi.\n\n### Response:\nElia: Hey.\nAll well?\n\n\
        ***\nShe laughs often.\n### Response:\nElia:"
    );
    alpaca.instruct.skip_examples = true;
    assert!(
        alpaca
            .render(&parts)
            .contains("***\nAnn: Hi.\nElia: Hey.\nAll well?\n***\n")
    );
}

#[test]
fn texts_with_an_anchor_are_sent_even_if_the_story_string_has_none() {
    let context = ContextTemplate {
        story_string: "{{description}}\n".to_owned(),
        ..ContextTemplate::default()
    };
    let mut layout = layout_of(InstructTemplate::default(), context);
    layout.is_group = false;
    let mut parts = TextParts {
        story: story(),
        ..TextParts::default()
    };
    for (field, text) in [
        (StoryField::AnchorBefore, "First."),
        (StoryField::AnchorAfter, "Last."),
    ] {
        parts.story.insert(field, text.to_owned());
    }

    assert_eq!(layout.render(&parts), "First.\nElia is an elf.\nLast.\n");
    assert_eq!(
        layout.omitted_fields(&parts.story),
        [
            StoryField::System,
            StoryField::Scenario,
            StoryField::Persona
        ]
    );
}

#[test]
fn an_empty_story_has_no_sequences() {
    let rendered = layout("ChatML").render(&pair());

    assert!(
        rendered.starts_with("<|im_start|>assistant\nBran"),
        "{rendered}"
    );
}

#[test]
fn a_name_in_a_text_is_not_doubled() {
    let parts = TextParts {
        lines: vec![user("Ann", "Ann: Hello.")],
        ..TextParts::default()
    };

    assert!(
        layout("ChatML")
            .render(&parts)
            .contains("user\nAnn: Hello.")
    );
}
