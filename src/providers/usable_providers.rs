//! Chooses the provider of a membership: its own one if that is enabled, otherwise the default one.

use base::ids::ProviderId;
use sea_orm::sea_query::ExprTrait;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::providers::provider::{Column, Entity, Model};

/// Returns the provider for a membership; see [`UsableProviders::find`].
pub async fn find(
    db: &impl ConnectionTrait,
    own: Option<ProviderId>,
    model: Option<&str>,
) -> Result<Option<Model>, DbErr> {
    let usable = UsableProviders::load(db, own).await?;
    Ok(usable.find(own, model))
}

/// The default provider and the own providers of some memberships, except disabled ones.
#[derive(Debug)]
pub struct UsableProviders(Vec<Model>);

impl UsableProviders {
    /// Loads the default provider and these ones, except disabled ones.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(
        db: &impl ConnectionTrait,
        own: impl IntoIterator<Item = ProviderId>,
    ) -> Result<Self, DbErr> {
        let wanted = Column::IsDefault.eq(true).or(Column::Id.is_in(own));
        let found = Entity::find()
            .filter(wanted)
            .filter(Column::Disabled.eq(false));
        Ok(Self(found.all(db).await?))
    }

    /// Returns the provider for a membership: its own one if that is enabled, otherwise the default
    /// one. `model` replaces only the model of its own provider, because a model name is valid only
    /// for the provider that it was chosen for.
    pub fn find(&self, own: Option<ProviderId>, model: Option<&str>) -> Option<Model> {
        let own = own.and_then(|id| self.0.iter().find(|it| it.id == id));
        let Some(own) = own else {
            return self.0.iter().find(|it| it.is_default).cloned();
        };
        Some(Model {
            model: model.unwrap_or(&own.model).to_owned(),
            ..own.clone()
        })
    }
}
