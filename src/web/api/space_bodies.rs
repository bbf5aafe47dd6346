//! Defines and validates the request bodies that create and change a space.

use std::borrow::Cow;

use base::display_name;
use base::ids::ProviderId;
use base::language_tag::LanguageTag;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::spaces::lifecycle::SpaceRules;
use crate::spaces::space;
use crate::web::api::{language_input, space_settings};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::json_body;
use crate::web::openapi::endpoint::NamedSchema;

const MAX_DESCRIPTION_CHARS: usize = 4_000;

/// Changes to a space.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = SpaceChange)]
pub struct UpdateSpace {
    #[serde(deserialize_with = "json_body::present")]
    #[schema(value_type = DisplayNameSchema)]
    pub name: Option<String>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, max_length = 4_000)]
    description: Option<String>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    pub status: Option<space::SpaceStatus>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    pub reply_order: Option<space::ReplyOrder>,
    /// The provider whose model chooses speakers in the order `director`; null: the default one.
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<ProviderId>)]
    director_provider_id: Option<Option<ProviderId>>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    replies_per_turn: Option<space::RepliesPerTurn>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    card_handling_mode: Option<space::CardHandlingMode>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    allow_self_responses: Option<bool>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    pub auto_mode_enabled: Option<bool>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0, maximum = 600_000)]
    auto_mode_delay_ms: Option<i64>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 1, maximum = 100)]
    auto_mode_max_turns: Option<i64>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    during_generation_user_input_policy: Option<space::InputPolicy>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0, maximum = 60_000)]
    user_turn_debounce_ms: Option<i64>,
    /// The least number of seconds between two posts of a member. 0: off. Owners and moderators are
    /// exempt.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0, maximum = 21_600)]
    slow_mode_s: Option<i64>,
    /// Whether people get slots in rounds, as characters do.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    humans_take_turns: Option<bool>,
    /// The number of seconds after which the turn of a person is skipped. 0: never.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0, maximum = 86_400)]
    human_turn_timeout_s: Option<i64>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    group_regenerate_mode: Option<space::GroupRegenerateMode>,
    /// The provider that translates messages for people and models; null: messages are not translated.
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<ProviderId>)]
    translation_provider_id: Option<Option<ProviderId>>,
    /// The language in which models read the messages of people; null: the original.
    #[serde(deserialize_with = "json_body::nullable")]
    #[schema(value_type = Option<LanguageTag>)]
    model_language: Option<Option<String>>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(value_type = space_settings::KnownSettings)]
    settings: Option<Map<String, Value>>,
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false, minimum = 0)]
    token_limit: Option<i64>,
    /// Only for changes: the settings version on which the change is based.
    #[serde(deserialize_with = "json_body::present")]
    #[schema(nullable = false)]
    pub settings_version: Option<i64>,
}

/// Fields that a new space must not set.
pub const UPDATE_ONLY_FIELDS: [&str; 2] = ["status", "settings_version"];

impl UpdateSpace {
    /// Validates the fields.
    ///
    /// # Errors
    /// Returns 422 for an invalid value, naming the field.
    pub fn validate(self) -> ApiResult<SpaceRules> {
        Ok(SpaceRules {
            name: self.name.as_deref().map(parse_name).transpose()?,
            description: self.description.map(parse_description).transpose()?,
            status: self.status,
            reply_order: self.reply_order,
            director_provider_id: self.director_provider_id,
            replies_per_turn: self.replies_per_turn,
            card_handling_mode: self.card_handling_mode,
            allow_self_responses: self.allow_self_responses,
            auto_mode_enabled: self.auto_mode_enabled,
            auto_mode_delay_ms: require_range(
                "auto_mode_delay_ms",
                self.auto_mode_delay_ms,
                0,
                600_000,
            )?,
            auto_mode_max_turns: require_range(
                "auto_mode_max_turns",
                self.auto_mode_max_turns,
                1,
                100,
            )?,
            during_generation_user_input_policy: self.during_generation_user_input_policy,
            user_turn_debounce_ms: require_range(
                "user_turn_debounce_ms",
                self.user_turn_debounce_ms,
                0,
                60_000,
            )?,
            slow_mode_s: require_range("slow_mode_s", self.slow_mode_s, 0, 21_600)?,
            humans_take_turns: self.humans_take_turns,
            human_turn_timeout_s: require_range(
                "human_turn_timeout_s",
                self.human_turn_timeout_s,
                0,
                86_400,
            )?,
            group_regenerate_mode: self.group_regenerate_mode,
            translation_provider_id: self.translation_provider_id,
            model_language: self.model_language.map(parse_model_language).transpose()?,
            settings: self.settings.map(space_settings::parse).transpose()?,
            token_limit: require_range("token_limit", self.token_limit, 0, i64::MAX)?,
        })
    }
}

/// A new space: the fields of a change, with a required name.
pub struct CreateSpace;

impl PartialSchema for CreateSpace {
    fn schema() -> RefOr<Schema> {
        let mut schema = UpdateSpace::schema();
        if let RefOr::T(Schema::Object(it)) = &mut schema {
            it.description = Some("A new space. Omitted fields have their defaults.".to_owned());
            it.required = vec!["name".to_owned()];
            it.properties
                .retain(|field, _| !UPDATE_ONLY_FIELDS.contains(&field.as_str()));
        }
        schema
    }
}

impl ToSchema for CreateSpace {
    fn name() -> Cow<'static, str> {
        "NewSpace".into()
    }

    fn schemas(schemas: &mut Vec<NamedSchema>) {
        UpdateSpace::schemas(schemas);
    }
}

fn parse_name(text: &str) -> ApiResult<String> {
    display_name::parse(text, 100)
        .map_err(|error| ApiError::invalid_value("name", error.to_string()))
}

fn parse_description(text: String) -> ApiResult<String> {
    match text.chars().count() <= MAX_DESCRIPTION_CHARS {
        true => Ok(text),
        false => Err(ApiError::invalid_value(
            "description",
            format!("Must have at most {MAX_DESCRIPTION_CHARS} characters."),
        )),
    }
}

fn parse_model_language(text: Option<String>) -> ApiResult<Option<String>> {
    let tag = text.map(|it| language_input::parse("model_language", &it));
    Ok(tag.transpose()?.map(|it| it.to_string()))
}

fn require_range(name: &str, value: Option<i64>, least: i64, most: i64) -> ApiResult<Option<i64>> {
    match value {
        Some(it) if !(least..=most).contains(&it) => Err(ApiError::invalid_value(
            name,
            format!("Must be between {least} and {most}."),
        )),
        other => Ok(other),
    }
}
