//! Text completion templates: what is read keeps the limits and is written as it was read, and a story
//! string is parsed or refused, and rendered without a change of its values.

use std::str;

use tavern::instruct::context_template::ContextTemplate;
use tavern::instruct::control_sequences::ControlSequences;
use tavern::instruct::instruct_template::InstructTemplate;
use tavern::instruct::story_string::{StoryField, StoryString, StoryValues};
use tavern::presets::preset_file;
use tavern::presets::preset_file::PresetFormat;

/// Contains no braces, so that no story string can begin with a part of it.
const VALUE: &str = "A value.";

/// Reads the bytes as a preset file, and as a story string.
pub fn check(data: &[u8]) {
    check_file(data);
    if let Ok(text) = str::from_utf8(data) {
        check_story(text);
    }
}

fn check_file(data: &[u8]) {
    let Ok(imported) = preset_file::read(data) else {
        return;
    };
    let (document, origin) = (&imported.document, imported.origin.as_ref());
    let instruct = serde_json::from_value::<InstructTemplate>(document["instruct"].clone());
    if let Ok(instruct) = instruct {
        let sequences = ControlSequences::of_template(&instruct);
        let mut text = instruct.sequences().concat();
        sequences.remove_from(&mut text);
        assert_eq!(sequences.remove_from(&mut text), 0);
    }
    if let Ok(context) = serde_json::from_value::<ContextTemplate>(document["context"].clone()) {
        assert!(StoryString::parse(&context.story_string).is_ok());
    }
    let file = preset_file::write(PresetFormat::Own, "Name", document, origin).to_string();
    let back = preset_file::read(file.as_bytes()).expect("a written preset is valid");
    assert_eq!(back.document, imported.document);
}

fn check_story(text: &str) {
    let Ok(story) = StoryString::parse(text) else {
        return;
    };
    let same = story.map_texts(&str::to_owned);
    assert_eq!(same, story);
    let values = StoryValues::from([(StoryField::Description, VALUE.to_owned())]);
    let rendered = story.render(&values);
    assert!(rendered.len() <= text.len() * VALUE.len());
    if !text.contains("{{") {
        assert_eq!(rendered, text);
    }
}
