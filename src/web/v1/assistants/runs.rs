//! Handlers of `/v1/threads/{id}/runs` and `/v1/threads/runs`: create, list, show, change, cancel and
//! continue runs.

use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::objects::List;
use responses_api::request::threads::run_bodies;
use responses_api::request::threads::run_bodies::{
    CreateThreadRun, SubmitToolOutputs, ThreadRunSettings,
};
use responses_api::schemas::request_bodies::MetadataBody;
use responses_api::schemas::thread_events::{ThreadRunDocument, ThreadStreamEvent};
use responses_api::schemas::thread_run_bodies::{
    NewThreadAndRunBody, NewThreadRunBody, ToolOutputsBody,
};
use responses_api::threads::run_objects::ThreadRunObject;
use responses_api::threads::thread_object::ThreadObject;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::db::backend::DbError;
use crate::responses::preparation;
use crate::responses::thread_runs::run_operations::{CreatedThreadRun, NewThreadRun, ThreadOfRun};
use crate::responses::thread_runs::run_row_conversion;
use crate::responses::thread_runs::run_spec::RunSpec;
use crate::responses::threads::{assistant, thread_run};
use crate::responses::tool_declarations::SERVER_RULES;
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::assistants::{message_files, object_lists, run_stream, threads};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::headers::ignored_parameters;
use crate::web::v1::http::list_parameters::RangeParameters;
use crate::web::v1::pagination::ListQuery;
use crate::web::v1::parsing::body;
use crate::web::v1::responses;

/// The first event of a stream if the request also created the thread.
const THREAD_CREATED: &str = "thread.created";

/// Creates a run of a thread and returns it: queued, or as a stream of its events.
///
/// # Errors
/// Returns 404 for an unknown thread, assistant or model, and 400 for an invalid body or while another
/// run of the thread is active.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/runs",
    operation_id = "create_thread_run",
    tag = "v1",
    params(("id" = String, Path)),
    request_body = NewThreadRunBody,
    responses(
        (status = 200, description = "The run, or its events.", content(
            (ThreadRunDocument = "application/json"),
            (ThreadStreamEvent = "text/event-stream")
        )),
        (status = 403),
        (status = 404)
    )
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    responses::require_rate_limit(&app, &caller).await?;
    let thread = threads::find(&app, &caller, &id).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let request = CreateThreadRun::parse(&body)?;
    let thread = ThreadOfRun::Existing(thread.id);
    start(&app, &caller, &body, request, thread).await
}

/// Creates a thread and a run of it, and returns the run: queued, or as a stream of its events.
///
/// # Errors
/// Returns 404 for an unknown assistant or model, and 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/threads/runs",
    operation_id = "create_thread_and_run",
    tag = "v1",
    request_body = NewThreadAndRunBody,
    responses(
        (status = 200, description = "The run, or its events.", content(
            (ThreadRunDocument = "application/json"),
            (ThreadStreamEvent = "text/event-stream")
        )),
        (status = 403),
        (status = 404)
    )
)]
pub async fn create_with_thread(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    responses::require_rate_limit(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut request = CreateThreadRun::parse_with_thread(&body)?;
    let mut thread = request.thread.take().unwrap_or_default();
    let messages = &mut thread.messages;
    message_files::fetch(&app, caller.id(), "thread.messages", messages).await?;
    start(&app, &caller, &body, request, ThreadOfRun::New(thread)).await
}

async fn start(
    app: &App,
    caller: &CurrentUser,
    body: &Map<String, Value>,
    request: CreateThreadRun,
    thread: ThreadOfRun,
) -> V1Result<HttpResponse> {
    let CreateThreadRun {
        assistant_id,
        thread: _,
        additional_messages: mut messages,
        metadata,
        stream,
    } = request;
    let assistant = assistant::find_for_user(app.db.reader(), caller.id(), &assistant_id).await?;
    let assistant = assistant.ok_or_else(|| V1Error::not_found().for_param("assistant_id"))?;
    let settings = ThreadRunSettings::parse(body, &defaults(assistant), &SERVER_RULES)?;
    message_files::fetch(app, caller.id(), "additional_messages", &mut messages).await?;
    let engine = &app.responses;
    let permit = match stream {
        true => Some(engine.permit_to_follow(caller.id())?),
        false => None,
    };
    let spec = RunSpec::from(settings);
    let (services, reasoning) = (engine.services(), spec.request.reasoning);
    let ignored = preparation::ignored_reasoning(
        services,
        caller.id(),
        &spec.model,
        reasoning,
        "reasoning_effort",
    );
    let ignored = ignored.await?;
    let new = NewThreadRun {
        thread,
        assistant_id,
        spec,
        metadata: metadata.into(),
        messages,
    };
    let CreatedThreadRun { run, thread } = engine.create_run(caller.id(), new).await?;
    let thread: Option<ThreadObject> = thread.map(|it| it.view());
    let mut answer = match permit {
        Some(permit) => {
            let first = thread.as_ref().map(|it| (THREAD_CREATED, it));
            run_stream::answer(engine.follow_run(&run.id, -1, permit), first)
        }
        None => HttpResponse::Ok().json(run_row_conversion::document(&run)),
    };
    ignored_parameters::add_header(&mut answer, &ignored);
    Ok(answer)
}

/// Returns the settings that a run takes from its assistant.
fn defaults(assistant: assistant::Model) -> Map<String, Value> {
    let fields = json!({
        "model": assistant.model,
        "instructions": assistant.instructions,
        "tools": assistant.tools,
        "temperature": assistant.temperature,
        "top_p": assistant.top_p,
        "response_format": assistant.response_format,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns a page of the runs of a thread.
///
/// # Errors
/// Returns 404 for an unknown thread and 400 for an invalid query.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/runs",
    operation_id = "list_thread_runs",
    tag = "v1",
    params(("id" = String, Path), RangeParameters),
    responses((status = 200, body = List<ThreadRunDocument>))
)]
pub async fn list(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let thread = threads::find(&app, &caller, &id).await?;
    let db = app.db.reader();
    let query = ListQuery::parse(http.query_string());
    let position = async |id: &str| -> Result<Option<String>, DbError> {
        let found = thread_run::find(db, &thread.id, id).await?;
        Ok(found.map(|it| it.id))
    };
    let range = object_lists::range(&query, position).await?;
    let slice = thread_run::list(db, &thread.id, range).await?;
    let runs: Vec<ThreadRunObject> = slice
        .rows
        .iter()
        .map(run_row_conversion::document)
        .collect();
    let list = List::new(runs, slice.has_more, |it| Some(&it.id));
    Ok(HttpResponse::Ok().json(list))
}

/// Returns a run.
///
/// # Errors
/// Returns 404 for an unknown thread or run.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/runs/{run_id}",
    operation_id = "show_thread_run",
    tag = "v1",
    params(("id" = String, Path), ("run_id" = String, Path)),
    responses((status = 200, body = ThreadRunDocument))
)]
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let run = find(&app, &caller, &path).await?;
    Ok(HttpResponse::Ok().json(run_row_conversion::document(&run)))
}

