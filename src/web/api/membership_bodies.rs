//! Defines the request body that adds a member to a space (a character, or a person with a role),
//! and the schema of the roles that a new member may have.

use std::borrow::Cow;

use base::ids::{CharacterId, UserId};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::openapi::schema::{AnyOfBuilder, SchemaType, Type};
use utoipa::openapi::{Object, ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::spaces::membership::MembershipRole;
use crate::web::openapi::schemas;

/// The member to add.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateMembership {
    pub character_id: Option<CharacterId>,
    pub user_id: Option<UserId>,
    pub role: Option<MembershipRole>,
}

impl PartialSchema for CreateMembership {
    fn schema() -> RefOr<Schema> {
        let character = schemas::deny_unknown()
            .property("character_id", CharacterId::schema())
            .required("character_id")
            .property("user_id", schemas::null())
            .property("role", schemas::null());
        let person = schemas::deny_unknown()
            .property("user_id", UserId::schema())
            .required("user_id")
            .property("character_id", schemas::null())
            .property("role", nullable_role_schema());
        AnyOfBuilder::new()
            .item(character)
            .item(person)
            .description(Some("A character, or a person with a role."))
            .into()
    }
}

impl ToSchema for CreateMembership {
    fn name() -> Cow<'static, str> {
        "NewMembership".into()
    }
}

/// Every role but the owner's, because a space has exactly one owner.
const ASSIGNABLE_ROLES: [MembershipRole; 3] = [
    MembershipRole::Moderator,
    MembershipRole::Member,
    MembershipRole::Guest,
];

/// The schema of the role of a new member.
pub fn role_schema() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(ASSIGNABLE_ROLES.map(|it| json!(it))))
        .build()
}

fn nullable_role_schema() -> ObjectBuilder {
    let roles = ASSIGNABLE_ROLES.into_iter().map(|it| json!(it));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(roles.chain([Value::Null])))
        .description(Some("The default is `member`."))
}
