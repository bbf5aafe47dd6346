//! Lists the models and the embedding models of the configured providers, and finds the provider for
//! a model name.

use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};

use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::providers::provider;

/// A model that clients can request.
#[derive(Clone, Debug)]
pub struct ModelListing {
    /// The name that clients request.
    pub id: String,
    /// Its provider; the field `model` is the name of the model at the provider.
    pub provider: provider::Model,
}

/// All models of the enabled providers.
#[derive(Clone, Debug)]
pub struct ModelLists {
    pub models: Vec<ModelListing>,
    /// The embedding models in the settings of the providers. A provider that must not be called for
    /// embeddings has none.
    pub embedding_models: Vec<ModelListing>,
}

/// Returns all names: each model by its own name, which belongs to the default provider if several
/// have it, and as `<provider>/<model>`.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list(db: &impl ConnectionTrait) -> Result<ModelLists, DbErr> {
    let rows = list_enabled(db).await?;
    Ok(ModelLists {
        models: name_all(&rows),
        embedding_models: name_embedding_models(rows),
    })
}

fn name_embedding_models(rows: Vec<provider::Model>) -> Vec<ModelListing> {
    let chosen = rows.into_iter().filter_map(EmbeddingChoice::of_provider);
    let chosen = chosen.filter(|it| !it.is_paused());
    let rows = chosen.map(|it| provider::Model {
        model: it.model,
        ..it.provider
    });
    name_all(&rows.collect::<Vec<_>>())
}

/// Returns the enabled providers, the default one first.
async fn list_enabled(db: &impl ConnectionTrait) -> Result<Vec<provider::Model>, DbErr> {
    provider::Entity::find()
        .filter(provider::Column::Disabled.eq(false))
        .order_by_desc(provider::Column::IsDefault)
        .order_by_asc(provider::Column::Id)
        .all(db)
        .await
}

/// Returns the names of the models of these providers.
fn name_all(rows: &[provider::Model]) -> Vec<ModelListing> {
    let mut all: Vec<ModelListing> = Vec::new();
    let own = |it: &provider::Model| it.model.clone();
    let full = |it: &provider::Model| format!("{}/{}", it.name, it.model);
    for name in [own as fn(&provider::Model) -> String, full] {
        for row in rows {
            let id = name(row);
            if !id.is_empty() && all.iter().all(|it| it.id != id) {
                let provider = row.clone();
                all.push(ModelListing { id, provider });
            }
        }
    }
    all
}

/// Returns the provider of a model name.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_provider(
    db: &impl ConnectionTrait,
    name: &str,
) -> Result<Option<provider::Model>, DbErr> {
    let all = name_all(&list_enabled(db).await?);
    let found = all.into_iter().find(|it| it.id == name);
    Ok(found.map(|it| it.provider))
}

/// Returns the provider of the name of an embedding model.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_embedding_provider(
    db: &impl ConnectionTrait,
    name: &str,
) -> Result<Option<provider::Model>, DbErr> {
    let all = name_embedding_models(list_enabled(db).await?);
    let found = all.into_iter().find(|it| it.id == name);
    Ok(found.map(|it| it.provider))
}
