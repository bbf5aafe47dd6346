//! Validates the `settings` object of spaces, conversations and memberships: known fields must have
//! valid values; unknown fields are kept for clients that use them.

use agent::tools::tool_settings::{BuiltinToolSettings, MAX_SERVERS, McpServerSettings};
use base::ids::{MembershipId, PresetId};
use serde::Deserialize;
use serde_json::{Map, Value};
use tavern::presets::partial_preset::PartialPreset;
use tavern::presets::preset_checks::ValidationError;
use utoipa::ToSchema;

use crate::accounts::name_schemas::TitleSchema;
use crate::providers::preset_overrides::{PresetDocument, ProviderOverrides};
use crate::web::api::memory_fields::MemoryFields;
use crate::web::api::quick_replies;
use crate::web::api::quick_replies::QuickReply;
use crate::web::api::setting_checks::{invalid_setting, require_model_name, require_range};
use crate::web::api::world_info_fields::WorldInfoFields;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::deserialize;

/// More than any author's note, scenario and list of stop sequences need together. In bytes.
const MAX_BYTES: usize = 64 * 1024;
/// More members or presets with scripts than a space needs to switch off.
const MAX_SWITCHED_OFF: usize = 1_000;

/// The known settings of a space, a membership or a conversation.
///
/// Unknown fields are kept for clients that use them.
#[derive(Deserialize, ToSchema)]
#[schema(as = Settings)]
pub struct KnownSettings {
    author_note: Option<AuthorNote>,
    world_info: Option<WorldInfoFields>,
    #[schema(value_type = Option<PresetDocument>)]
    preset: Option<PartialPreset>,
    #[serde(rename = "scenario_override")]
    _scenario_override: Option<String>,
    #[serde(rename = "join_prefix")]
    _join_prefix: Option<String>,
    #[serde(rename = "join_suffix")]
    _join_suffix: Option<String>,
    #[serde(rename = "group_nudge_prompt")]
    _group_nudge_prompt: Option<String>,
    #[serde(rename = "continue_nudge_prompt")]
    _continue_nudge_prompt: Option<String>,
    #[serde(rename = "relax_message_trim")]
    _relax_message_trim: Option<bool>,
    /// Spaces and memberships.
    memory: Option<MemoryFields>,
    /// Spaces only: the built-in tools that its characters may call.
    #[serde(rename = "tools")]
    _tools: Option<BuiltinToolSettings>,
    /// Spaces only: MCP servers whose tools its characters may call.
    #[schema(max_items = 8)]
    tool_servers: Option<Vec<McpServerSettings>>,
    /// Spaces only: texts and commands that its members post with a button.
    #[schema(max_items = 20)]
    quick_replies: Option<Vec<QuickReply>>,
    /// Spaces only: whose regex scripts do not run there.
    regex_scripts_off: Option<RegexScriptsOff>,
    /// Memberships of characters only: prompts contain only what was said since the character joined.
    #[serde(rename = "remembers_only_what_it_heard")]
    _remembers_only_what_it_heard: Option<bool>,
    /// Memberships only: the model of the membership's provider.
    #[schema(value_type = Option<TitleSchema>)]
    model: Option<String>,
}

/// The author's note, which is inserted into every prompt.
#[derive(Deserialize, ToSchema)]
struct AuthorNote {
    #[serde(rename = "text")]
    _text: Option<String>,
    #[serde(rename = "position")]
    _position: Option<NotePosition>,
    #[schema(minimum = 0, maximum = 10_000)]
    depth: Option<i64>,
    #[serde(rename = "role")]
    _role: Option<NoteRoleSetting>,
    #[schema(minimum = 0, maximum = 10_000)]
    interval: Option<i64>,
}

/// The position in the prompt.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NotePosition {
    InChat,
    Before,
    After,
}

/// The role of the prompt message.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = NoteRole)]
enum NoteRoleSetting {
    System,
    User,
    Assistant,
}

