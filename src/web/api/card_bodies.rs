//! Defines the fields and OpenAPI schemas of the bodies that create or change a character. Fields
//! other than `name` have no type, because incorrect values are repaired and reported as warnings.

use std::borrow::Cow;

use utoipa::openapi::schema::{AnyOfBuilder, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::name_schemas::CardNameSchema;
use crate::web::openapi::endpoint::NamedSchema;
use crate::web::openapi::schemas;

/// The fields of a V2 or V3 `data` object, which a body may contain without the enclosing document.
pub const FLAT_FIELDS: [&str; 22] = [
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "creator_notes",
    "creator_notes_multilingual",
    "system_prompt",
    "post_history_instructions",
    "alternate_greetings",
    "group_only_greetings",
    "character_book",
    "tags",
    "creator",
    "character_version",
    "nickname",
    "extensions",
    "assets",
    "source",
    "creation_date",
    "modification_date",
];

/// A new character: a whole card, or the fields of its `data`.
pub struct CreateCharacter;

/// A change of a character: another card, or some fields of its `data`.
pub struct UpdateCharacter;

impl PartialSchema for CreateCharacter {
    fn schema() -> RefOr<Schema> {
        let flat = flat_card_schema().required("name");
        let either = AnyOfBuilder::new().item(whole_card_schema()).item(flat);
        let about = "A new character: a whole card, or the fields of its `data`.";
        either.description(Some(about)).into()
    }
}

impl ToSchema for CreateCharacter {
    fn name() -> Cow<'static, str> {
        "NewCharacter".into()
    }

    fn schemas(named: &mut Vec<NamedSchema>) {
        named.push((
            CardNameSchema::name().into_owned(),
            CardNameSchema::schema(),
        ));
    }
}

impl PartialSchema for UpdateCharacter {
    fn schema() -> RefOr<Schema> {
        let share = || {
            ObjectBuilder::new()
                .schema_type(Type::Boolean)
                .description(Some(
                    "Whether everyone who shares a space with the character may read the whole card.",
                ))
        };
        let allowed = || {
            ObjectBuilder::new()
                .schema_type(Type::Boolean)
                .description(Some(
                    "Whether the regex scripts of the card may run; by its owner only.",
                ))
        };
        let with_flags = |card: ObjectBuilder| {
            card.property("share_whole_card", share())
                .property("regex_allowed", allowed())
        };
        let whole = with_flags(whole_card_schema());
        let flat = with_flags(flat_card_schema());
        let either = AnyOfBuilder::new().item(whole).item(flat);
        let about = "Another card, or some fields of its `data`; the others are kept.";
        either.description(Some(about)).into()
    }
}

impl ToSchema for UpdateCharacter {
    fn name() -> Cow<'static, str> {
        "CharacterChange".into()
    }

    fn schemas(named: &mut Vec<NamedSchema>) {
        CreateCharacter::schemas(named);
    }
}

fn object_schema() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object)
}

/// The schema of a V2 or V3 document. V1 and the formats of older tools are accepted too.
fn whole_card_schema() -> ObjectBuilder {
    let data = object_schema()
        .property("name", Ref::from_schema_name(CardNameSchema::name()))
        .required("name");
    let card = object_schema()
        .description(Some("A V2 or V3 document; older formats are accepted too."))
        .property("data", data)
        .required("data");
    schemas::deny_unknown()
        .property("card", card)
        .required("card")
}

fn flat_card_schema() -> ObjectBuilder {
    let anything = || ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    let flat = FLAT_FIELDS
        .into_iter()
        .fold(schemas::deny_unknown(), |flat, field| {
            flat.property(field, anything())
        });
    flat.property("name", Ref::from_schema_name(CardNameSchema::name()))
}
