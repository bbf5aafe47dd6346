//! Handlers of `/v1/responses`: create, show, stream again, cancel and delete a response, list its
//! input items, and count the input tokens of a request.

use std::mem;

use actix_web::http::Method;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::event::StreamEvent;
use responses_api::fold::finished_events::finished_events;
use responses_api::objects::{DeletedObject, InputTokens, List, ObjectType};
use responses_api::request::create_response::CreateResponse;
use responses_api::request::parameters::INCLUDE_OBFUSCATION;
use responses_api::schemas::output_items::OtherItem;
use responses_api::schemas::response_body::CreateResponseBody;
use responses_api::schemas::response_object::ResponseObject;

use crate::accounts::credential::Credential;
use crate::app::App;
use crate::responses::engine::Created;
use crate::responses::error::ResponseEngineError;
use crate::responses::preparation;
use crate::responses::request::ResponseRequest;
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::headers::{ignored_parameters, space_tokens};
use crate::web::v1::http::idempotency::IdempotencyCheck;
use crate::web::v1::http::list_parameters::ListParameters;
use crate::web::v1::http::{call_origin, idempotency};
use crate::web::v1::pagination::ListQuery;
use crate::web::v1::parsing::{body, remote_files};
use crate::web::v1::sse::Obfuscation;
use crate::web::v1::{pagination, sse};

/// The endpoint that creates a response.
const CREATE: &str = "POST /v1/responses";

/// Creates a response and returns it: complete, as a stream, or queued.
///
/// # Errors
/// Returns an error only if no response was created. A response that begins and then fails is
/// returned with status 200.
#[utoipa::path(
    post,
    path = "/v1/responses",
    operation_id = "create_response",
    tag = "v1",
    params((
        "Idempotency-Key" = Option<String>,
        Header,
        max_length = 255,
        description = "The same request with the same key returns the same response for 24 hours."
    )),
    request_body = CreateResponseBody,
    responses(
        (status = 200, description = "The response, or its events.", content(
            (ResponseObject = "application/json"),
            (StreamEvent = "text/event-stream")
        )),
        (status = 403),
        (status = 404, description = "`model_not_found`: no model that the caller may use has this id."),
        (status = 409, description = "`conversation_locked`: another response of the conversation is in progress. `idempotency_key_in_use`: so is the first request with the key."),
        (status = 502)
    )
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    require_rate_limit(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut request = CreateResponse::parse(&body, &app.responses.server_rules())?;
    let padding = Obfuscation::from_request(request.include_obfuscation);
    space_tokens::attach_to_request(&app, &caller, &http, &request.model).await?;
    let mut ignored = mem::take(&mut request.ignored);
    let claim = match request.store {
        true => match idempotency::find(&app, &caller, &http, CREATE, &body).await? {
            IdempotencyCheck::New(claim) => claim,
            IdempotencyCheck::Repeated(id) => {
                return repeat(&app, &caller, &id, request.stream, padding).await;
            }
        },
        false => {
            idempotency::add_ignored(&http, &mut ignored);
            None
        }
    };
    drop(body);
    remote_files::fetch(&app, caller.id(), "input", &mut request.input).await?;
    let mut request = ResponseRequest::from(request);
    request.idempotency = claim;
    request.origin = call_origin::of(&http, &caller);
    let services = app.responses.services();
    let (model, reasoning) = (&request.model, request.stored.reasoning);
    let unused =
        preparation::ignored_reasoning(services, caller.id(), model, reasoning, "reasoning.effort");
    ignored.extend(unused.await?);
    let mut answer = match app.responses.create(caller.id(), request).await? {
        Created::Streamed(reader) => sse::stream_response(reader, padding),
        Created::Queued(document) => HttpResponse::Ok().json(document),
        Created::Blocking(pending) => {
            let document = pending.wait().await;
            let document = document.ok_or_else(|| {
                tracing::error!("response task ended without a result");
                V1Error::new(500, "internal", "Internal server error.")
            })?;
            HttpResponse::Ok().json(document)
        }
    };
    ignored_parameters::add_header(&mut answer, &ignored);
    Ok(answer)
}

/// Returns the response that the same request has created: the log of a background response as a stream, and
/// otherwise its present state, as a stream only once it has ended.
async fn repeat(
    app: &App,
    caller: &CurrentUser,
    id: &str,
    is_streamed: bool,
    padding: Obfuscation,
) -> V1Result<HttpResponse> {
    if !is_streamed {
        let document = app.responses.show(caller.id(), id).await?;
        return Ok(HttpResponse::Ok().json(document));
    }
    match app.responses.follow_log(caller.id(), id, -1).await {
        Ok(reader) => return Ok(sse::stream_response(reader, padding)),
        Err(ResponseEngineError::StreamNotAvailable) => {}
        Err(error) => return Err(error.into()),
    }
    let document = app.responses.show(caller.id(), id).await?;
    match document.status.is_final() {
        true => Ok(sse::whole_stream(finished_events(&document))),
        false => Err(V1Error::key_in_use()),
    }
}

