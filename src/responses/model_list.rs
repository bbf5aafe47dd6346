//! Lists the models of the configured providers and finds the provider for a model name.

use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};

use crate::providers::provider;

/// A model that clients can request.
#[derive(Clone, Debug)]
pub struct ModelListing {
    /// The name that clients request.
    pub id: String,
    pub provider: provider::Model,
}

/// Returns all names: each model by its own name, which belongs to the default provider if several
/// have it, and as `<provider>/<model>`.
pub async fn list(db: &impl ConnectionTrait) -> Result<Vec<ModelListing>, DbErr> {
    let rows = provider::Entity::find()
        .filter(provider::Column::Disabled.eq(false))
        .order_by_desc(provider::Column::IsDefault)
        .order_by_asc(provider::Column::Id)
        .all(db)
        .await?;
    let mut all: Vec<ModelListing> = Vec::new();
    let own = |it: &provider::Model| it.model.clone();
    let full = |it: &provider::Model| format!("{}/{}", it.name, it.model);
    for name in [own as fn(&provider::Model) -> String, full] {
        for row in &rows {
            let id = name(row);
            if !id.is_empty() && all.iter().all(|it| it.id != id) {
                let provider = row.clone();
                all.push(ModelListing { id, provider });
            }
        }
    }
    Ok(all)
}

/// Returns the provider of a model name.
pub async fn find_provider(
    db: &impl ConnectionTrait,
    name: &str,
) -> Result<Option<provider::Model>, DbErr> {
    let all = list(db).await?;
    let found = all.into_iter().find(|it| it.id == name);
    Ok(found.map(|it| it.provider))
}
