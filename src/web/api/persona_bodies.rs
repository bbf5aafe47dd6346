//! Bodies of requests that create or change a persona, and their checks.

use base::display_name;
use base::prompt_role::PromptRole;
use serde::Deserialize;
use tavern::personas::persona_placement::{MAX_DEPTH, PersonaPlacement, PersonaPosition};
use utoipa::ToSchema;

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::personas::persona;
use crate::personas::persona_store::{NewPersona, PersonaUpdate};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::json_body;

/// A new persona.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPersona)]
pub struct CreatePersona {
    #[schema(value_type = DisplayNameSchema)]
    name: String,
    /// For the user's own list; never sent to a model. One line.
    #[serde(default)]
    #[schema(max_length = 100)]
    title: String,
    /// At most 16 KiB.
    #[serde(default)]
    description: String,
    /// Where the description is in a prompt.
    #[serde(default)]
    position: PersonaPosition,
    /// The number of messages after the description, with the position `at_depth`. Default: 2.
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0, maximum = 10_000)]
    depth: Option<i64>,
    /// The role of the description, with the position `at_depth`. Default: `system`.
    #[serde(default, deserialize_with = "json_body::present")]
    #[schema(value_type = PromptRole)]
    role: Option<PromptRole>,
    /// Whether the user posts under it where no other persona is chosen.
    #[serde(default)]
    is_default: bool,
}

impl CreatePersona {
    /// Returns the persona to create.
    ///
    /// # Errors
    /// Returns 422 for a value that is not valid.
    pub fn parse(self) -> ApiResult<NewPersona> {
        let usual = PersonaPlacement::default();
        Ok(NewPersona {
            name: parse_name(&self.name)?,
            title: parse_title(&self.title)?,
            description: parse_description(self.description)?,
            placement: PersonaPlacement {
                position: self.position,
                depth: parse_depth(self.depth)?.unwrap_or(usual.depth),
                role: self.role.unwrap_or(usual.role),
            },
            is_default: self.is_default,
            picture: None,
        })
    }
}

/// Changes to a persona. A new default persona replaces the previous one.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = PersonaChange)]
pub struct UpdatePersona {
    #[serde(deserialize_with = "json_body::present")]
    #[schema(value_type = DisplayNameSchema)]
    name: Option<String>,
    /// For the user's own list; never sent to a model. One line.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, max_length = 100)]
    title: Option<String>,
    /// At most 16 KiB.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    description: Option<String>,
    /// Where the description is in a prompt.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(value_type = PersonaPosition)]
    position: Option<PersonaPosition>,
    /// The number of messages after the description, with the position `at_depth`.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0, maximum = 10_000)]
    depth: Option<i64>,
    /// The role of the description, with the position `at_depth`.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(value_type = PromptRole)]
    role: Option<PromptRole>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    is_default: Option<bool>,
}

impl UpdatePersona {
    /// Returns the changes.
    ///
    /// # Errors
    /// Returns 422 for a value that is not valid.
    pub fn parse(self) -> ApiResult<PersonaUpdate> {
        Ok(PersonaUpdate {
            name: self.name.as_deref().map(parse_name).transpose()?,
            title: self.title.as_deref().map(parse_title).transpose()?,
            description: self.description.map(parse_description).transpose()?,
            position: self.position,
            depth: parse_depth(self.depth)?,
            role: self.role,
            is_default: self.is_default,
        })
    }
}

fn parse_name(name: &str) -> ApiResult<String> {
    display_name::parse(name, persona::MAX_NAME_CHARS)
        .map_err(|error| ApiError::invalid_value("name", error.to_string()))
}

/// Parses a title, which may be blank.
fn parse_title(title: &str) -> ApiResult<String> {
    if title.trim().is_empty() {
        return Ok(String::new());
    }
    display_name::parse(title, persona::MAX_NAME_CHARS)
        .map_err(|error| ApiError::invalid_value("title", error.to_string()))
}

fn parse_depth(depth: Option<i64>) -> ApiResult<Option<i64>> {
    match depth.is_none_or(|it| (0..=MAX_DEPTH).contains(&it)) {
        true => Ok(depth),
        false => {
            let message = format!("Must be between 0 and {MAX_DEPTH}.");
            Err(ApiError::invalid_value("depth", message))
        }
    }
}

fn parse_description(text: String) -> ApiResult<String> {
    if text.contains('\0') {
        let message = "Must not contain the character U+0000.";
        return Err(ApiError::invalid_value("description", message));
    }
    match text.len() <= persona::MAX_DESCRIPTION_BYTES {
        true => Ok(text),
        false => {
            let message = "A description has at most 16 KiB.";
            Err(ApiError::new(422, "too_long", message).with_param("description"))
        }
    }
}
