//! Endpoints for admins that list, show and change user accounts. A change is published to the
//! user's spaces and closes sockets that have lost their access.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Path, Query};
use base::clock::Timestamp;
use base::ids::UserId;
use realtime::envelope::{Envelope, SocketControl};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::accounts::user::{UserRole, UserStatus};
use crate::accounts::user_directory::{
    AdminUserChange, SignInSummary, UserChange, UserChangeError,
};
use crate::accounts::username_password::Password;
use crate::accounts::{user, user_directory};
use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::{account_changes, events, membership, shared_spaces};
use crate::web::api::{account_input, session};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::Admin;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::{json_body, pagination};

/// Filters of the list; the search text is parsed separately.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UserFilter {
    #[param(inline)]
    status: Option<UserStatus>,
}

/// An account as an admin sees it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdminUser)]
pub struct AdminUserView {
    #[serde(flatten)]
    user: user::UserView,
    /// The number of active sessions.
    n_sessions: i64,
    /// The number of spaces in which the user is a member.
    n_spaces: i64,
    /// Null if the user has no session and has used no API key.
    last_seen_at: Option<Timestamp>,
    created_at: Timestamp,
}

/// Changes to an account by an admin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeUser)]
pub struct UpdateUser {
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    role: Option<UserRole>,
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    status: Option<UserStatus>,
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = DisplayNameSchema)]
    display_name: Option<String>,
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = Password)]
    password: Option<String>,
}

/// Lists all accounts.
#[utoipa::path(
    get,
    path = "/api/admin/users",
    tag = "admin",
    operation_id = "list_users",
    params(("q" = Option<String>, Query, description = "Searches usernames and display names."), UserFilter, PageQuery),
    responses((status = 200, body = PageOf<AdminUserView>), (status = 403))
)]
pub async fn list(
    app: Data<App>,
    _admin: Admin,
    request: HttpRequest,
    filter: Query<UserFilter>,
    page: PageQuery,
) -> ApiResult<Json<PageOf<AdminUserView>>> {
    let text = pagination::parse_text(request.query_string(), "q")?;
    let db = app.db.reader();
    let found = user_directory::search(db, text.as_deref(), filter.status, page).await?;
    Ok(Json(PageOf {
        data: load_views(&app, found.data).await?,
        has_more: found.has_more,
        cursor: found.cursor,
    }))
}

/// Returns an account.
#[utoipa::path(
    get,
    path = "/api/admin/users/{user_id}",
    tag = "admin",
    operation_id = "show_user",
    responses((status = 200, body = AdminUserView), (status = 403))
)]
pub async fn show(
    app: Data<App>,
    _admin: Admin,
    id: Path<UserId>,
) -> ApiResult<Json<AdminUserView>> {
    let found = user::find(app.db.reader(), id.into_inner()).await?;
    let user = found.ok_or_else(ApiError::not_found)?;
    load_view(&app, user).await.map(Json)
}

/// Changes an account.
///
/// A disabled user is signed out immediately, also from open sockets. Their content is kept, and
/// their runs continue.
#[utoipa::path(
    patch,
    path = "/api/admin/users/{user_id}",
    tag = "admin",
    operation_id = "change_user",
    request_body = UpdateUser,
    responses((status = 200, body = AdminUserView), (status = 409, description = "`last_admin`; `name_taken_here`."))
)]
pub async fn update(
    app: Data<App>,
    admin: Admin,
    id: Path<UserId>,
    body: JsonBody<UpdateUser>,
) -> ApiResult<Json<AdminUserView>> {
    let body = body.read().await?;
    let name = body.display_name.as_deref();
    let change = AdminUserChange {
        role: body.role,
        status: body.status,
        display_name: name.map(account_input::parse_display_name).transpose()?,
        password_hash: match body.password.as_deref() {
            Some(password) => Some(
                account_input::hash_password(&app, account_input::parse_password(password)?)
                    .await?,
            ),
            None => None,
        },
    };
    let (by, id) = (admin.0.id(), id.into_inner());
    let (changed, memberships) = account_changes::change_by_admin(&app.db, by, id, change).await?;
    announce_user_change(&app, &changed, &memberships);
    load_view(&app, changed.after).await.map(Json)
}

/// Publishes the changed memberships to their spaces, and closes the sockets that lost their
/// access.
fn announce_user_change(app: &App, changed: &UserChange, memberships: &[membership::Model]) {
    let UserChange {
        before,
        after,
        revoked_sessions: ended,
    } = changed;
    for session in ended {
        session::announce_ended(app, after.id, *session);
    }
    if (before.status, after.status) == (UserStatus::Active, UserStatus::Disabled) {
        app.hub
            .publish(Envelope::control(after.id, SocketControl::Disabled));
    }
    if (before.role, after.role) == (UserRole::Admin, UserRole::User) {
        app.hub
            .publish(Envelope::control(after.id, SocketControl::RoleLost));
    }
    for membership in memberships {
        app.hub.publish(events::membership_updated(membership));
    }
}

async fn load_view(app: &App, user: user::Model) -> ApiResult<AdminUserView> {
    let view = load_views(app, vec![user]).await?.pop();
    view.ok_or_else(ApiError::not_found)
}

async fn load_views(app: &App, users: Vec<user::Model>) -> ApiResult<Vec<AdminUserView>> {
    let db = app.db.reader();
    let ids: Vec<UserId> = users.iter().map(|it| it.id).collect();
    let visits = user_directory::load_sign_in_summaries(db, &ids, app.clock.now()).await?;
    let n_spaces = shared_spaces::count_spaces_by_user(db, &ids).await?;
    let view = |user: user::Model| {
        let SignInSummary {
            n_sessions,
            last_seen_at,
        } = visits.get(&user.id).copied().unwrap_or_default();
        AdminUserView {
            user: user.view(),
            n_sessions,
            n_spaces: n_spaces.get(&user.id).copied().unwrap_or_default(),
            last_seen_at,
            created_at: user.created_at,
        }
    };
    Ok(users.into_iter().map(view).collect())
}

impl From<UserChangeError> for ApiError {
    fn from(error: UserChangeError) -> Self {
        match error {
            UserChangeError::NotFound => Self::not_found(),
            UserChangeError::NotAdmin => Self::forbidden(error.to_string()),
            UserChangeError::LastAdmin => Self::conflict("last_admin", error.to_string()),
            UserChangeError::GuestWithoutPassword => Self::invalid_value("role", error.to_string()),
            UserChangeError::Db(error) => error.into(),
        }
    }
}
