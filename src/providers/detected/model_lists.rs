//! Reads the lists of models of providers: on request, and again each day, because context windows change.
//! What a list states is recorded in the settings of its provider.

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::shutdown::Shutdown;
use llm::error::LlmError;
use llm::model_list;
use llm::model_list::ModelList;
use llm::provider_options::DETECTED;
use llm::registry::ProviderKind;
use sea_orm::DbErr;
use tokio::time;

use crate::db::connect::Db;
use crate::providers::detected::detected_facts;
use crate::providers::detected::detected_settings::LISTED_AT;
use crate::providers::provider;
use crate::providers::provider_factory::{ProviderError, ProviderFactory};

/// How often the lists are checked, and the age at which one is read again.
const CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
const MAX_AGE_MS: i64 = 24 * 60 * 60 * 1_000;

/// Why a list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelListError {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Call(#[from] LlmError),
    #[error(transparent)]
    Database(#[from] DbErr),
}

/// Reads the list of a provider's endpoint, and records what it states. Must run on the main runtime, which
/// owns the connections.
///
/// # Errors
/// Returns `Provider` if the settings are incomplete, `Call` if the endpoint does not answer with a list, and
/// `Database` if a statement fails.
pub async fn load(
    db: &Db,
    models: &ProviderFactory,
    row: &provider::Model,
    now: Timestamp,
) -> Result<ModelList, ModelListError> {
    let spec = row.spec(&models.cipher).map_err(ProviderError::from)?;
    let endpoint = models
        .registry
        .endpoint(&spec)
        .map_err(ProviderError::from)?;
    let list = model_list::list_models(&endpoint).await?;
    detected_facts::record_listed(db, row, &list, now).await?;
    Ok(list)
}

/// Reads old lists again until the server stops.
pub async fn run_refresh(db: Db, models: ProviderFactory, clock: Clock, shutdown: Shutdown) {
    let mut ticks = time::interval(CHECK_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.draining.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = refresh_stale_lists(&db, &models, clock.now()).await {
            tracing::warn!(%error, "failed to load the providers whose lists of models are old: {error}");
        }
    }
}

/// Reads the lists that are older than a day. A list that was never read is not read: its provider may not be
/// fully configured.
///
/// # Errors
/// Returns an error if the providers cannot be loaded.
pub async fn refresh_stale_lists(
    db: &Db,
    models: &ProviderFactory,
    now: Timestamp,
) -> Result<(), DbErr> {
    for row in provider::list_all(db.reader()).await? {
        if !is_stale(&row, now) {
            continue;
        }
        if let Err(error) = load(db, models, &row, now).await {
            tracing::debug!(%error, "failed to read the list of models of provider {}: {error}", row.id);
        }
    }
    Ok(())
}

fn is_stale(row: &provider::Model, now: Timestamp) -> bool {
    let read_at = row.settings[DETECTED][LISTED_AT].as_i64();
    let is_used = !row.disabled && row.kind != ProviderKind::Demo;
    is_used && read_at.is_some_and(|it| now.0 - it >= MAX_AGE_MS)
}