/// Members and presets whose regex scripts do not run.
#[derive(Deserialize, ToSchema)]
struct RegexScriptsOff {
    /// Memberships of characters, whose cards have scripts.
    #[schema(max_items = 1_000)]
    membership_ids: Option<Vec<MembershipId>>,
    #[schema(max_items = 1_000)]
    preset_ids: Option<Vec<PresetId>>,
}

/// Validates the `settings` object.
///
/// # Errors
/// Returns 400 for a wrong type and 422 for an invalid value, naming the field.
pub fn parse(settings: Map<String, Value>) -> ApiResult<Value> {
    let settings = Value::Object(settings);
    if settings.to_string().len() > MAX_BYTES {
        let message = format!("Must not exceed {} KiB.", MAX_BYTES / 1024);
        return Err(ApiError::invalid_value("settings", message));
    }
    let known: KnownSettings = deserialize::from_value(settings.clone())
        .map_err(ApiError::from)
        .map_err(|error| error.within("settings"))?;
    if let Some(model) = known.model {
        require_model_name("model", &model)?;
    }
    if let Some(note) = known.author_note {
        require_range("author_note.depth", note.depth, 0, 10_000)?;
        require_range("author_note.interval", note.interval, 0, 10_000)?;
    }
    if let Some(world) = known.world_info {
        world.validate()?;
    }
    if let Some(memory) = known.memory {
        memory.validate()?;
    }
    if let Some(preset) = known.preset {
        let overrides = deserialize::from_value(settings["preset"].clone());
        let _: ProviderOverrides = overrides
            .map_err(ApiError::from)
            .map_err(|error| error.within("settings.preset"))?;
        let invalid =
            |it: ValidationError| invalid_setting(&format!("preset.{}", it.field), it.message);
        preset.validate().map_err(invalid)?;
    }
    quick_replies::require_valid(known.quick_replies.as_deref().unwrap_or_default())?;
    if let Some(off) = known.regex_scripts_off {
        let n_members = off.membership_ids.map_or(0, |it| it.len());
        let n_presets = off.preset_ids.map_or(0, |it| it.len());
        for (key, n) in [("membership_ids", n_members), ("preset_ids", n_presets)] {
            if n > MAX_SWITCHED_OFF {
                let message = format!("Can have at most {MAX_SWITCHED_OFF} entries.");
                let key = format!("regex_scripts_off.{key}");
                return Err(invalid_setting(&key, message));
            }
        }
    }
    for (at, server) in known.tool_servers.iter().flatten().enumerate() {
        let invalid = |field: &str, message: &str| {
            invalid_setting(&format!("tool_servers.{at}.{field}"), message.to_owned())
        };
        if at >= MAX_SERVERS {
            return Err(invalid("label", "A space can have at most 8 tool servers."));
        }
        if !server.has_valid_label() {
            return Err(invalid("label", "1 to 64 letters, digits, `_` and `-`."));
        }
        if !server.has_valid_url() {
            return Err(invalid("url", "A URL such as https://example.com/mcp."));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::parse;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn valid_settings_are_kept_unchanged() {
        let settings = json!({
            "author_note": {"text": "rain", "position": "in_chat", "depth": 4, "role": "system", "interval": 1},
            "world_info": {"scan_depth": 2, "recursive": true},
            "preset": {"temperature": 0.7, "stop": ["\n"], "something_new": 1},
            "scenario_override": null,
            "quick_replies": [{"label": "Look", "text": "/roll d20", "color": "red"}],
            "unheard_of": {"a": [1]},
        });

        assert_eq!(parse(object(settings.clone())).unwrap(), settings);
        assert_eq!(parse(Map::new()).unwrap(), json!({}));
    }

    #[test]
    fn an_invalid_field_is_named() {
        let cases = [
            (json!({"author_note": 5}), 400, "settings.author_note"),
            (
                json!({"author_note": {"position": "top"}}),
                422,
                "settings.author_note.position",
            ),
            (
                json!({"author_note": {"depth": -1}}),
                422,
                "settings.author_note.depth",
            ),
            (
                json!({"world_info": {"token_budget_percent": 101}}),
                422,
                "settings.world_info.token_budget_percent",
            ),
            (
                json!({"preset": {"temperature": "hot"}}),
                400,
                "settings.preset.temperature",
            ),
            (
                json!({"preset": {"top_p": 1.5}}),
                422,
                "settings.preset.top_p",
            ),
            (
                json!({"preset": {"mode": "both"}}),
                422,
                "settings.preset.mode",
            ),
            (
                json!({"preset": {"top_k": -1}}),
                422,
                "settings.preset.top_k",
            ),
            (
                json!({"preset": {"prompt_order": [{"id": "a"}, {"id": "a"}]}}),
                422,
                "settings.preset.prompt_order.1.id",
            ),
            (
                json!({"world_info": {"max_steps": 11}}),
                422,
                "settings.world_info.max_steps",
            ),
            (
                json!({"world_info": {"insertion_strategy": "last"}}),
                422,
                "settings.world_info.insertion_strategy",
            ),
            (
                json!({"tools": {"dice": "often"}}),
                422,
                "settings.tools.dice",
            ),
            (json!({"tool_servers": {}}), 400, "settings.tool_servers"),
            (
                json!({"tool_servers": [{"label": "a b", "url": "https://a.example"}]}),
                422,
                "settings.tool_servers.0.label",
            ),
            (
                json!({"tool_servers": [{"label": "a", "url": "ftp://a.example"}]}),
                422,
                "settings.tool_servers.0.url",
            ),
            (
                json!({"quick_replies": [{"label": "Look"}]}),
                400,
                "settings.quick_replies.0.text",
            ),
            (
                json!({"quick_replies": [{"label": "Look", "text": "I look."}, {"label": " ", "text": "x"}]}),
                422,
                "settings.quick_replies.1.label",
            ),
            (
                json!({"quick_replies": [{"label": "Look", "text": "x".repeat(2_001)}]}),
                422,
                "settings.quick_replies.0.text",
            ),
            (
                json!({"quick_replies": vec![json!({"label": "a", "text": "b"}); 21]}),
                422,
                "settings.quick_replies",
            ),
            (json!({"memory": true}), 400, "settings.memory"),
            (
                json!({"memory": {"max_memories": 0}}),
                422,
                "settings.memory.max_memories",
            ),
            (
                json!({"memory": {"top_k": 21}}),
                422,
                "settings.memory.top_k",
            ),
            (
                json!({"memory": {"threshold": 1.5}}),
                422,
                "settings.memory.threshold",
            ),
            (
                json!({"memory": {"model": {"model": "a"}}}),
                400,
                "settings.memory.model.provider_id",
            ),
            (
                json!({"memory": {"model": {"provider_id": 1, "model": " "}}}),
                422,
                "settings.memory.model.model",
            ),
            (
                json!({"memory": {"embedding": {"provider_id": 0, "model": "m"}}}),
                422,
                "settings.memory.embedding.provider_id",
            ),
            (
                json!({"memory": {"embedding": {"provider_id": 1, "model": " "}}}),
                422,
                "settings.memory.embedding.model",
            ),
            (
                json!({"memory": {"embedding": {"provider_id": 1}}}),
                400,
                "settings.memory.embedding.model",
            ),
            (json!({"model": "a\nb"}), 422, "settings.model"),
            (json!({"model": " "}), 422, "settings.model"),
            (
                json!({"scenario_override": "x".repeat(70_000)}),
                422,
                "settings",
            ),
        ];

        for (settings, status, param) in cases {
            let error = parse(object(settings)).unwrap_err();
            assert_eq!(
                (error.status.as_u16(), error.param.as_deref()),
                (status, Some(param))
            );
        }
    }
}
