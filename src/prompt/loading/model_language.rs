//! Requests translations of the newest messages of people before the prompt of a run is loaded, if the models of
//! the space read another language.

use std::time::Duration;

use agent::permits::fair_permits::PermitOwner;
use base::ids::MembershipId;
use base::language_tag::LanguageTag;
use futures::future::join_all;
use sea_orm::DbErr;
use tokio::time::Instant;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::MessageRole;
use crate::conversations::translations::message_translation::TranslationKey;
use crate::conversations::translations::translation_model::TranslationSource;
use crate::conversations::translations::translation_tasks::TranslationTasks;
use crate::conversations::translations::{message_translation, translation_model};
use crate::db::connect::Db;
use crate::prompt::loading::history_filter::HistoryFilter;
use crate::prompt::loading::history_query;
use crate::prompt::loading::loader::PromptScope;
use crate::spaces::space;

/// How long a run waits for translations. A message whose translation comes later is sent as it was
/// written, and translated in later prompts.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// How many messages are translated: those since the last reply. Older ones are sent as they are stored.
const MAX_MESSAGES: u64 = 4;

/// Translates the newest messages up to `cutoff_seq` that people wrote since the last reply and that the
/// speaker heard, and waits a moment for the translations. Without them the prompt contains the originals.
pub async fn await_translations(
    db: &Db,
    translations: &TranslationTasks,
    scope: &PromptScope,
    (speaker, cutoff_seq): (MembershipId, i64),
) {
    let space = &scope.space;
    let language = space.model_language.as_deref().and_then(LanguageTag::parse);
    let Some(language) = language else {
        return;
    };
    let filter = HistoryFilter::new(speaker, &scope.memberships, Viewer::Server);
    let wanted = (language, cutoff_seq, &filter);
    let awaited = translate_newest(db, translations, scope, wanted).await;
    if let Err(error) = awaited {
        tracing::warn!(space.id = %space.id, %error, "messages were not translated for a model: {error}");
    }
}

async fn translate_newest(
    db: &Db,
    translations: &TranslationTasks,
    scope: &PromptScope,
    (language, cutoff_seq, filter): (LanguageTag, i64, &HistoryFilter),
) -> Result<(), DbErr> {
    let db = db.reader();
    let id = scope.conversation.id;
    let newest = history_query::list_newest(db, id, (cutoff_seq, MAX_MESSAGES), filter).await?;
    let of_people = newest
        .into_iter()
        .take_while(|it| it.role == MessageRole::User);
    let mut messages: Vec<_> = of_people.collect();
    let ids = messages.iter().map(|it| it.id);
    let known = message_translation::load(db, ids, language.as_str()).await?;
    messages.retain(|it| !known.contains_key(&it.id));
    if messages.is_empty() {
        return Ok(());
    }
    let space: &space::Model = &scope.space;
    let Some(provider) = translation_model::find_provider(db, space).await? else {
        return Ok(());
    };
    let deadline = Instant::now() + MAX_WAIT;
    let awaited = messages.into_iter().map(|message| {
        let key = TranslationKey {
            message: message.id,
            version: message.version,
            language: language.clone(),
        };
        let source = TranslationSource {
            text: message.content,
            language: language.clone(),
            space: space.id,
            provider: provider.clone(),
            owner: PermitOwner::Space(space.id),
        };
        let mut pending = translations.start(key, source);
        async move { pending.wait(deadline - Instant::now()).await }
    });
    join_all(awaited).await;
    Ok(())
}
