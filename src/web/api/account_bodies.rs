//! Defines the request and response bodies of the endpoints that register an account and change the
//! caller's own account.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::accounts::user;
use crate::accounts::username_password::{Password, Username};
use crate::web::api::join::JoinedSpace;
use crate::web::api::session::SignedIn;
use crate::web::extract::json_body;
use crate::web::openapi::endpoint::NamedSchema;
use crate::web::openapi::schemas;

/// A new account.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Register)]
pub struct CreateUser {
    #[schema(value_type = Username)]
    pub username: String,
    #[schema(value_type = Password)]
    pub password: String,
    #[schema(value_type = DisplayNameSchema)]
    pub display_name: String,
    pub invite_token: Option<String>,
}

/// The new account and, with an invitation, its membership.
pub struct RegisteredUser;

impl PartialSchema for RegisteredUser {
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new()
            .item(Ref::from_schema_name(JoinedSpace::name()))
            .item(Ref::from_schema_name(SignedIn::name()))
            .description(Some(
                "The signed-in user and, with an invite, the membership.",
            ))
            .into()
    }
}

impl ToSchema for RegisteredUser {
    fn name() -> Cow<'static, str> {
        "Registered".into()
    }

    fn schemas(named: &mut Vec<NamedSchema>) {
        named.extend(schemas::for_type::<JoinedSpace>());
        named.extend(schemas::for_type::<SignedIn>());
    }
}

/// Changes to the caller's own account.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeMe)]
pub struct UpdateMe {
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = DisplayNameSchema)]
    pub display_name: Option<String>,
    /// A language tag such as `en` or `pt-BR`.
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false, pattern = "^[A-Za-z0-9-]{2,16}$")]
    pub locale: Option<String>,
    /// All settings of the caller's own pages, in at most 64 KiB. `language` is the language in which the
    /// caller reads (BCP 47).
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = Object, nullable = false)]
    pub settings: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = Username)]
    pub username: Option<String>,
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = Password)]
    pub password: Option<String>,
    /// Required with a new password, unless the account has none yet.
    #[schema(format = Password)]
    pub current_password: Option<String>,
    /// With a new password: also revokes all API keys. Sessions end in any case.
    #[serde(default)]
    pub revoke_api_keys: bool,
}

/// The caller's account after a change.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedMe)]
pub struct UpdatedMe {
    #[serde(flatten)]
    pub user: user::UserView,
    /// The number of API keys that are still valid.
    pub api_keys_active: u64,
}
