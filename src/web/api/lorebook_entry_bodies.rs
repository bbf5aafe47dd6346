//! Defines the request and response bodies of lorebook entries, merges a change into an entry, and
//! validates the result.

use std::borrow::Cow;

use base::ids::{LorebookEntryId, LorebookId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tavern::lorebook_files::file::LorebookError;
use tavern::lorebook_files::{file, world_info};
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::lorebooks::lorebook_entry;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::deserialize;
use crate::web::openapi::endpoint::NamedSchema;

/// A lorebook entry, as in a `character_book`. SillyTavern's further fields are in `extensions`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLorebookEntry)]
pub struct LorebookEntryBody {
    /// The entry's own number, kept for other tools.
    #[serde(rename = "id")]
    _id: Option<i64>,
    #[serde(rename = "keys")]
    _keys: Option<Vec<String>>,
    #[serde(rename = "secondary_keys")]
    _secondary_keys: Option<Vec<String>>,
    #[serde(rename = "content")]
    _content: Option<String>,
    #[serde(rename = "name")]
    _name: Option<String>,
    #[serde(rename = "comment")]
    _comment: Option<String>,
    #[serde(rename = "enabled")]
    _enabled: Option<bool>,
    #[serde(rename = "insertion_order")]
    _insertion_order: Option<i64>,
    #[serde(rename = "priority")]
    _priority: Option<i64>,
    #[serde(rename = "case_sensitive")]
    _case_sensitive: Option<bool>,
    #[serde(rename = "use_regex")]
    _use_regex: Option<bool>,
    #[serde(rename = "selective")]
    _selective: Option<bool>,
    #[serde(rename = "constant")]
    _constant: Option<bool>,
    #[serde(rename = "position")]
    _position: Option<EntryPosition>,
    #[serde(rename = "extensions")]
    _extensions: Option<Map<String, Value>>,
}

/// Before or after the character description; `extensions.position` has further positions.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LorebookEntryPosition)]
enum EntryPosition {
    BeforeChar,
    AfterChar,
}

/// A lorebook entry as the API returns it.
#[derive(Serialize)]
#[serde(transparent)]
pub struct EntryView(pub Map<String, Value>);

/// Merges `change` into `present` and validates the result. Extensions are merged by key.
///
/// # Errors
/// Returns 400 for a wrong type and 422 for a value that is too large.
pub fn merge_entry(
    mut present: Map<String, Value>,
    mut change: Map<String, Value>,
) -> ApiResult<Map<String, Value>> {
    require_known_fields(&change)?;
    let is_new = present.is_empty();
    if !is_new
        || !change
            .get("id")
            .is_some_and(|it| it.is_number() || it.is_string())
    {
        change.shift_remove("id");
    }
    let had_one_name = present.get("name") == present.get("comment");
    if had_one_name && !change.contains_key("comment") {
        present.shift_remove("comment");
    }
    // An explicit `position` must override the finer `extensions.position`.
    if change.contains_key("position")
        && let Some(Value::Object(extensions)) = present.get_mut("extensions")
    {
        extensions.shift_remove("position");
    }
    if let Some(Value::Object(changed)) = change.shift_remove("extensions") {
        let extensions = present.entry("extensions").or_insert_with(|| json!({}));
        if let Value::Object(extensions) = extensions {
            extensions.extend(changed);
        }
    }
    present.extend(change);
    let entry = world_info::complete_entry(present);
    file::validate(&entry).map_err(|error| too_large(&error))?;
    Ok(entry)
}

impl EntryView {
    /// Converts a database row.
    pub fn from_model(row: &lorebook_entry::Model) -> Self {
        Self(row.view())
    }
}

/// Checks that a request body has only known fields, each of its type.
///
/// # Errors
/// Returns 400 for an unknown field or a wrong type.
pub fn require_known_fields(entry: &Map<String, Value>) -> ApiResult<()> {
    deserialize::from_value::<LorebookEntryBody>(Value::Object(entry.clone()))
        .map_err(ApiError::from)?;
    Ok(())
}

/// Converts the error of a body that exceeds a limit.
pub fn too_large(error: &LorebookError) -> ApiError {
    ApiError::new(422, "too_large", error.to_string()).with_param("entries")
}

impl From<LorebookError> for ApiError {
    fn from(error: LorebookError) -> Self {
        let code = match error {
            LorebookError::NotALorebook(_) => "not_a_lorebook",
            LorebookError::TooLarge(_) => "too_large",
        };
        Self::new(422, code, error.to_string())
    }
}

impl PartialSchema for EntryView {
    fn schema() -> RefOr<Schema> {
        let of = |kind: Type| ObjectBuilder::new().schema_type(kind);
        let texts = || ArrayBuilder::new().items(of(Type::String));
        let anything = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        let id = |name: Cow<'static, str>| Ref::from_schema_name(name);
        of(Type::Object)
            .description(Some(
                "An entry as in a `character_book`. `uid` is the entry's own number; further \
                 fields are kept.",
            ))
            .property("id", id(LorebookEntryId::name()))
            .property("lorebook_id", id(LorebookId::name()))
            .property("uid", anything)
            .property("keys", texts())
            .property("secondary_keys", texts())
            .property("content", of(Type::String))
            .property("name", of(Type::String))
            .property("comment", of(Type::String))
            .property("enabled", of(Type::Boolean))
            .property("constant", of(Type::Boolean))
            .property("selective", of(Type::Boolean))
            .property("insertion_order", of(Type::Integer))
            .property("position", of(Type::String))
            .property("extensions", of(Type::Object))
            .into()
    }
}

impl ToSchema for EntryView {
    fn name() -> Cow<'static, str> {
        "LorebookEntry".into()
    }

    fn schemas(named: &mut Vec<NamedSchema>) {
        named.push((
            LorebookEntryId::name().into_owned(),
            LorebookEntryId::schema(),
        ));
        named.push((LorebookId::name().into_owned(), LorebookId::schema()));
    }
}
