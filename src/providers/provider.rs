//! Table `llm_providers`: models' endpoints, with sealed keys.

use crate::clock::Timestamp;
use crate::ids::ProviderId;
use sea_orm::entity::prelude::*;
use serde::Deserialize;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "llm_providers")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ProviderId,
    pub name: String,
    pub kind: Kind,
    pub base_url: Option<String>,
    /// Sealed with the server's secret; see `seal.rs`. Never leaves the server.
    pub api_key: Option<String>,
    pub model: String,
    pub is_default: bool,
    pub disabled: bool,
    /// `context_tokens`, `max_tokens`, samplers: what this endpoint takes beside the model's name.
    #[sea_orm(column_type = "JsonBinary")]
    pub settings: Json,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Which protocol an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Demo,
    OpenaiCompatible,
    Openai,
    Anthropic,
    Gemini,
    Ollama,
}

/// The endpoint a seat speaks through: its own when that is usable, else the default one.
pub async fn usable(
    db: &impl ConnectionTrait,
    own: Option<ProviderId>,
) -> Result<Option<Model>, DbErr> {
    if let Some(id) = own {
        let found = Entity::find_by_id(id)
            .filter(Column::Disabled.eq(false))
            .one(db)
            .await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Entity::find()
        .filter(Column::IsDefault.eq(true))
        .filter(Column::Disabled.eq(false))
        .one(db)
        .await
}
