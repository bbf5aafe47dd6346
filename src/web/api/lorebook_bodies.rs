//! Defines and validates the request and response bodies of the endpoints that create, change,
//! import and link lorebooks.

use base::display_name;
use base::ids::LorebookId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tavern::import_warning::ImportWarning;
use tavern::lorebook_files::file;
use utoipa::ToSchema;

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::lorebooks::lorebook;
use crate::web::api::lorebook_entry_bodies;
use crate::web::api::lorebook_entry_bodies::{EntryView, LorebookEntryBody, too_large};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::json_body as body;

/// A new lorebook.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLorebook)]
pub struct CreateLorebook {
    #[schema(value_type = DisplayNameSchema)]
    name: String,
    description: Option<String>,
    #[schema(minimum = 0, maximum = 1_000)]
    scan_depth: Option<i64>,
    #[schema(minimum = 0, maximum = 10_000_000)]
    token_budget: Option<i64>,
    recursive_scanning: Option<bool>,
    /// As in a `character_book`.
    #[schema(value_type = Option<Vec<LorebookEntryBody>>, max_items = 5_000)]
    entries: Option<Vec<Map<String, Value>>>,
}

/// Changes to a lorebook.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = LorebookChange)]
pub struct UpdateLorebook {
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = DisplayNameSchema)]
    name: Option<String>,
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = String)]
    description: Option<String>,
    /// Null: the scan depth of the space applies.
    #[serde(deserialize_with = "double")]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1_000)]
    scan_depth: Option<Option<i64>>,
    /// Null: no limit of its own.
    #[serde(deserialize_with = "double")]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 10_000_000)]
    token_budget: Option<Option<i64>>,
    /// Null: the setting of the space applies.
    #[serde(deserialize_with = "double")]
    #[schema(value_type = Option<bool>)]
    recursive_scanning: Option<Option<bool>>,
}

/// Deserializes a field that distinguishes null from absent.
fn double<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// A lorebook with its entries.
#[derive(Serialize, ToSchema)]
#[schema(as = LorebookWithEntries)]
pub struct LorebookDetail {
    #[serde(flatten)]
    pub book: lorebook::LorebookView,
    /// In the order in which they are stored.
    pub entries: Vec<EntryView>,
}

/// An imported lorebook.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportedLorebook)]
pub struct ImportedLorebookResponse {
    pub lorebook: LorebookDetail,
    /// Repaired or skipped parts, as sentences.
    pub warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    pub warnings_coded: Vec<ImportWarning>,
}

/// The lorebooks that are linked to a space, conversation or character.
#[derive(Serialize, ToSchema)]
#[schema(as = LorebookLinks)]
pub struct LorebookLinks {
    /// In order of precedence.
    pub lorebook_ids: Vec<LorebookId>,
    pub lorebooks: Vec<LinkedLorebook>,
}

/// A linked lorebook, as every member may see it.
#[derive(Serialize, ToSchema)]
#[schema(as = LinkedLorebook)]
pub struct LinkedLorebook {
    pub id: LorebookId,
    pub name: String,
    pub n_entries: u64,
}

/// The lorebooks to link; they replace the present links.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLorebookLinks)]
pub struct SetLinks {
    /// In order of precedence.
    #[schema(max_items = 50)]
    pub lorebook_ids: Vec<LorebookId>,
}

impl CreateLorebook {
    /// Validates the new lorebook.
    ///
    /// # Errors
    /// Returns 400 for a wrong type and 422 for an invalid value, naming the field.
    pub fn parse(self) -> ApiResult<file::ParsedLorebook> {
        let mut document = Map::new();
        require_range("scan_depth", self.scan_depth, 1_000)?;
        require_range("token_budget", self.token_budget, 10_000_000)?;
        let fields = [
            ("description", json!(self.description)),
            ("scan_depth", json!(self.scan_depth)),
            ("token_budget", json!(self.token_budget)),
            ("recursive_scanning", json!(self.recursive_scanning)),
        ];
        let stated = fields.into_iter().filter(|(_, it)| !it.is_null());
        document.extend(stated.map(|(field, value)| (field.to_owned(), value)));
        let entries = self.entries.unwrap_or_default().into_iter().enumerate();
        let entries: ApiResult<Vec<Value>> = entries
            .map(
                |(n, entry)| match lorebook_entry_bodies::require_known_fields(&entry) {
                    Ok(()) => Ok(Value::Object(entry)),
                    Err(error) => Err(error.within(&format!("entries.{n}"))),
                },
            )
            .collect();
        let book = json!({"entries": entries?});
        let mut draft = file::from_value(book, "").map_err(|error| too_large(&error))?;
        draft.name = parse_name(&self.name)?;
        draft.document = document;
        Ok(draft)
    }
}

impl UpdateLorebook {
    /// Applies the change to `document`; returns the new name, if any, and the new document.
    ///
    /// # Errors
    /// Returns 422 for an invalid value, naming the field.
    pub fn apply_to(self, mut document: Map<String, Value>) -> ApiResult<(Option<String>, Value)> {
        require_range("scan_depth", self.scan_depth.flatten(), 1_000)?;
        require_range("token_budget", self.token_budget.flatten(), 10_000_000)?;
        let fields = [
            ("description", self.description.map(|it| json!(it))),
            ("scan_depth", self.scan_depth.map(|it| json!(it))),
            ("token_budget", self.token_budget.map(|it| json!(it))),
            (
                "recursive_scanning",
                self.recursive_scanning.map(|it| json!(it)),
            ),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                document.insert(field.to_owned(), value);
            }
        }
        let name = self.name.as_deref().map(parse_name).transpose()?;
        Ok((name, Value::Object(document)))
    }
}

fn parse_name(text: &str) -> ApiResult<String> {
    let name = display_name::parse(text, file::MAX_NAME_CHARS);
    name.map_err(|it| ApiError::invalid_value("name", it.to_string()))
}

fn require_range(field: &str, value: Option<i64>, most: i64) -> ApiResult<()> {
    match value.is_none_or(|it| (0..=most).contains(&it)) {
        true => Ok(()),
        false => Err(ApiError::invalid_value(
            field,
            format!("Must be between 0 and {most}."),
        )),
    }
}
