//! Builds the layout of a text from the templates of a prompt: expands their macros, and collects the
//! names that the text contains.

use tavern::instruct::control_sequences::ControlSequences;
use tavern::instruct::rendering::TextLayout;
use tavern::instruct::story_string::StoryString;
use tavern::instruct::text_templates::TextTemplates;
use tavern::macros::bindings::Bindings;
use tavern::macros::card_use::CardUse;
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::expand;

use crate::prompt::context::{PromptContext, PromptMember};
use crate::spaces::membership::MembershipKind;

/// The layout of a text, and where its texts come from.
pub struct ExpandedLayout {
    pub layout: TextLayout,
    pub card_use: CardUse,
    /// Whether the summary was inserted into it, which is not stored.
    pub has_summary: bool,
}

/// Expands the templates of a context and gives their macros their values; `None`: the prompt is sent
/// as messages.
pub fn expand_templates(
    context: &PromptContext,
    bindings: &Bindings,
    environment: &mut MacroEnvironment,
) -> Option<ExpandedLayout> {
    let templates = context.templates.as_ref()?;
    let expanded = expand_sequences(templates, bindings, environment);
    // The story string may contain the macros of the templates.
    environment.templates = Some(expanded.clone());
    environment.set_field("Story string");
    // Validated when it was stored.
    let story = StoryString::parse(&templates.context.story_string).unwrap_or_default();
    let shared: &MacroEnvironment = environment;
    let story = story.map_texts(&|text| expand(text, bindings, shared));
    let layout = TextLayout {
        control_sequences: ControlSequences::of_template(&templates.instruct),
        ..layout_of(context, expanded, story, bindings)
    };
    Some(ExpandedLayout {
        layout,
        card_use: environment.take_card_use(),
        has_summary: environment.take_summary_use(),
    })
}

/// Expands the macros of templates, except those of the story string.
fn expand_sequences(
    templates: &TextTemplates,
    bindings: &Bindings,
    environment: &MacroEnvironment,
) -> TextTemplates {
    let mut expanded = templates.clone();
    let expand = |text: &str| expand(text, bindings, environment);
    environment.set_field("Instruct template");
    if expanded.instruct.expands_macros {
        for text in expanded.instruct.macro_texts_mut() {
            *text = expand(text);
        }
    }
    environment.set_field("Context template");
    let context = &mut expanded.context;
    for text in [&mut context.example_separator, &mut context.chat_start] {
        *text = expand(text);
    }
    expanded
}

fn layout_of(
    context: &PromptContext,
    templates: TextTemplates,
    story: StoryString,
    bindings: &Bindings,
) -> TextLayout {
    let is_user = context.is_impersonation();
    let speaker = context.find_speaker().map_or("", |it| it.name.as_str());
    let members = context.members.iter();
    let (people, characters): (Vec<_>, Vec<_>) =
        members.partition(|it| it.kind == MembershipKind::Human);
    let personas = context.personas.iter().map(|it| &it.name);
    let users = people.iter().map(|it| &it.name).chain(personas);
    TextLayout {
        control_sequences: ControlSequences::default(),
        instruct: templates.instruct,
        context: templates.context,
        story,
        is_group: context.is_group() || context.has_several_users(),
        speaker: match is_user {
            true => context.user.name.clone(),
            false => speaker.to_owned(),
        },
        is_user,
        user: bindings.user.clone(),
        character: bindings.character.clone(),
        users: distinct([&context.user.name].into_iter().chain(users)),
        characters: distinct(characters.iter().flat_map(|it| names_of(it))),
    }
}

fn names_of(member: &PromptMember) -> [&str; 2] {
    [&member.name, member.display_name()]
}

/// Returns each name once; empty ones are left out.
fn distinct<S: AsRef<str>>(names: impl Iterator<Item = S>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let name = name.as_ref();
        if !name.is_empty() && !all.iter().any(|it| it == name) {
            all.push(name.to_owned());
        }
    }
    all
}
