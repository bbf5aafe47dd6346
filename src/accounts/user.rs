//! Table `users`: creates, finds and updates user accounts. An account without a password is a
//! guest.

use base::clock::Timestamp;
use base::ids::UserId;
use base::language_tag::LanguageTag;
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::LockType;
use sea_orm::{PaginatorTrait, QuerySelect};
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::confusable_names::NameSkeleton;
use crate::accounts::username_password::Username;
use crate::accounts::{secret_token, username_password};
use crate::db::backend;
use crate::db::backend::Backend;
use crate::db::connect::Db;
use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "users")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: UserId,
    pub username: String,
    /// Result of [`username_password::normalize_username`]; must be unique.
    pub username_key: String,
    /// Skeleton of the username ([`NameSkeleton`]), unique among accounts. `None`: the account is
    /// older than this rule and was confusable with another.
    pub username_look_as_written: Option<String>,
    pub username_look_in_one_case: Option<String>,
    pub display_name: String,
    /// `None`: a guest, who can sign in only by the session.
    pub password_hash: Option<String>,
    pub role: UserRole,
    pub status: UserStatus,
    pub locale: String,
    /// The settings of the user's own pages; the server reads only `language`.
    #[sea_orm(column_type = "JsonBinary")]
    pub settings: Json,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// The role of an account on the whole server.
    #[schema(as = UserRole)]
    UserRole { Admin, User }
    /// Whether an account may sign in.
    #[schema(as = UserStatus)]
    UserStatus { Active, Disabled }
}

/// A user account as the API shows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    pub id: UserId,
    pub username: String,
    pub display_name: String,
    pub role: UserRole,
    pub status: UserStatus,
    pub locale: String,
    /// Whether the account has no password and is lost when its session ends.
    pub is_guest: bool,
    /// The settings of the caller's own pages; null in the documents of others. `language` is the language in
    /// which the caller reads (BCP 47).
    #[schema(value_type = Option<Object>)]
    pub settings: Option<Json>,
}

impl Model {
    /// Returns whether this is a guest, who joined by a link and has no password: when the session
    /// ends, the account can no longer be used.
    pub fn is_guest(&self) -> bool {
        self.password_hash.is_none()
    }

    /// Returns the language in which the user reads: that of their settings, else that of their pages.
    pub fn reading_language(&self) -> Option<LanguageTag> {
        let chosen = self.settings["language"].as_str();
        chosen
            .and_then(LanguageTag::parse)
            .or_else(|| LanguageTag::parse(&self.locale))
    }

    /// Returns the document for the user, who alone sees the settings.
    pub fn own_view(&self) -> UserView {
        UserView {
            settings: Some(self.settings.clone()),
            ..self.view()
        }
    }

    /// Returns the document for other users.
    pub fn view(&self) -> UserView {
        UserView {
            id: self.id,
            username: self.username.clone(),
            display_name: self.display_name.clone(),
            role: self.role,
            status: self.status,
            locale: self.locale.clone(),
            is_guest: self.is_guest(),
            settings: None,
        }
    }
}

/// Validated input for a new account.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub username: Username,
    pub display_name: String,
    /// `None`: a guest.
    pub password_hash: Option<String>,
}

impl NewUser {
    /// Returns a guest with a unique username.
    pub fn create_guest(display_name: String) -> Self {
        let suffix = secret_token::hash(&secret_token::generate());
        let username = Username::parse(&format!("guest-{}", &suffix[..16]));
        Self {
            username: username.expect("letters, digits and a dash are a valid username"),
            display_name,
            password_hash: None,
        }
    }
}

/// Changes that users make to their own account; `None` keeps a value.
#[derive(Clone, Debug, Default)]
pub struct ProfileChange {
    pub username: Option<Username>,
    pub display_name: Option<String>,
    pub password_hash: Option<String>,
    pub locale: Option<String>,
    /// All settings of the user's pages.
    pub settings: Option<Json>,
}

/// Why an account was not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error("This username is taken or too similar to another one.")]
    UsernameTaken,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Creates the first account, an admin. Returns `None` if another account was created first.
pub async fn create_first_admin(
    db: &Db,
    new: NewUser,
    now: Timestamp,
) -> Result<Option<Model>, DbErr> {
    let backend = db.backend();
    db.write(move |tx| {
        Box::pin(async move {
            // SQLite serializes writing transactions; PostgreSQL needs a lock.
            if backend == Backend::Postgres {
                tx.execute_unprepared("lock table users in share row exclusive mode")
                    .await?;
            }
            if !is_empty(tx).await? {
                return Ok(None);
            }
            new_row(new, UserRole::Admin, now)
                .insert(tx)
                .await
                .map(Some)
        })
    })
    .await
}

