//! Handler of `POST /v1/embeddings`: returns the vectors of texts, from the local embedding or from the
//! embedding model of a provider.

use actix_web::http::header::ContentType;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::embedding_list::EmbeddingObjects;
use responses_api::request::create_embeddings::CreateEmbeddings;
use responses_api::schemas::request_bodies::EmbeddingsBody;

use crate::app::App;
use crate::responses::embeddings::relay_request::EmbeddingCaller;
use crate::web::error::ApiError;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::V1Result;
use crate::web::v1::headers::ignored_parameters;
use crate::web::v1::http::{call_origin, idempotency};
use crate::web::v1::parsing::body;
use crate::web::v1::responses;

/// Returns the vectors of texts. Nothing is stored.
///
/// # Errors
/// Returns 400 for an invalid request and for one that the provider refuses, 404 for an unknown
/// model, 429 when the provider limits its requests, 502 when it fails, and 503 when too many
/// requests wait.
#[utoipa::path(
    post,
    path = "/v1/embeddings",
    operation_id = "create_embeddings",
    tag = "v1",
    request_body = EmbeddingsBody,
    responses((status = 200, body = EmbeddingObjects), (status = 404, description = "`model_not_found`: no model that the caller may use has this id."), (status = 502))
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    responses::require_rate_limit(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let request = CreateEmbeddings::parse(&body)?;
    drop(body);
    let (model, encoding) = (request.model.clone(), request.encoding);
    let embedding_caller = EmbeddingCaller {
        user: caller.id(),
        origin: call_origin::of(&http, &caller),
    };
    let relayed = app.embedding_relay.embed(embedding_caller, request).await?;
    let ignored = relayed.ignored;
    // Thousands of vectors take a noticeable time to write.
    let write = move || {
        let (vectors, n_tokens) = (relayed.vectors, relayed.n_tokens);
        serde_json::to_vec(&EmbeddingObjects::new(model, vectors, encoding, n_tokens))
    };
    let written = app.shutdown.main().spawn_blocking(write).await;
    let written = written.map_err(ApiError::internal)?;
    let written = written.map_err(ApiError::internal)?;
    let mut answer = HttpResponse::Ok()
        .insert_header(ContentType::json())
        .body(written);
    let mut ignored: Vec<String> = ignored.map(str::to_owned).into_iter().collect();
    idempotency::add_ignored(&http, &mut ignored);
    ignored_parameters::add_header(&mut answer, &ignored);
    Ok(answer)
}
