//! Table `assistants`: the settings that a client stores for its runs of threads. A run keeps a copy
//! of them.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::object_ids;
use responses_api::request::threads::assistant_bodies::{
    AssistantChange, AssistantSettings, NewAssistant,
};
use responses_api::threads::assistant_object::{AssistantObject, StoredAssistant};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{IntoActiveModel, QuerySelect};
use serde_json::json;

use crate::db::connect::Db;
use crate::responses::threads::list_range::{ListRange, ListSlice};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "assistants")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: UserId,
    pub name: Option<String>,
    pub description: Option<String>,
    pub instructions: Option<String>,
    pub model: String,
    /// A list of tools, as the client sent them.
    #[sea_orm(column_type = "JsonBinary")]
    pub tools: Json,
    /// Written by the caller; never interpreted by the server.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub response_format: Option<Json>,
    pub created_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Returns the object of the API.
    pub fn view(&self) -> AssistantObject {
        let row = self.clone();
        AssistantObject::from(StoredAssistant {
            id: row.id,
            created_at: row.created_at,
            name: row.name,
            description: row.description,
            model: row.model,
            instructions: row.instructions,
            tools: row.tools,
            metadata: row.metadata,
            temperature: row.temperature,
            top_p: row.top_p,
            response_format: row.response_format,
        })
    }
}

/// Finds an assistant of this user. Returns `None` for foreign, unknown and deleted ones alike.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL rejects NUL in text
    }
    of_user(user).filter(Column::Id.eq(id)).one(db).await
}

/// Returns the position of an assistant in the list, also of one that was deleted recently:
/// clients delete the assistants of a page before they request the next one.
pub async fn find_position(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<Option<String>, DbErr> {
    if id.contains('\0') {
        return Ok(None);
    }
    Entity::find_by_id(id)
        .select_only()
        .column(Column::Id)
        .filter(Column::UserId.eq(user))
        .into_tuple()
        .one(db)
        .await
}

/// Returns a part of the assistants of a user. Their positions are their ids, which increase with
/// time.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    range: ListRange<String>,
) -> Result<ListSlice<Model>, DbErr> {
    range.load(db, of_user(user), Column::Id).await
}

fn of_user(user: UserId) -> Select<Entity> {
    Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::DeletedAt.is_null())
}

/// Creates an assistant.
pub async fn create(
    db: &Db,
    user: UserId,
    new: NewAssistant,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let NewAssistant { model, settings } = new;
    let row = Model {
        id: object_ids::generate(object_ids::ASSISTANT),
        user_id: user,
        name: settings.name,
        description: settings.description,
        instructions: settings.instructions,
        model,
        tools: settings.tools.unwrap_or_default().into(),
        metadata: settings.metadata.unwrap_or_default().into(),
        temperature: settings.temperature,
        top_p: settings.top_p,
        response_format: settings.response_format,
        created_at: now,
        deleted_at: None,
    };
    db.write(move |tx| {
        Box::pin(async move {
            row.clone().into_active_model().insert(tx).await?;
            Ok(row)
        })
    })
    .await
}

/// Changes what `change` contains, and returns the assistant. Returns `None` if it was deleted in
/// the meantime.
pub async fn update(db: &Db, id: String, change: AssistantChange) -> Result<Option<Model>, DbErr> {
    let AssistantChange { model, settings } = change;
    let AssistantSettings {
        name,
        description,
        instructions,
        tools,
        metadata,
        temperature,
        top_p,
        response_format,
    } = settings;
    let values: [(Column, Option<SimpleExpr>); 9] = [
        (Column::Model, model.map(Expr::value)),
        (Column::Name, name.map(Expr::value)),
        (Column::Description, description.map(Expr::value)),
        (Column::Instructions, instructions.map(Expr::value)),
        (Column::Tools, tools.map(|it| Expr::value(Json::from(it)))),
        (
            Column::Metadata,
            metadata.map(|it| Expr::value(Json::from(it))),
        ),
        (Column::Temperature, temperature.map(Expr::value)),
        (Column::TopP, top_p.map(Expr::value)),
        (Column::ResponseFormat, response_format.map(Expr::value)),
    ];
    // Also returns the row if nothing changes.
    let unchanged = Entity::update_many().col_expr(Column::UserId, Expr::col(Column::UserId));
    let update = values
        .into_iter()
        .filter_map(|(column, value)| Some((column, value?)))
        .fold(unchanged, |update, (column, value)| {
            update.col_expr(column, value)
        })
        .filter(Column::Id.eq(id))
        .filter(Column::DeletedAt.is_null());
    let updated = db.write(move |tx| Box::pin(async move { update.exec_with_returning(tx).await }));
    let updated: Result<Vec<Model>, DbErr> = updated.await;
    Ok(updated?.pop())
}

/// Marks an assistant as deleted and removes its texts; `thread_retention` deletes the row.
pub async fn delete(db: &Db, id: String, now: Timestamp) -> Result<(), DbErr> {
    let nothing = || Expr::value(Option::<String>::None);
    let update = Entity::update_many()
        .col_expr(Column::DeletedAt, Expr::value(now))
        .col_expr(Column::Name, nothing())
        .col_expr(Column::Description, nothing())
        .col_expr(Column::Instructions, nothing())
        .col_expr(Column::Tools, Expr::value(json!([])))
        .col_expr(Column::Metadata, Expr::value(json!({})))
        .col_expr(Column::ResponseFormat, Expr::value(Option::<Json>::None))
        .filter(Column::Id.eq(id))
        .filter(Column::DeletedAt.is_null());
    db.write(move |tx| Box::pin(async move { update.exec(tx).await }))
        .await
        .map(drop)
}