/// Enforces the request rate limit of an API key.
///
/// # Errors
/// Returns 429 `rate_limited` when the limit is reached.
pub async fn require_rate_limit(app: &App, caller: &CurrentUser) -> V1Result<()> {
    if let Credential::ApiKey(key) = caller.credential {
        app.limits.responses.acquire(key).await?;
    }
    Ok(())
}

/// Returns a response, or the recorded stream of a background response.
///
/// # Errors
/// Returns 404 for an unknown response, and 400 when its stream is not available.
#[utoipa::path(
    get,
    path = "/v1/responses/{id}",
    operation_id = "show_response",
    tag = "v1",
    params(
        ("id" = String, Path),
        ("stream" = Option<bool>, Query, description = "Streams the events again, of a background response."),
        ("starting_after" = Option<i64>, Query, minimum = 0, description = "The number of the event after which the stream begins."),
        ("include_obfuscation" = Option<bool>, Query, description = "Whether deltas are padded."),
        ("include[]" = Option<Vec<String>>, Query, description = "Additional output.")
    ),
    responses((status = 200, description = "The response, or its events.", content(
        (ResponseObject = "application/json"),
        (StreamEvent = "text/event-stream")
    )), (status = 429))
)]
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let query = ListQuery::parse(http.query_string());
    let after = query.number("starting_after")?;
    query.require_known_includes()?;
    // A HEAD request gets the headers of the stored response, because a stream would be read to its end.
    if query.flag("stream")? && http.method() != Method::HEAD {
        let after = after.unwrap_or(-1);
        let reader = app.responses.follow_log(caller.id(), &id, after).await?;
        let padding = Obfuscation::from_request(query.flag(INCLUDE_OBFUSCATION)?);
        return Ok(sse::stream_response(reader, padding));
    }
    if after.is_some() {
        return Err(V1Error::wrong_value(
            "starting_after",
            "used together with `stream=true`",
        ));
    }
    let document = app.responses.show(caller.id(), &id).await?;
    Ok(HttpResponse::Ok().json(document))
}

/// Deletes a response.
///
/// # Errors
/// Returns 404 for an unknown response.
#[utoipa::path(
    delete,
    path = "/v1/responses/{id}",
    operation_id = "delete_response",
    tag = "v1",
    params(("id" = String, Path)),
    responses((status = 200, body = DeletedObject))
)]
pub async fn delete(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    app.responses.delete(caller.id(), &id).await?;
    let deleted = DeletedObject::new(id.into_inner(), ObjectType::ResponseDeleted);
    Ok(HttpResponse::Ok().json(deleted))
}

/// Cancels a background response.
///
/// # Errors
/// Returns 404 for an unknown response, and 400 for one that is not a background response.
#[utoipa::path(
    post,
    path = "/v1/responses/{id}/cancel",
    operation_id = "cancel_response",
    tag = "v1",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = ResponseObject),
        (status = 400, description = "`not_cancellable`: it is not a background response.")
    )
)]
pub async fn cancel(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let document = app.responses.cancel(caller.id(), &id).await?;
    Ok(HttpResponse::Ok().json(document))
}

/// Returns a page of the input items of a response.
///
/// # Errors
/// Returns 404 for an unknown response, and 400 for invalid page parameters.
#[utoipa::path(
    get,
    path = "/v1/responses/{id}/input_items",
    operation_id = "list_input_items",
    tag = "v1",
    params(("id" = String, Path), ListParameters),
    responses((status = 200, body = List<OtherItem>))
)]
pub async fn input_items(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let items = app.responses.list_input_items(caller.id(), &id).await?;
    let page = pagination::to_page(items, &ListQuery::parse(http.query_string()))?;
    Ok(HttpResponse::Ok().json(page))
}

/// Counts the input tokens of a request.
///
/// # Errors
/// As [`create`].
#[utoipa::path(
    post,
    path = "/v1/responses/input_tokens",
    operation_id = "count_input_tokens",
    tag = "v1",
    request_body = CreateResponseBody,
    responses((status = 200, body = InputTokens), (status = 403), (status = 404, description = "`model_not_found`: no model that the caller may use has this id."), (status = 409), (status = 502))
)]
pub async fn input_tokens(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    require_rate_limit(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut request = CreateResponse::parse(&body, &app.responses.server_rules())?;
    drop(body);
    let ignored = mem::take(&mut request.ignored);
    remote_files::fetch(&app, caller.id(), "input", &mut request.input).await?;
    let n_tokens = app
        .responses
        .count_tokens(caller.id(), request.into())
        .await?;
    let mut answer = HttpResponse::Ok().json(InputTokens::new(n_tokens));
    ignored_parameters::add_header(&mut answer, &ignored);
    Ok(answer)
}

#[cfg(test)]
#[path = "request_snapshot_tests.rs"]
mod request_snapshot_tests;
