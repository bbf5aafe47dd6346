//! The endpoint that applies a regex script to a text, so that an author can test it.

use actix_web::web::{Data, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tavern::regex_scripts::script::RegexScript;
use tavern::regex_scripts::script_names::ScriptNames;
use tavern::regex_scripts::script_runner::{MAX_RESULT_BYTES, ScriptRunner};
use tavern::regex_scripts::script_view::ScriptErrorView;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;

/// What `{{char}}` is in a test.
const CHARACTER: &str = "Character";

/// A script and a text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RegexScriptTest)]
pub struct TestScript {
    /// A script as in a card or a preset; its placement and its other conditions are ignored.
    #[schema(value_type = Object)]
    script: Map<String, Value>,
    #[schema(max_length = 65_536)]
    text: String,
}

/// The text after the script.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegexScriptTestResult)]
pub struct TestedScript {
    text: String,
    /// Whether the script found anything.
    changed: bool,
    /// Why it left the text as it was.
    error: Option<ScriptErrorView>,
}

/// Applies a regex script to a text. Nothing is stored. `{{user}}` is the caller, `{{char}}` is
/// `Character`, and other values are empty.
#[utoipa::path(
    post,
    path = "/api/regex_scripts/test",
    operation_id = "test_script",
    tag = "characters",
    request_body = TestScript,
    responses(
        (status = 200, body = TestedScript),
        (status = 422, description = "`invalid_value`: the text is too long.")
    )
)]
pub async fn test(
    app: Data<App>,
    caller: CurrentUser,
    body: JsonBody<TestScript>,
) -> ApiResult<Json<TestedScript>> {
    let TestScript { script, text } = body.read().await?;
    if text.len() > MAX_RESULT_BYTES {
        let message = format!("Must have at most {} KiB.", MAX_RESULT_BYTES / 1024);
        return Err(ApiError::invalid_value("text", message));
    }
    let script = RegexScript::from_value(&Value::Object(script)).unwrap_or_default();
    let user = caller.user.display_name.clone();
    // A search may need ten milliseconds.
    let testing = app.shutdown.main().spawn_blocking(move || {
        let names = ScriptNames {
            character: CHARACTER,
            user: &user,
        };
        let found = ScriptRunner::default().apply(&script, &text, &|it| names.expand(it));
        match found {
            Ok(Some(changed)) => TestedScript {
                text: changed,
                changed: true,
                error: None,
            },
            Ok(None) => TestedScript {
                text,
                changed: false,
                error: None,
            },
            Err(error) => TestedScript {
                text,
                changed: false,
                error: Some(ScriptErrorView::from(&error)),
            },
        }
    });
    Ok(Json(testing.await.map_err(ApiError::internal)?))
}
