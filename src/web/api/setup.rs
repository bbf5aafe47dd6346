//! Endpoints of the first-time setup: return whether it is needed, and create the first admin
//! account with a sample space.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::accounts::user;
use crate::accounts::username_password::{Password, Username};
use crate::app::App;
use crate::web::api::account_input::Registration;
use crate::web::api::session::SignedIn;
use crate::web::api::{sample_space, session};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::json_body::JsonBody;

/// The account of the first admin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SetUp)]
pub struct CreateAdmin {
    #[schema(value_type = Username)]
    username: String,
    #[schema(value_type = Password)]
    password: String,
    #[schema(value_type = DisplayNameSchema)]
    display_name: String,
}

/// Whether setup is needed.
#[derive(Serialize, ToSchema)]
#[schema(as = SetUpNeeded)]
pub struct SetupStatus {
    needed: bool,
}

/// Returns whether this server still needs its first admin.
#[utoipa::path(
    get,
    path = "/api/setup",
    operation_id = "needed",
    tag = "setup",
    security(),
    responses((status = 200, body = SetupStatus))
)]
pub async fn show_status(app: Data<App>) -> ApiResult<Json<SetupStatus>> {
    let needed = user::is_empty(app.db.reader()).await?;
    Ok(Json(SetupStatus { needed }))
}

/// Creates the first admin and a sample space, and signs in.
///
/// Setup is possible only once; later requests are rejected.
#[utoipa::path(
    post,
    path = "/api/setup",
    operation_id = "set_up",
    tag = "setup",
    security(),
    request_body = CreateAdmin,
    responses(
        (status = 201, body = SignedIn, headers(("set-cookie" = String))),
        (status = 409, description = "`already_set_up`.")
    )
)]
pub async fn create_admin(
    app: Data<App>,
    request: HttpRequest,
    body: JsonBody<CreateAdmin>,
) -> ApiResult<HttpResponse> {
    // Also check before hashing, because a rejected request should not cost a hash.
    if !user::is_empty(app.db.reader()).await? {
        return Err(already_set_up_error());
    }
    let body = body.read().await?;
    let registration = Registration::parse(&body.username, &body.display_name, &body.password)?;
    let new = registration.into_new_user(&app).await?;
    let admin = user::create_first_admin(&app.db, new, app.clock.now())
        .await?
        .ok_or_else(already_set_up_error)?;
    let answer = session::open_session(&app, &request, StatusCode::CREATED, &admin).await?;
    if let Err(error) = sample_space::create(&app, &admin).await {
        // The account exists, so sign in even without a sample space.
        tracing::error!(%error, "failed to create the sample space");
    }
    Ok(answer)
}

fn already_set_up_error() -> ApiError {
    ApiError::conflict(
        "already_set_up",
        "This server already has an admin. Sign in instead.",
    )
}
