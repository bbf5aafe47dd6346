//! Builds the prompt of a model call in a blocking task. If the server of a text completion can count tokens,
//! the prompt is counted there, and built again if it does not fit.

use llm::provider::Provider;
use llm::tokens;

use crate::prompt::builder;
use crate::prompt::builder::BuiltPrompt;
use crate::prompt::context::PromptContext;
use crate::prompt::prompt_error::PromptError;
use crate::runs::error::ConversationReadError;
use crate::runs::services::RunServices;

/// A prompt, if it can be built and fits into the model's context window.
pub type FittedPrompt = Result<BuiltPrompt, PromptError>;

/// The budget of a prompt that was too long is a multiple of this, so that the start of its history, which is
/// stored for each budget, rarely changes.
const PERCENT_STEP: i64 = 5;

/// A prompt and what it was built from.
#[derive(Debug)]
pub struct CountedPrompt {
    pub context: PromptContext,
    pub built: FittedPrompt,
    /// The estimated number of tokens of the prompt; `built` has the counted one, if the server counts tokens.
    pub estimated_tokens: i64,
}

/// Builds a prompt without asking its provider.
///
/// # Errors
/// Returns an error when the server is shutting down.
pub async fn build_prompt(
    services: &RunServices,
    context: PromptContext,
) -> Result<(PromptContext, FittedPrompt), ConversationReadError> {
    // Counting tokens is CPU work, which must block neither streams nor requests.
    let building = services.shutdown.main().spawn_blocking(move || {
        let built = builder::build(&context, &tokens::count);
        (context, built)
    });
    Ok(building.await?)
}

/// Builds a prompt whose tokens its provider counts, if there is one that can.
///
/// # Errors
/// As [`build_prompt`].
pub async fn build_counted(
    services: &RunServices,
    provider: Option<&dyn Provider>,
    context: PromptContext,
) -> Result<CountedPrompt, ConversationReadError> {
    let mut first = estimate(services, context).await?;
    let Some(provider) = provider else {
        return Ok(first);
    };
    let Some(n_tokens) = count(provider, &mut first.built).await else {
        return Ok(first);
    };
    let percent = percent_that_fits(&first, n_tokens);
    if percent == first.context.budget_percent {
        return Ok(first);
    }
    let shorter = PromptContext {
        budget_percent: percent,
        ..first.context.clone()
    };
    let mut second = estimate(services, shorter).await?;
    count(provider, &mut second.built).await;
    // Whether the parts that must be kept fit, the server decides.
    match second.built {
        Ok(_) => Ok(second),
        Err(_) => Ok(first),
    }
}

async fn estimate(
    services: &RunServices,
    context: PromptContext,
) -> Result<CountedPrompt, ConversationReadError> {
    let (context, built) = build_prompt(services, context).await?;
    let estimated_tokens = built.as_ref().map_or(0, |it| it.total_tokens);
    Ok(CountedPrompt {
        context,
        built,
        estimated_tokens,
    })
}

/// Replaces the estimated number of tokens of a prompt that is one text with the one that its server counts,
/// and returns it. `None`: the server does not count tokens.
async fn count(provider: &dyn Provider, built: &mut FittedPrompt) -> Option<i64> {
    let built = built.as_mut().ok()?;
    let text = &built.text.as_ref()?.text;
    let n_tokens = provider.count_tokens(text).await?;
    built.total_tokens = n_tokens;
    Some(n_tokens)
}

/// Returns the share of the window, in percent, with which a prompt fits whose tokens were counted: the
/// estimate of the next one is wrong by the same factor.
fn percent_that_fits(prompt: &CountedPrompt, n_tokens: i64) -> i64 {
    let percent = prompt.context.budget_percent;
    if n_tokens <= prompt.context.limit_tokens() {
        return percent;
    }
    let shorter = percent * prompt.estimated_tokens / n_tokens;
    (shorter / PERCENT_STEP * PERCENT_STEP).max(PERCENT_STEP)
}
