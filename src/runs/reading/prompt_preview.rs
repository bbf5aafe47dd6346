//! Loads and builds the prompt of a preview, as a person sees it, without a call of a model.

use base::ids::{ConversationId, MembershipId, MessageId};
use serde_json::Value;
use tavern::lorebook::engine_lorebook::Lorebook;

use crate::conversations::audience::viewer::Viewer;
use crate::prompt::context::PromptContext;
use crate::prompt::loading::loader;
use crate::prompt::loading::loader::PromptRequest;
use crate::prompt::loading::lore::vector_matches;
use crate::prompt::lore_tester::lore_test;
use crate::prompt::lore_tester::lore_test::TestMessage;
use crate::prompt::prefill;
use crate::prompt::record::whispered_blocks;
use crate::providers::{preset_overrides, provider};
use crate::runs::error::ConversationReadError;
use crate::runs::execution::preparation::prepared_run::find_provider;
use crate::runs::execution::preparation::prompt_building::{
    FittedPrompt, build_counted, build_prompt,
};
use crate::runs::services::RunServices;

/// Loads the inputs of the prompt that would be built if this member spoke now, without what the reader
/// does not see. `None`: the conversation, the membership or a model is missing.
pub async fn load_context(
    context: &RunServices,
    conversation: ConversationId,
    (speaker, reader): (MembershipId, Viewer),
) -> Result<Option<PromptContext>, ConversationReadError> {
    let Some(row) = find_provider(context, speaker).await? else {
        return Ok(None);
    };
    let now = context.clock.now();
    let request = PromptRequest {
        reader,
        ..PromptRequest::next_reply(conversation, speaker, &row, now)
    };
    let prompt = loader::load(&context.db, &context.prompt_caches, request).await?;
    Ok(prompt.filter(|it| it.find_speaker().is_some()))
}

/// A lorebook, and the text with which it is tested.
#[derive(Clone, Debug)]
pub struct LoreTest<'a> {
    pub book: Lorebook,
    pub message: TestMessage,
    /// The settings of the space.
    pub settings: &'a Value,
}

/// Loads the inputs of the prompt in which a lorebook is tested: as [`load_context`], with this lorebook and
/// this message.
pub async fn load_lore_test(
    context: &RunServices,
    conversation: ConversationId,
    speaking: (MembershipId, Viewer),
    test: LoreTest<'_>,
) -> Result<Option<PromptContext>, ConversationReadError> {
    let Some(mut prompt) = load_context(context, conversation, speaking).await? else {
        return Ok(None);
    };
    lore_test::add_test_input(&mut prompt, test.book, test.message);
    let vectors = &context.prompt_caches.lore_vectors;
    let similar = vector_matches::find(&context.db, vectors, &prompt, test.settings);
    similar.await.add_to(&mut prompt);
    Ok(Some(prompt))
}

/// Returns the prompt that would be sent if this member spoke now, as the reader sees it, and its provider.
/// `None`: the conversation, the membership or a model is missing.
pub async fn load(
    context: &RunServices,
    conversation: ConversationId,
    (speaker, reader): (MembershipId, Viewer),
    trigger: Option<MessageId>,
) -> Result<Option<(provider::Model, FittedPrompt)>, ConversationReadError> {
    let Some(row) = find_provider(context, speaker).await? else {
        return Ok(None);
    };
    let now = context.clock.now();
    let request = PromptRequest {
        reply_to: trigger,
        ..PromptRequest::next_reply(conversation, speaker, &row, now)
    };
    let Some(mut prompt) = loader::load(&context.db, &context.prompt_caches, request).await? else {
        return Ok(None);
    };
    let row = preset_overrides::apply(&row, &prompt.preset).into_owned();
    // If the provider cannot be created, the preview contains no prefill.
    let provider = context.models.create(&row).ok();
    match &provider {
        Some(provider) => prefill::apply_provider(&mut prompt, provider.as_ref()),
        None => prompt.accepts_prefill = false,
    }
    let accepts_prefill = prompt.accepts_prefill;
    if prompt.find_speaker().is_none() {
        return Ok(None);
    }
    let is_unheard = |audience| !reader.sees(Some(audience));
    let hides_whispers = prompt.whispers().any(|(_, it)| is_unheard(it));
    let counted = build_counted(context, provider.as_deref(), prompt).await?;
    let budget_percent = counted.context.budget_percent;
    let built = match counted.built {
        Ok(whole) if hides_whispers => {
            let request = PromptRequest { reader, ..request };
            let heard = loader::load(&context.db, &context.prompt_caches, request).await?;
            let Some(mut heard) = heard else {
                return Ok(None);
            };
            heard.accepts_prefill = accepts_prefill;
            heard.budget_percent = budget_percent;
            let (_, heard) = build_prompt(context, heard).await?;
            heard.map(|it| whispered_blocks::shown(whole, &it))
        }
        built => built,
    };
    Ok(Some((row, built)))
}
