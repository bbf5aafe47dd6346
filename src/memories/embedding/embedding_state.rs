//! The state of the vectors of a space: which model it uses, how many memories this model has
//! embedded, and whether its provider is called.

use std::time::Duration;

use base::ids::{MembershipId, ProviderId};
use sea_orm::DbErr;

use crate::db::connect::Db;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::vector_store;
use crate::memories::embedding_model;
use crate::memories::tasks::task_queue;
use crate::memories::tasks::task_queue::TaskCounts;
use crate::providers::provider_factory::ProviderFactory;
use crate::spaces::space;

/// The state of a space, as known to this node.
#[derive(Clone, Debug)]
pub struct EmbeddingState {
    /// `None`: the local model.
    pub provider: Option<ProviderId>,
    pub model: String,
    /// Unknown until the first vector of a provider's model is stored.
    pub dimensions: Option<i64>,
    /// How many memories have a vector of this model.
    pub embedded: u64,
    pub total: u64,
    /// How long the provider will not be called because of failures.
    pub breaker_open_for: Option<Duration>,
    /// Whether the settings switch calls of the provider off.
    pub is_paused: bool,
    pub tasks: TaskCounts,
}

/// Loads the state of a space, as a member sees it: without the memories of other people.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load(
    db: &Db,
    models: &ProviderFactory,
    space: &space::Model,
    viewer: Option<MembershipId>,
) -> Result<EmbeddingState, DbErr> {
    let reader = db.reader();
    let tasks = task_queue::count_for_space(reader, space.id).await?;
    let Some(choice) = EmbeddingChoice::load(reader, &space.settings).await? else {
        let (total, _) = vector_store::count(reader, space.id, None, viewer).await?;
        return Ok(EmbeddingState {
            provider: None,
            model: local_embedding::MODEL_NAME.to_owned(),
            dimensions: i64::try_from(local_embedding::DIMENSIONS).ok(),
            embedded: total,
            total,
            breaker_open_for: None,
            is_paused: false,
            tasks,
        });
    };
    let row = match space.embedding_model_id {
        Some(id) => embedding_model::find(reader, id).await?,
        None => None,
    };
    let row = row.filter(|it| choice.fits(it));
    let of_model = row.as_ref().map(|it| it.id);
    let (total, embedded) = vector_store::count(reader, space.id, of_model, viewer).await?;
    let client = choice.known_client(models);
    let open_for = client.and_then(|it| it.breaker_open_for());
    Ok(EmbeddingState {
        provider: Some(choice.provider.id),
        dimensions: row.map(|it| it.dimensions),
        embedded,
        total,
        breaker_open_for: open_for,
        is_paused: choice.is_paused(),
        tasks,
        model: choice.model,
    })
}
