//! Defines and validates the request bodies that create and change presets.

use base::display_name;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tavern::presets::partial_preset::PartialPreset;
use tavern::presets::preset_file::MAX_DOCUMENT_BYTES;
use utoipa::ToSchema;

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::providers::preset_overrides::{PresetDocument, ProviderOverrides};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::{deserialize, json_body as body};

/// A new preset. Without a document it is empty, and the defaults apply.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPreset)]
pub struct CreatePreset {
    #[schema(value_type = DisplayNameSchema)]
    pub name: String,
    #[serde(default, deserialize_with = "body::present")]
    #[schema(value_type = PresetDocument)]
    pub document: Option<Map<String, Value>>,
}

/// Changes to a preset; a document replaces the whole one.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = PresetChange)]
pub struct UpdatePreset {
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = DisplayNameSchema)]
    pub name: Option<String>,
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = PresetDocument)]
    pub document: Option<Map<String, Value>>,
    /// Whether its regex scripts may run; by its owner only.
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = bool)]
    pub regex_allowed: Option<bool>,
}

/// Validates the name of a preset.
///
/// # Errors
/// Returns 422 for a name that cannot be displayed.
pub fn parse_name(text: &str) -> ApiResult<String> {
    display_name::parse(text, 100).map_err(|it| ApiError::invalid_value("name", it.to_string()))
}

/// Validates a preset document.
///
/// # Errors
/// Returns 400 for a wrong type and 422 for an invalid value, naming the field.
pub fn parse_document(stated: Map<String, Value>) -> ApiResult<Value> {
    let document = Value::Object(stated);
    if document.to_string().len() > MAX_DOCUMENT_BYTES {
        let message = format!(
            "A preset must not exceed {} KiB.",
            MAX_DOCUMENT_BYTES / 1024
        );
        return Err(ApiError::invalid_value("document", message));
    }
    let _: ProviderOverrides = read(&document)?;
    let stated: PartialPreset = read(&document)?;
    if stated.preset_id.is_some() {
        let message = "A preset cannot be based on another preset.";
        return Err(ApiError::invalid_value("document.preset_id", message));
    }
    let validated = stated.validate();
    validated
        .map_err(|it| ApiError::invalid_value(&format!("document.{}", it.field), it.message))?;
    Ok(document)
}

fn read<T: DeserializeOwned>(document: &Value) -> ApiResult<T> {
    deserialize::from_value(document.clone())
        .map_err(ApiError::from)
        .map_err(|error| error.within("document"))
}
