//! Records in the settings of a provider what was detected about its endpoint and its models: the backend,
//! which models accept pictures, their context windows, and what they refuse. Also forgets it.

use base::clock::Timestamp;
use base::ids::ProviderId;
use llm::compatibility::refusals::Refusals;
use llm::model_list::{ListedModel, ModelList};
use llm::provider_options::{
    BACKEND, DETECTED, DETECTED_COMPLETION_API, REFUSED_FIELDS, REFUSED_ROLE_ORDER,
};
use llm::text_completion::completion_api::CompletionApi;
use sea_orm::ActiveValue::Set;
use sea_orm::{ActiveModelTrait, DbErr, IntoActiveModel};
use serde_json::{Value, json};

use crate::db::connect::Db;
use crate::providers::detected::detected_settings;
use crate::providers::detected::detected_settings::{LISTED_AT, LISTED_WINDOWS, TOKEN_CORRECTIONS};
use crate::providers::provider;
use crate::providers::vision::VisionSource;

/// The key of the instruct template of the model, as its server reports it.
pub const DETECTED_TEMPLATE: &str = "template";

/// Records what the list of models of a provider states, which is better than what the name of a model
/// suggests. Saving the settings keeps it; a test or a changed address discards it.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn record_listed(
    db: &Db,
    row: &provider::Model,
    list: &ModelList,
    now: Timestamp,
) -> Result<(), DbErr> {
    // The model of the provider first, because there may be more models than are recorded.
    let is_own = |it: &&ListedModel| it.id == row.model;
    let (own, others): (Vec<_>, Vec<_>) = list.models.iter().partition(is_own);
    let models = || own.iter().chain(&others);
    let vision = models().filter_map(|it| Some((it.id.clone(), json!(it.vision?))));
    let windows = models().filter_map(|it| Some((it.id.clone(), json!(it.context_tokens?))));
    let (vision, windows): (Vec<_>, Vec<_>) = (vision.collect(), windows.collect());
    if vision.is_empty() && windows.is_empty() && list.backend.is_none() {
        return Ok(());
    }
    let backend = list.backend;
    let with_list = move |settings: &Value| {
        let mut settings = settings.clone();
        for (key, facts) in [
            (VisionSource::List.key(), &vision),
            (LISTED_WINDOWS, &windows),
        ] {
            if !facts.is_empty() {
                settings = detected_settings::with_models(&settings, key, facts.clone());
            }
        }
        settings = detected_settings::with_fact(&settings, LISTED_AT, json!(now.0));
        match backend {
            Some(backend) => detected_settings::with_fact(&settings, BACKEND, json!(backend)),
            None => settings,
        }
    };
    change_settings(db, row.id, with_list).await
}

/// Records what a model or its endpoint has refused, so that the next requests are sent without it.
/// Saving the settings of the provider, a test and another address discard it.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn record_refusals(
    db: &Db,
    id: ProviderId,
    model: &str,
    refusals: Refusals,
    now: Timestamp,
) -> Result<(), DbErr> {
    let model = model.to_owned();
    let with_refusals = move |settings: &Value| with_refusals(settings, &model, &refusals, now);
    change_settings(db, id, with_refusals).await
}

/// Records which text completion API the server of a provider has, and the template of its model, if
/// it is known.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn record_completion_server(
    db: &Db,
    id: ProviderId,
    api: CompletionApi,
    template: Option<&'static str>,
) -> Result<(), DbErr> {
    let with_server = move |settings: &Value| {
        let mut settings = settings.clone();
        settings[DETECTED][DETECTED_COMPLETION_API] = json!(api);
        settings[DETECTED][DETECTED_TEMPLATE] = json!(template);
        settings
    };
    change_settings(db, id, with_server).await
}

/// Records the factor by which the estimated tokens of a model must be corrected.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn record_token_correction(
    db: &Db,
    id: ProviderId,
    model: &str,
    correction: f64,
) -> Result<(), DbErr> {
    let fact = (model.to_owned(), json!(correction));
    let with_correction = move |settings: &Value| {
        detected_settings::with_models(settings, TOKEN_CORRECTIONS, [fact.clone()])
    };
    change_settings(db, id, with_correction).await
}

/// Forgets what was detected about a provider.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn forget(db: &Db, id: ProviderId) -> Result<(), DbErr> {
    change_settings(db, id, |it| detected_settings::without_detected(it.clone())).await
}

async fn change_settings(
    db: &Db,
    id: ProviderId,
    change: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static,
) -> Result<(), DbErr> {
    db.write(move |tx| {
        let change = change.clone();
        Box::pin(async move {
            provider::lock_all(tx).await?;
            let Some(present) = provider::find(tx, id).await? else {
                return Ok(());
            };
            let settings = change(&present.settings);
            if settings != present.settings {
                let mut row = present.into_active_model();
                row.settings = Set(settings);
                row.update(tx).await?;
            }
            Ok(())
        })
    })
    .await
}

/// Returns settings with what was refused; the time of an earlier refusal stays.
fn with_refusals(settings: &Value, model: &str, refusals: &Refusals, now: Timestamp) -> Value {
    let mut settings = match refusals.pictures {
        true => {
            let no_pictures = [(model.to_owned(), json!(false))];
            detected_settings::with_models(settings, VisionSource::Call.key(), no_pictures)
        }
        false => settings.clone(),
    };
    let fields = refusals
        .fields
        .iter()
        .map(|it| (REFUSED_FIELDS, it.as_str()));
    let models = refusals.role_order.then_some((REFUSED_ROLE_ORDER, model));
    for (key, name) in fields.chain(models) {
        if settings[DETECTED][key][name].is_null() {
            settings[DETECTED][key][name] = json!(now);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use base::clock::Clock;
    use llm::compatibility::refusals::Refusals;
    use llm::provider_options::ProviderOptions;
    use serde_json::json;

    use super::with_refusals;

    #[test]
    fn what_was_refused_is_known_to_the_next_request() {
        let refusals = Refusals {
            pictures: true,
            role_order: true,
            fields: ["top_k".to_owned()].into(),
        };
        let first = Clock::manual().now();

        let settings = with_refusals(&json!({"temperature": 1}), "m", &refusals, first);

        let known = ProviderOptions::from_settings(&settings).known_refusals("m");
        assert!(known.role_order && known.fields.contains("top_k"));
        assert_eq!(settings["detected"]["vision"]["m"], false);
        assert_eq!(
            with_refusals(&settings, "m", &refusals, first.plus_ms(1)),
            settings
        );
        let other = ProviderOptions::from_settings(&settings).known_refusals("n");
        assert!(!other.role_order && other.fields.contains("top_k"));
    }
}
