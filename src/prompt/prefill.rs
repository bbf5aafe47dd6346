//! Ends a prompt with the beginning of the reply: the text of a message that the model continues, or the
//! prefill of the preset. No I/O.

use base::ids::MessageId;
use base::prompt_role::PromptRole;
use llm::provider::Provider;
use llm::request::Request;
use tavern::import_warning::ImportWarning;

use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock};
use crate::prompt::context::PromptContext;

/// Records whether the provider accepts the beginning of the reply. A text completion always does.
pub fn apply_provider(context: &mut PromptContext, provider: &dyn Provider) {
    let request = Request {
        model: context.model.clone(),
        ..Request::default()
    };
    let accepts = context.templates.is_some() || provider.can_prefill(&request);
    context.accepts_prefill &= accepts;
    if let Some(continuation) = &mut context.continuation {
        continuation.is_prefill = accepts;
    }
}

/// Returns the prefill of the preset: that of a text for a user, or that of a reply. A continued message
/// is its own prefill.
pub fn template(context: &PromptContext) -> &str {
    let texts = &context.preset.texts;
    match context.is_impersonation() {
        _ if context.continuation.is_some() => "",
        true => &texts.assistant_impersonation,
        false => &texts.assistant_prefill,
    }
}

/// Removes and returns the newest message if the prompt ends with its text; white space at its end is replaced
/// with the Continue Postfix.
pub fn take_continued(
    context: &PromptContext,
    messages: &mut Vec<PromptBlock>,
) -> Option<PromptBlock> {
    let continuation = context.continuation.filter(|it| it.is_prefill)?;
    let block = messages.pop_if(|it| is_of_message(it, continuation.message))?;
    let postfix = context.preset.continue_postfix.text();
    Some(PromptBlock {
        name: None,
        text: block.text.trim_end().to_owned() + postfix,
        ..block
    })
}

/// Returns whether the last of the blocks is the beginning of the reply.
pub fn is_prefilled(context: &PromptContext, blocks: &[PromptBlock]) -> bool {
    let Some(last) = blocks.last() else {
        return false;
    };
    let continued = context.continuation.filter(|it| it.is_prefill);
    match continued {
        Some(continued) => is_of_message(last, continued.message),
        None => last.kind == BlockKind::Prefill,
    }
}

/// Returns the text that is stored before the reply: the prefill of the preset, if it is shown, or the Continue
/// Postfix, unless the continued text already ends with white space.
pub fn stored_prefix(context: &PromptContext, blocks: &[PromptBlock]) -> Option<String> {
    if context.continuation.is_some_and(|it| it.is_prefill) {
        let continued = context.history.last()?;
        let postfix = context.preset.continue_postfix.text();
        let is_joined = continued.text.ends_with(char::is_whitespace) || postfix.is_empty();
        return (!is_joined).then(|| postfix.to_owned());
    }
    let last = blocks.last().filter(|it| it.kind == BlockKind::Prefill)?;
    context.preset.show_prefill.then(|| last.text.clone())
}

/// Returns the warning about a prefill that is not sent.
pub fn warning(context: &PromptContext) -> Option<ImportWarning> {
    let is_ignored = !context.accepts_prefill && !template(context).trim().is_empty();
    is_ignored.then(|| {
        let sentence =
            "The prefill of the preset is not sent, because the provider does not accept one or the model has tools.";
        ImportWarning::new("prefill_not_sent", sentence)
    })
}

/// Returns whether the newest message is one of a character, so that the preset's replacement for an empty
/// message of the user is sent.
pub fn needs_empty_message_replacement(context: &PromptContext, messages: &[PromptBlock]) -> bool {
    let newest = messages
        .iter()
        .rev()
        .find(|it| it.kind == BlockKind::History);
    newest.is_some_and(|it| it.role == PromptRole::Assistant)
        && context.continuation.is_none()
        && !context.is_impersonation()
}

fn is_of_message(block: &PromptBlock, message: MessageId) -> bool {
    match block.origin {
        BlockOrigin::Message { source, .. } => source.message == message,
        _ => false,
    }
}
