//! Records in the settings of a provider what was detected about its endpoint and its models: which of
//! them accept pictures, and what they refuse. Also forgets it.

use base::clock::Timestamp;
use base::ids::ProviderId;
use llm::compatibility::refusals::Refusals;
use llm::provider_options::{DETECTED, REFUSED_FIELDS, REFUSED_ROLE_ORDER};
use sea_orm::ActiveValue::Set;
use sea_orm::{ActiveModelTrait, DbErr, IntoActiveModel};
use serde_json::{Value, json};

use crate::db::connect::Db;
use crate::providers::vision::VisionSource;
use crate::providers::{provider, vision};

/// Records for each of these models whether it accepts pictures. Saving the settings of the provider discards what
/// calls have shown; a test or a changed address discards everything.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn record_vision(
    db: &Db,
    id: ProviderId,
    source: VisionSource,
    models: Vec<(String, bool)>,
) -> Result<(), DbErr> {
    if models.is_empty() {
        return Ok(());
    }
    let with_models =
        move |settings: &Value| vision::with_detected(settings, source, models.clone());
    change_settings(db, id, with_models).await
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

/// Forgets what was detected about a provider.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn forget(db: &Db, id: ProviderId) -> Result<(), DbErr> {
    change_settings(db, id, |it| vision::without_detected(it.clone())).await
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
            let no_pictures = vec![(model.to_owned(), false)];
            vision::with_detected(settings, VisionSource::Call, no_pictures)
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