/// Creates an account without admin rights, in a transaction of its own.
pub async fn register(db: &Db, new: NewUser, now: Timestamp) -> Result<Model, UserError> {
    db.write(move |tx| Box::pin(async move { create(tx, new, now).await }))
        .await
}

/// Creates an account without admin rights.
pub async fn create(
    tx: &impl ConnectionTrait,
    new: NewUser,
    now: Timestamp,
) -> Result<Model, UserError> {
    new_row(new, UserRole::User, now)
        .insert(tx)
        .await
        .map_err(to_user_error)
}

/// Locks an account's row until the transaction ends, so that only one transaction at a time counts
/// the data of the account.
///
/// # Errors
/// Returns `RecordNotFound` when the account does not exist, and any database error.
pub async fn lock_row(tx: &impl ConnectionTrait, id: UserId) -> Result<(), DbErr> {
    let row = Entity::find_by_id(id).select_only().column(Column::Id);
    let locked: Option<UserId> = row
        .lock(LockType::NoKeyUpdate) // other transactions may still reference the account
        .into_tuple()
        .one(tx)
        .await?;
    match locked {
        Some(_) => Ok(()),
        None => Err(DbErr::RecordNotFound("the account does not exist".into())),
    }
}

/// Changes an account.
pub async fn update(
    tx: &impl ConnectionTrait,
    id: UserId,
    change: ProfileChange,
) -> Result<Model, UserError> {
    let mut row = ActiveModel {
        id: Unchanged(id),
        ..Default::default()
    };
    if let Some(username) = change.username {
        let skeleton = NameSkeleton::from_name(username.as_str());
        row.username_key = Set(username_password::normalize_username(username.as_str()));
        row.username_look_as_written = Set(Some(skeleton.as_written().to_owned()));
        row.username_look_in_one_case = Set(Some(skeleton.in_one_case().to_owned()));
        row.username = Set(username.as_str().to_owned());
    }
    if let Some(display_name) = change.display_name {
        row.display_name = Set(display_name);
    }
    if let Some(hash) = change.password_hash {
        row.password_hash = Set(Some(hash));
    }
    if let Some(locale) = change.locale {
        row.locale = Set(locale);
    }
    if let Some(settings) = change.settings {
        row.settings = Set(settings);
    }
    row.update(tx).await.map_err(to_user_error)
}

fn new_row(new: NewUser, role: UserRole, now: Timestamp) -> ActiveModel {
    let skeleton = NameSkeleton::from_name(new.username.as_str());
    ActiveModel {
        id: NotSet,
        username_key: Set(username_password::normalize_username(new.username.as_str())),
        username_look_as_written: Set(Some(skeleton.as_written().to_owned())),
        username_look_in_one_case: Set(Some(skeleton.in_one_case().to_owned())),
        username: Set(new.username.as_str().to_owned()),
        display_name: Set(new.display_name),
        password_hash: Set(new.password_hash),
        role: Set(role),
        status: Set(UserStatus::Active),
        locale: Set("en".to_owned()),
        settings: Set(serde_json::json!({})),
        created_at: Set(now),
    }
}

fn to_user_error(error: DbErr) -> UserError {
    match backend::is_unique_violation(&error) {
        true => UserError::UsernameTaken,
        false => UserError::Db(error),
    }
}

/// Returns an account, disabled or not. The caller checks who may see it.
pub async fn find(db: &impl ConnectionTrait, id: UserId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns an account that may sign in.
pub async fn find_active(db: &impl ConnectionTrait, id: UserId) -> Result<Option<Model>, DbErr> {
    let user = Entity::find_by_id(id).filter(Column::Status.eq(UserStatus::Active));
    user.one(db).await
}

/// Returns the account with this username; case does not matter.
pub async fn find_by_username(
    db: &impl ConnectionTrait,
    username: &str,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::UsernameKey.eq(username_password::normalize_username(username)))
        .one(db)
        .await
}

/// Returns the number of accounts, disabled ones included.
pub async fn count(db: &impl ConnectionTrait) -> Result<u64, DbErr> {
    Entity::find().count(db).await
}

/// Returns the number of accounts without a password.
pub async fn count_guests(db: &impl ConnectionTrait) -> Result<u64, DbErr> {
    let guests = Entity::find().filter(Column::PasswordHash.is_null());
    guests.count(db).await
}

/// Returns whether no account exists.
pub async fn is_empty(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    Ok(Entity::find().one(db).await?.is_none())
}
