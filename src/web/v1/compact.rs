//! `POST /v1/responses/compact`: summarizes a long exchange.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Map, Value};

use crate::accounts::credential::Credential;
use crate::app::App;
use crate::responses::request::{ResponseRequest, StoredRequest};
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::fields::Fields;
use crate::web::v1::parsing::{body, items, remote_files};

const KNOWN: [&str; 5] = [
    "input",
    "instructions",
    "model",
    "previous_response_id",
    "prompt_cache_key",
];

/// Compacts an exchange. Nothing is stored.
///
/// # Errors
/// Returns 400 for an invalid request and 502 when the model fails.
pub async fn compact(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    if let Credential::ApiKey(key) = caller.credential {
        app.limits.responses.acquire(key).await?;
    }
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut request = parse(&body)?;
    drop(body);
    remote_files::fetch(&app, caller.id(), "input", &mut request.input).await?;
    let document = app.responses.compact(caller.id(), request).await?;
    Ok(HttpResponse::Ok().json(document))
}

pub fn parse(body: &Map<String, Value>) -> V1Result<ResponseRequest> {
    let fields = Fields(body);
    fields.require_known(&KNOWN)?;
    fields.text("prompt_cache_key")?;
    let model = fields.text("model")?.filter(|it| !it.is_empty());
    let model = model.ok_or_else(|| missing("model"))?.to_owned();
    let previous_response_id = fields.text("previous_response_id")?.map(str::to_owned);
    let input = match fields.get("input") {
        Some(input) => items::input(input)?,
        None if previous_response_id.is_some() => Vec::new(),
        None => return Err(missing("input")),
    };
    let instructions = fields.text("instructions")?.map(str::to_owned);
    Ok(ResponseRequest {
        model,
        input,
        previous_response_id,
        prior_items: None,
        conversation_id: None,
        store: false,
        stream: false,
        background: false,
        stored: StoredRequest {
            instructions,
            ..StoredRequest::default()
        },
    })
}

fn missing(name: &str) -> V1Error {
    let message = "This parameter is required.";
    V1Error::invalid("missing_required_parameter", name, message)
}
