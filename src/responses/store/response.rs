//! Table `responses`: requests to the Responses API and their results. Only `queue.rs` changes
//! their state.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::item::visible;
use responses_api::response::{
    Response, ResponseError, ResponseHeader, ResponseState, ResponseUsage,
};
use responses_api::status::ResponseStatus;
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use serde_json::Value;

use crate::responses::request::StoredRequest;
use crate::responses::store::item;

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
    /// The node that runs it.
    pub worker_id: Option<String>,
    /// The fencing number: incremented by each claim and required to end the response.
    pub lease: i64,
    /// How often it was claimed.
    pub attempt: i64,
    /// Set from the database's clock on PostgreSQL.
    pub heartbeat_at: Option<Timestamp>,
    pub cancel_requested_at: Option<Timestamp>,
    /// The encrypted credentials of MCP servers of a background response, removed when it ends.
    pub sealed_secrets: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    /// When it ended, with any status.
    pub completed_at: Option<Timestamp>,
    /// Hidden from then on, but still part of the history of later responses.
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Returns the part of the response object that never changes.
    pub fn header(&self) -> ResponseHeader {
        ResponseHeader {
            id: self.id.clone(),
            created_at: self.created_at,
            echo: self.request.echo.clone(),
        }
    }

    /// Returns the state of the response.
    pub fn state(&self) -> ResponseState {
        ResponseState {
            status: self.status,
            error: self.error.clone(),
            incomplete_reason: self.incomplete_reason.clone(),
            usage: self.usage,
            ended_at: self.completed_at,
        }
    }

    /// Returns the response object with these output items, as they were stored.
    pub fn document(&self, output: Vec<item::Model>) -> Response<Value> {
        let output = output.into_iter().map(|it| visible(it.payload));
        Response::new(&self.header(), &self.state(), output.collect())
    }
}

/// Returns the status of a response, or `None` if it no longer exists.
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

/// Finds a response of this user. Returns `None` for foreign, unknown and deleted ones alike.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL rejects NUL in text
    }
    Entity::find_by_id(id)
        .filter(Column::UserId.eq(user))
        .filter(Column::DeletedAt.is_null())
        .one(db)
        .await
}