/// Replaces the metadata of a run.
///
/// # Errors
/// Returns 404 for an unknown thread or run, and 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/runs/{run_id}",
    operation_id = "update_thread_run",
    tag = "v1",
    params(("id" = String, Path), ("run_id" = String, Path)),
    request_body = MetadataBody,
    responses((status = 200, body = ThreadRunDocument))
)]
pub async fn update(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let mut run = find(&app, &caller, &path).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    if let Some(metadata) = run_bodies::parse_run_change(&body)? {
        run = app.responses.set_run_metadata(run.id, metadata).await?;
    }
    Ok(HttpResponse::Ok().json(run_row_conversion::document(&run)))
}

/// Cancels a run, and returns it.
///
/// # Errors
/// Returns 404 for an unknown thread or run, and 400 for a run that has ended.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/runs/{run_id}/cancel",
    operation_id = "cancel_thread_run",
    tag = "v1",
    params(("id" = String, Path), ("run_id" = String, Path)),
    responses(
        (status = 200, body = ThreadRunDocument),
        (status = 400, description = "`run_not_cancellable`: the run has ended.")
    )
)]
pub async fn cancel(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let run = find(&app, &caller, &path).await?;
    let run = app.responses.cancel_run(run).await?;
    Ok(HttpResponse::Ok().json(run_row_conversion::document(&run)))
}

/// Adds the outputs of tools to a run that waits for them, and returns the run: queued again, or as a
/// stream of its further events.
///
/// # Errors
/// Returns 404 for an unknown thread or run, and 400 if the run does not wait for outputs, or unless
/// there is exactly one output for each open call.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/runs/{run_id}/submit_tool_outputs",
    operation_id = "submit_tool_outputs",
    tag = "v1",
    params(("id" = String, Path), ("run_id" = String, Path)),
    request_body = ToolOutputsBody,
    responses(
        (status = 200, description = "The run, or its events.", content(
            (ThreadRunDocument = "application/json"),
            (ThreadStreamEvent = "text/event-stream")
        )),
        (status = 403),
        (status = 404)
    )
)]
pub async fn submit_tool_outputs(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    responses::require_rate_limit(&app, &caller).await?;
    let run = find(&app, &caller, &path).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let SubmitToolOutputs { outputs, stream } = SubmitToolOutputs::parse(&body)?;
    let engine = &app.responses;
    let permit = match stream {
        true => Some(engine.permit_to_follow(caller.id())?),
        false => None,
    };
    let continued = engine.submit_tool_outputs(run, outputs).await?;
    Ok(match permit {
        Some(permit) => {
            let reader = engine.follow_run(&continued.run.id, continued.last_seq, permit);
            run_stream::answer(reader, None::<(&str, &Value)>)
        }
        None => HttpResponse::Ok().json(run_row_conversion::document(&continued.run)),
    })
}

/// Finds a run of a thread of the caller.
///
/// # Errors
/// Returns 404 if the caller has no such thread or run.
pub async fn find(
    app: &App,
    caller: &CurrentUser,
    (thread, run): &(String, String),
) -> V1Result<thread_run::Model> {
    let thread = threads::find(app, caller, thread).await?;
    let found = thread_run::find(app.db.reader(), &thread.id, run).await?;
    found.ok_or_else(V1Error::not_found)
}
