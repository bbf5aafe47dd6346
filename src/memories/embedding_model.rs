//! Table `embedding_models`: the models by which memories were embedded. Vectors of different models
//! are never compared.

use base::ids::EmbeddingModelId;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "embedding_models")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: EmbeddingModelId,
    pub name: String,
    /// Empty for the local model.
    pub base_url_hash: String,
    pub dimensions: i64,
    /// The cosine that counts as a score of 0.
    pub score_low: f64,
    /// The cosine that counts as a score of 1.
    pub score_high: f64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Returns the cosines that count as scores of 0 and 1.
    pub fn cosine_range(&self) -> (f32, f32) {
        // The limits do not need the precision of `f64`.
        (self.score_low as f32, self.score_high as f32)
    }
}

/// A model by what identifies it, with its range of cosines.
#[derive(Clone, Copy, Debug)]
pub struct NewModel<'a> {
    pub name: &'a str,
    pub base_url_hash: &'a str,
    pub dimensions: usize,
    pub cosine_range: (f32, f32),
}

/// Returns the row of a model, if it exists.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_by_name(
    db: &impl ConnectionTrait,
    model: NewModel<'_>,
) -> Result<Option<Model>, DbErr> {
    let dimensions = i64::try_from(model.dimensions).unwrap_or(i64::MAX);
    Entity::find()
        .filter(Column::Name.eq(model.name))
        .filter(Column::BaseUrlHash.eq(model.base_url_hash))
        .filter(Column::Dimensions.eq(dimensions))
        .one(db)
        .await
}

/// Returns a row.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find(db: &impl ConnectionTrait, id: EmbeddingModelId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns all rows, of which an installation has few.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list(db: &impl ConnectionTrait) -> Result<Vec<Model>, DbErr> {
    Entity::find().all(db).await
}

/// Returns the row of a model, which is inserted if it does not exist.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_or_insert(tx: &impl ConnectionTrait, new: NewModel<'_>) -> Result<Model, DbErr> {
    if let Some(row) = find_by_name(tx, new).await? {
        return Ok(row);
    }
    let row = ActiveModel {
        id: NotSet,
        name: Set(new.name.to_owned()),
        base_url_hash: Set(new.base_url_hash.to_owned()),
        dimensions: Set(i64::try_from(new.dimensions).unwrap_or(i64::MAX)),
        score_low: Set(f64::from(new.cosine_range.0)),
        score_high: Set(f64::from(new.cosine_range.1)),
    };
    // Another node may insert it at the same time.
    Entity::insert(row)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(tx)
        .await?;
    let row = find_by_name(tx, new).await?;
    row.ok_or_else(|| DbErr::RecordNotFound("the embedding model".to_owned()))
}
