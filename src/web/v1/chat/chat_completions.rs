//! Handler of `POST /v1/chat/completions`: runs the request as a response that is not stored, and
//! returns the completion or the stream of its chunks.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::fold::chat_objects::{ChatChunk, ChatCompletion};
use responses_api::request::chat::chat_completion::CreateChatCompletion;
use responses_api::schemas::chat_body::ChatCompletionBody;

use crate::app::App;
use crate::responses::foreground::chat_choices::{PendingChat, StartedChat};
use crate::responses::preparation;
use crate::responses::request::ChatRequest;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::chat::{chat_errors, chat_stream};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::headers::{ignored_parameters, space_tokens};
use crate::web::v1::http::{call_origin, idempotency};
use crate::web::v1::parsing::{body, remote_files};
use crate::web::v1::responses;

/// Completes a chat.
///
/// # Errors
/// Returns why the request is invalid or refused, or why the model failed before its first output.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "complete_chat",
    tag = "v1",
    request_body = ChatCompletionBody,
    responses(
        (status = 200, description = "The completion, or its chunks.", content(
            (ChatCompletion = "application/json"),
            (ChatChunk = "text/event-stream")
        )),
        (status = 403),
        (status = 404, description = "`model_not_found`: no model that the caller may use has this id."),
        (status = 502)
    )
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    responses::require_rate_limit(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut request = CreateChatCompletion::parse(&body)?;
    drop(body);
    space_tokens::attach_to_request(&app, &caller, &http, &request.model).await?;
    let (message_positions, mut ignored) = (
        std::mem::take(&mut request.message_positions),
        std::mem::take(&mut request.ignored),
    );
    idempotency::add_ignored(&http, &mut ignored);
    let in_messages = |error| chat_errors::in_messages(error, &message_positions);
    remote_files::fetch(&app, caller.id(), "input", &mut request.input)
        .await
        .map_err(in_messages)?;
    let mut chat = ChatRequest::from(request);
    chat.request.origin = call_origin::of(&http, &caller);
    let (model, reasoning) = (&chat.request.model, chat.request.stored.reasoning);
    let services = app.responses.services();
    let unused =
        preparation::ignored_reasoning(services, caller.id(), model, reasoning, "reasoning_effort");
    ignored.extend(unused.await.map_err(V1Error::from)?);
    let started = app.responses.complete_chat(caller.id(), chat);
    let mut answer = match started.await.map_err(|it| in_messages(it.into()))? {
        StartedChat::Streamed(chat) => chat_stream::start(chat).await?,
        StartedChat::Blocking(chat) => complete(chat).await?,
    };
    ignored_parameters::add_header(&mut answer, &ignored);
    Ok(answer)
}

async fn complete(chat: PendingChat) -> V1Result<HttpResponse> {
    let completion = chat.wait().await.ok_or_else(chat_errors::no_result)?;
    let completion = completion.map_err(|it| V1Error::from_failure(&it))?;
    Ok(HttpResponse::Ok().json(completion))
}
