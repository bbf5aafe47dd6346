//! Table `responses`: one request of a program and what became of it. Words, finders and the
//! document; the moves are in `queue.rs`, and only there.

use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::StringLen;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::ids::UserId;
use crate::responses::item;
use crate::responses::request::StoredRequest;
use crate::responses::response_document::{
    ResponseError, ResponseHeader, ResponseState, ResponseUsage, document,
};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "responses")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: UserId,
    pub previous_response_id: Option<String>,
    pub api_conversation_id: Option<String>,
    pub status: ResponseStatus,
    pub background: bool,
    pub model: String,
    pub request: StoredRequest,
    pub error: Option<ResponseError>,
    pub incomplete_reason: Option<String>,
    pub usage: Option<ResponseUsage>,
    /// The node that works on it.
    pub worker_id: Option<String>,
    /// The fence: rises with each claim, and who ends the response must name it.
    pub lease: i64,
    /// How often it was claimed.
    pub attempt: i64,
    /// On PostgreSQL by the database's clock.
    pub heartbeat_at: Option<Timestamp>,
    pub cancel_requested_at: Option<Timestamp>,
    /// What opens the servers that a background response calls, until its end.
    pub sealed_secrets: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    /// When it ended, however.
    pub completed_at: Option<Timestamp>,
    /// Nobody is shown it from then on; who goes on from it still has it as context.
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Where a response stands, in the words of the API. The last four are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    Queued,
    InProgress,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

impl ResponseStatus {
    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::InProgress)
    }
}

impl Model {
    /// What of it never changes.
    pub fn header(&self) -> ResponseHeader {
        ResponseHeader {
            id: self.id.clone(),
            created_at: self.created_at,
            echo: self.request.echo.clone(),
        }
    }

    /// Where it stands.
    pub fn state(&self) -> ResponseState {
        ResponseState {
            status: self.status,
            error: self.error.clone(),
            incomplete_reason: self.incomplete_reason.clone(),
            usage: self.usage,
            ended_at: self.completed_at,
        }
    }

    /// The object, with these items of its output.
    pub fn document(&self, output: &[item::Model]) -> Value {
        let output: Vec<Value> = output.iter().map(|it| it.payload.clone()).collect();
        document(&self.header(), &self.state(), &output)
    }
}

/// Where a response stands; `None`: it is gone.
pub async fn find_status(
    db: &impl ConnectionTrait,
    id: &str,
) -> Result<Option<ResponseStatus>, DbErr> {
    Entity::find_by_id(id)
        .select_only()
        .column(Column::Status)
        .into_tuple()
        .one(db)
        .await
}

/// A response that this user may see. Foreign, unknown and deleted are the same.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL takes it in no text
    }
    Entity::find_by_id(id)
        .filter(Column::UserId.eq(user))
        .filter(Column::DeletedAt.is_null())
        .one(db)
        .await
}
