//! Renders the blocks of a prompt to one text, and fits it into the context window: its tokens are
//! those of the final text.
//!
//! **Invariant:** the texts of people, cards and models contain no control sequences of the template.

use serde::{Deserialize, Serialize};
use tavern::import_warning::ImportWarning;
use tavern::instruct::rendering::{ExamplePart, TextLayout, TextLine, TextParts};
use tavern::instruct::stop_strings;
use tavern::instruct::story_string::StoryField;
use tavern::macros::card_use::CardUse;
use tavern::presets::complete_preset::ExampleMessagesMode;

use crate::prompt::blocks::{BlockKind, PromptBlock};
use crate::prompt::budget::{ContextOverflow, MESSAGE_OVERHEAD};
use crate::prompt::text_completion::story_fields;
use crate::prompt::text_completion::text_layout::ExpandedLayout;
use crate::prompt::{blocks, budget};

/// How often blocks are dropped again because the final text is longer than their sum.
const MAX_FITTINGS: usize = 5;

/// How a prompt became one text, as it is stored: without the texts of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextRecord {
    /// The name of the instruct template.
    pub template: String,
    /// `None`: it contains what may not be stored or shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<TextLayout>,
    /// Whether the layout contains text of a card.
    #[serde(default, skip_serializing_if = "CardUse::is_none")]
    pub card_use: CardUse,
    /// Whether the last block is the beginning of the reply.
    #[serde(default)]
    pub is_prefilled: bool,
}

impl TextRecord {
    /// Returns the record as it is stored: PostgreSQL stores no NUL in JSON.
    pub fn storable(&self) -> Self {
        let has_nul = serde_json::to_string(&self.layout).is_ok_and(|it| it.contains("\\u0000"));
        Self {
            template: self.template.replace('\0', ""),
            layout: self.layout.clone().filter(|_| !has_nul),
            ..self.clone()
        }
    }
}

/// A prompt as one text.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltText {
    pub record: TextRecord,
    pub text: String,
    /// The number of its tokens.
    pub tokens: i64,
}

/// A rendered text, and what the user should know about it.
struct Rendered {
    text: String,
    n_removed: usize,
    omitted: Vec<StoryField>,
}

/// Adds the tokens of the sequences to the blocks of the chat.
pub fn add_sequence_tokens(
    blocks: &mut [PromptBlock],
    layout: &TextLayout,
    count: &dyn Fn(&str) -> i64,
) {
    use base::prompt_role::PromptRole::{Assistant, System, User};
    use tavern::instruct::instruct_template::SequencePosition::Middle;
    let instruct = &layout.instruct;
    let tokens = [System, User, Assistant].map(|role| {
        let (before, after) = (instruct.prefix(role, Middle), instruct.suffix(role));
        let sequences = count(&format!("{before}{}{after}", instruct.separator()));
        (role, (sequences - MESSAGE_OVERHEAD).max(0))
    });
    for block in blocks.iter_mut().filter(|it| it.story_field.is_none()) {
        let of_role = tokens.iter().find(|(role, _)| *role == block.role);
        block.tokens += of_role.map_or(0, |(_, tokens)| *tokens);
    }
}

/// Renders the blocks that were kept to one text. If it does not fit, drops further blocks.
///
/// # Errors
/// Returns `ContextOverflow` when the blocks that must be kept do not fit.
pub fn fit(
    blocks: &mut [PromptBlock],
    expanded: ExpandedLayout,
    is_prefilled: bool,
    (limit_tokens, examples): (i64, ExampleMessagesMode),
    count: &dyn Fn(&str) -> i64,
) -> Result<(BuiltText, Vec<ImportWarning>), ContextOverflow> {
    let layout = expanded.layout;
    let mut target = limit_tokens;
    for _ in 0..MAX_FITTINGS {
        let rendered = render_kept(blocks, &layout, is_prefilled);
        let tokens = count(&rendered.text);
        let over_by = tokens - limit_tokens;
        if over_by <= 0 {
            let record = TextRecord {
                template: template_name(&layout),
                layout: Some(layout).filter(|_| !expanded.has_summary),
                card_use: expanded.card_use,
                is_prefilled,
            };
            let built = BuiltText {
                record,
                text: rendered.text,
                tokens,
            };
            let warnings = warnings(rendered.n_removed, &rendered.omitted);
            return Ok((built, warnings));
        }
        let kept = blocks.iter().filter(|it| !it.dropped);
        let total: i64 = kept.map(budget::block_cost).sum();
        target = target.min(total) - over_by;
        budget::fit_blocks(blocks, target, examples).map_err(|_| ContextOverflow { over_by })?;
    }
    let over_by = count(&render_kept(blocks, &layout, is_prefilled).text) - limit_tokens;
    Err(ContextOverflow {
        over_by: over_by.max(1),
    })
}

