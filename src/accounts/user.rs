//! Table `users`: people with an account.

use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::LockType;
use serde::Serialize;
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::accounts::confusable_names::NameSkeleton;
use crate::accounts::names::Username;
use crate::accounts::secret_token;
use crate::clock::Timestamp;
use crate::db::backend;
use crate::db::connect::{Backend, Db};
use crate::db::string_enum::string_enum;
use crate::ids::UserId;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "users")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: UserId,
    pub username: String,
    /// [`fold`] of the username: what must be unique.
    pub username_key: String,
    /// How the username looks ([`Likeness`]): no two accounts hold the same look. `None`: an older
    /// account looked alike when this rule came.
    pub username_look_as_written: Option<String>,
    pub username_look_in_one_case: Option<String>,
    pub display_name: String,
    /// `None`: a guest, who lives by the session.
    pub password_hash: Option<String>,
    pub role: UserRole,
    pub status: UserStatus,
    pub locale: String,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// What an account may do on the whole server.
    #[schema(as = UserRole)]
    UserRole { Admin, User }
    /// Whether an account may sign in.
    #[schema(as = UserStatus)]
    UserStatus { Active, Disabled }
}

/// A person with an account, as the API shows them.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    pub id: UserId,
    pub username: String,
    pub display_name: String,
    pub role: UserRole,
    pub status: UserStatus,
    pub locale: String,
    /// Whether this account lives by its session alone.
    pub is_guest: bool,
}

impl Model {
    /// Whether this is somebody who came by a link and has no password: when the session ends,
    /// nobody comes back to this account.
    pub fn is_guest(&self) -> bool {
        self.password_hash.is_none()
    }

    /// What others may read of this account.
    pub fn view(&self) -> UserView {
        UserView {
            id: self.id,
            username: self.username.clone(),
            display_name: self.display_name.clone(),
            role: self.role,
            status: self.status,
            locale: self.locale.clone(),
            is_guest: self.is_guest(),
        }
    }
}

/// A username as it is compared: NFKC, one case.
pub fn normalize_username(username: &str) -> String {
    username.nfkc().collect::<String>().to_lowercase()
}

/// An account to be made; every part has been parsed.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub username: Username,
    pub display_name: String,
    /// `None`: a guest.
    pub password_hash: Option<String>,
}

impl NewUser {
    /// A guest, with a username that nobody else has.
    pub fn create_guest(display_name: String) -> Self {
        let suffix = secret_token::hash(&secret_token::generate());
        let username = Username::parse(&format!("guest-{}", &suffix[..16]));
        Self {
            username: username.expect("letters, digits and a dash make a username"),
            display_name,
            password_hash: None,
        }
    }
}

/// What its owner changes of an account; `None` leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct ProfileChange {
    pub username: Option<Username>,
    pub display_name: Option<String>,
    pub password_hash: Option<String>,
    pub locale: Option<String>,
}

/// Why an account was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error("This username is taken, or it looks like one that is.")]
    UsernameTaken,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Makes the first account, the admin. `None`: somebody was faster.
pub async fn create_first_admin(
    db: &Db,
    new: NewUser,
    now: Timestamp,
) -> Result<Option<Model>, DbErr> {
    let backend = db.backend();
    db.write(move |tx| {
        Box::pin(async move {
            // SQLite writes one transaction after the other; PostgreSQL must be told to.
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

/// Makes an account that may do nothing on the server at large.
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

/// Lets one transaction at a time count what an account has, until it ends.
///
/// # Errors
/// When the database fails.
pub async fn lock_row(tx: &impl ConnectionTrait, id: UserId) -> Result<(), DbErr> {
    let row = Entity::find_by_id(id).select_only().column(Column::Id);
    let locked: Option<UserId> = row
        .lock(LockType::NoKeyUpdate) // others may still refer to the account
        .into_tuple()
        .one(tx)
        .await?;
    match locked {
        Some(_) => Ok(()),
        None => Err(DbErr::RecordNotFound("an account that was there".into())),
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
        row.username_key = Set(normalize_username(username.as_str()));
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
    row.update(tx).await.map_err(to_user_error)
}

fn new_row(new: NewUser, role: UserRole, now: Timestamp) -> ActiveModel {
    let skeleton = NameSkeleton::from_name(new.username.as_str());
    ActiveModel {
        id: NotSet,
        username_key: Set(normalize_username(new.username.as_str())),
        username_look_as_written: Set(Some(skeleton.as_written().to_owned())),
        username_look_in_one_case: Set(Some(skeleton.in_one_case().to_owned())),
        username: Set(new.username.as_str().to_owned()),
        display_name: Set(new.display_name),
        password_hash: Set(new.password_hash),
        role: Set(role),
        status: Set(UserStatus::Active),
        locale: Set("en".to_owned()),
        created_at: Set(now),
    }
}

fn to_user_error(error: DbErr) -> UserError {
    match backend::is_unique_violation(&error) {
        true => UserError::UsernameTaken,
        false => UserError::Db(error),
    }
}

/// The account with this name, whatever its case.
pub async fn find_by_username(
    db: &impl ConnectionTrait,
    username: &str,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::UsernameKey.eq(normalize_username(username)))
        .one(db)
        .await
}

/// Whether the server still waits for its first account.
pub async fn is_empty(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    Ok(Entity::find().one(db).await?.is_none())
}
