//! Creates the record of a built prompt that is stored with its run.

use std::sync::Arc;

use base::ids::MemoryId;

use crate::prompt::builder::BuiltPrompt;
use crate::prompt::record::sent_prompt::SentPrompt;
use crate::providers::{provider, role_handling};
use crate::runs::scheduling::command::SentPromptRef;
use crate::runs::store::run;

/// Returns the record of a prompt, to store it with the run.
///
/// # Errors
/// Returns an error when `serde_json` cannot write the record.
pub fn of_built(
    row: &provider::Model,
    built: &BuiltPrompt,
    max_stops: usize,
    seed: u64,
) -> serde_json::Result<SentPromptRef> {
    let failed = built.scripts.iter().filter(|it| it.error.is_some());
    let stats = run::PromptStats {
        provider: row.name.clone(),
        model: row.model.clone(),
        total_tokens: built.total_tokens,
        limit_tokens: built.limit_tokens,
        dropped_messages: i64::try_from(built.dropped_messages).unwrap_or(i64::MAX),
        n_messages: i64::try_from(built.messages.len()).unwrap_or(i64::MAX),
        seed: seed.cast_signed(),
        pictures_refused: false,
        failed_scripts: failed.map(|it| it.name.clone()).collect(),
    };
    let record = SentPrompt {
        role_handling: role_handling::of_provider(row, built.text.is_some()),
        ..SentPrompt::from_built(&row.model, built, max_stops)
    };
    Ok(SentPromptRef {
        stats,
        record: record.to_json()?,
        effects: Arc::new(built.effects.clone()),
        recalled: recalled(built),
    })
}

fn recalled(built: &BuiltPrompt) -> Arc<[MemoryId]> {
    let recalled = built.recalls.iter().filter(|it| it.rank.is_some());
    recalled.map(|it| it.memory).collect()
}