/// Returns the name of the template for display; those of files need none.
fn template_name(layout: &TextLayout) -> String {
    match layout.instruct.name.trim() {
        "" => "–".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the text of a prompt for display; `None` if a part of it must not be shown.
pub fn shown_text(record: &TextRecord, blocks: &[PromptBlock]) -> Option<String> {
    let layout = record.layout.as_ref()?;
    let is_whole = !blocks.iter().any(|it| it.withheld && !it.dropped);
    is_whole.then(|| render_kept(blocks, layout, record.is_prefilled).text)
}

/// Returns the texts that end the reply.
pub fn stops(layout: &TextLayout, own: &[String], others: &[String]) -> Vec<String> {
    stop_strings::list(&layout.instruct, &layout.context, own, others)
}

fn render_kept(blocks: &[PromptBlock], layout: &TextLayout, is_prefilled: bool) -> Rendered {
    let mut parts = TextParts::default();
    let mut n_removed = 0;
    let mut chat = Vec::new();
    for block in blocks.iter().filter(|it| !it.dropped) {
        let mut block = block.clone();
        if !is_own_text(&block) {
            n_removed += layout.control_sequences.remove_from(&mut block.text);
        }
        if let Some(name) = &mut block.name {
            n_removed += layout.control_sequences.remove_from(name);
        }
        match block.story_field {
            Some(StoryField::MesExamples) => {
                let part = match block.kind {
                    BlockKind::Example => ExamplePart::Block(block.text.clone()),
                    _ => ExamplePart::Other(block.text.clone()),
                };
                parts.examples.push(part);
                push_value(&mut parts, StoryField::MesExamples, &block.text);
            }
            Some(field) => push_value(&mut parts, field, &block.text),
            None if story_fields::is_plain(&block) => {
                parts.lines.push(TextLine::Plain(block.text));
            }
            None => chat.push(block),
        }
    }
    for (field, name) in [
        (StoryField::User, &layout.user),
        (StoryField::Char, &layout.character),
    ] {
        parts.story.insert(field, name.clone());
    }
    if is_prefilled {
        parts.prefill = chat.pop().map(|it| it.text);
    }
    let messages = blocks::to_messages(&chat).into_iter();
    parts.lines.extend(messages.map(|it| TextLine::Message {
        role: it.role,
        name: it.name,
        text: it.content,
    }));
    Rendered {
        text: layout.render(&parts),
        n_removed,
        omitted: layout.omitted_fields(&parts.story),
    }
}

fn push_value(parts: &mut TextParts, field: StoryField, text: &str) {
    let value = parts.story.entry(field).or_default();
    if !value.is_empty() {
        value.push('\n');
    }
    value.push_str(text);
}

/// Returns whether a block has the text of the preset, which may contain sequences.
fn is_own_text(block: &PromptBlock) -> bool {
    let of_preset = [
        BlockKind::Main,
        BlockKind::Entry,
        BlockKind::PostHistory,
        BlockKind::NewChat,
    ];
    of_preset.contains(&block.kind) && block.card_use.is_none()
}

fn warnings(n_removed: usize, omitted: &[StoryField]) -> Vec<ImportWarning> {
    let mut warnings = Vec::new();
    if n_removed > 0 {
        let sentence = format!(
            "Texts contained control sequences of the instruct template; {n_removed} were removed."
        );
        let warning = ImportWarning::new("control_sequences_removed", sentence);
        warnings.push(warning.with("n", n_removed));
    }
    if !omitted.is_empty() {
        let names = omitted
            .iter()
            .filter_map(|it| serde_json::to_value(it).ok());
        let names: Vec<String> = names
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect();
        let names = names.join(", ");
        let sentence = format!(
            "The story string does not contain these texts, so they are not sent: {names}."
        );
        let warning = ImportWarning::new("story_fields_omitted", sentence);
        warnings.push(warning.with("names", names));
    }
    warnings
}
