//! The calls of `/v1/responses`.

use crate::app::App;
use crate::http::authentication::Credential;
use crate::http::authentication::CurrentUser;
use crate::openai::body;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::far_files;
use crate::openai::fields::wrong_value;
use crate::openai::key::Caller;
use crate::openai::list;
use crate::openai::list::Asked;
use crate::openai::request;
use crate::openai::sse;
use crate::openai::sse::Padding;
use crate::responses::desk::Begun;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Path;
use actix_web::web::Payload;
use serde_json::json;

/// Begins a response, and tells it: whole, as a stream, or that it waits.
///
/// # Errors
/// Nothing was begun; what has begun answers 200, whatever becomes of it.
pub async fn create(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    payload: Payload,
) -> Answer<HttpResponse> {
    must_not_hurry(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut spec = request::parse(&body)?;
    let padding = Padding::asked(request::is_padded(&body));
    drop(body);
    far_files::fetch(&app, caller.id(), "input", &mut spec.input).await?;
    match app.responses.create(caller.id(), spec).await? {
        Begun::Streamed(reader) => Ok(sse::answer(reader, padding)),
        Begun::Queued(document) => Ok(HttpResponse::Ok().json(document)),
        Begun::Whole(whole) => {
            let document = whole.wait().await;
            let document = document.ok_or_else(|| {
                tracing::error!("the task of a response ended without one");
                Problem::new(500, "internal", "Something went wrong on the server.")
            })?;
            Ok(HttpResponse::Ok().json(document))
        }
    }
}

/// Each key may ask so often.
async fn must_not_hurry(app: &App, caller: &CurrentUser) -> Answer<()> {
    if let Credential::ApiKey(key) = caller.credential {
        app.limits.responses.acquire(key).await?;
    }
    Ok(())
}

/// A response as it stands, or the stream of a background one from the beginning.
///
/// # Errors
/// 404, or 400 for a stream that is not to be had.
pub async fn show(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let asked = Asked::read(http.query_string());
    let after = asked.number("starting_after")?;
    asked.include()?;
    if asked.flag("stream")? {
        let after = after.unwrap_or(-1);
        let reader = app.responses.replay(caller.id(), &id, after).await?;
        let padding = Padding::asked(asked.flag(request::PADDING)?);
        return Ok(sse::answer(reader, padding));
    }
    if after.is_some() {
        return Err(wrong_value(
            "starting_after",
            "a place in a stream: ask for one",
        ));
    }
    let document = app.responses.show(caller.id(), &id).await?;
    Ok(HttpResponse::Ok().json(document))
}

/// Deletes a response.
///
/// # Errors
/// 404.
pub async fn delete(
    app: Data<App>,
    Caller(caller): Caller,
    id: Path<String>,
) -> Answer<HttpResponse> {
    app.responses.delete(caller.id(), &id).await?;
    let gone = json!({ "id": *id, "object": "response.deleted", "deleted": true });
    Ok(HttpResponse::Ok().json(gone))
}

/// Cancels a background response.
///
/// # Errors
/// 404, or 400 for one that is none.
pub async fn cancel(
    app: Data<App>,
    Caller(caller): Caller,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let document = app.responses.cancel(caller.id(), &id).await?;
    Ok(HttpResponse::Ok().json(document))
}

/// What a response was given.
///
/// # Errors
/// 404, or 400 for a page that makes no sense.
pub async fn input_items(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let items = app.responses.input(caller.id(), &id).await?;
    let page = list::page(items, &Asked::read(http.query_string()))?;
    Ok(HttpResponse::Ok().json(page))
}

/// Counts what a request would cost to read.
///
/// # Errors
/// As [`create`].
pub async fn input_tokens(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    payload: Payload,
) -> Answer<HttpResponse> {
    must_not_hurry(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut spec = request::parse(&body)?;
    drop(body);
    far_files::fetch(&app, caller.id(), "input", &mut spec.input).await?;
    let n_tokens = app.responses.count(caller.id(), spec).await?;
    let count = json!({ "object": "response.input_tokens", "input_tokens": n_tokens });
    Ok(HttpResponse::Ok().json(count))
}

/// 405.
pub fn wrong_method() -> Problem {
    let message = "This address does not take this method.";
    Problem::new(405, "method_not_allowed", message)
}
