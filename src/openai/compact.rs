//! `POST /v1/responses/compact`: a long exchange, made short.

use crate::app::App;
use crate::http::authentication::Credential;
use crate::openai::body;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::far_files;
use crate::openai::fields::Fields;
use crate::openai::items;
use crate::openai::key::Caller;
use crate::responses::spec::Kept;
use crate::responses::spec::Spec;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Payload;
use serde_json::Map;
use serde_json::Value;

const KNOWN: [&str; 5] = [
    "input",
    "instructions",
    "model",
    "previous_response_id",
    "prompt_cache_key",
];

/// Compacts an exchange; nothing of it is stored.
///
/// # Errors
/// What is wrong with the request; 502 when the model fails.
pub async fn compact(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    payload: Payload,
) -> Answer<HttpResponse> {
    if let Credential::ApiKey(key) = caller.credential {
        app.limits.responses.acquire(key).await?;
    }
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut spec = parse(&body)?;
    drop(body);
    far_files::fetch(&app, caller.id(), "input", &mut spec.input).await?;
    let document = app.responses.compact(caller.id(), spec).await?;
    Ok(HttpResponse::Ok().json(document))
}

fn parse(body: &Map<String, Value>) -> Answer<Spec> {
    let fields = Fields(body);
    fields.only(&KNOWN)?;
    fields.text("prompt_cache_key")?;
    let model = fields.text("model")?.filter(|it| !it.is_empty());
    let model = model.ok_or_else(|| missing("model"))?.to_owned();
    let previous = fields.text("previous_response_id")?.map(str::to_owned);
    let input = match fields.get("input") {
        Some(input) => items::input(input)?,
        None if previous.is_some() => Vec::new(),
        None => return Err(missing("input")),
    };
    let instructions = fields.text("instructions")?.map(str::to_owned);
    Ok(Spec {
        model,
        input,
        previous,
        prior: None,
        conversation: None,
        store: false,
        stream: false,
        background: false,
        kept: Kept {
            instructions,
            ..Kept::default()
        },
    })
}

fn missing(name: &str) -> Problem {
    let message = "This parameter is required.";
    Problem::invalid("missing_required_parameter", name, message)
}
