//! Mounts the routes of `/v1`, and answers unknown paths and methods with errors of the Responses
//! API.
//!
//! They are not mounted by `web/openapi/endpoint.rs`, because the Open Responses specification
//! describes them and an unknown method or path must return its error format.

use actix_web::guard::{Any, Get, Head};
use actix_web::web::{Data, ServiceConfig, delete, post};
use actix_web::{HttpRequest, HttpResponse, Resource, Route, web};

use crate::app::App;
use crate::web::v1::assistants::{stored_assistants, thread_messages, threads};
use crate::web::v1::chat::chat_completions;
use crate::web::v1::embeddings::creation;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::headers::cors;
use crate::web::v1::{compact, conversations, memory_query, models, responses, ws_upgrade};

/// The methods of an object that can be shown, changed and deleted.
const STORED_OBJECT: &str = "GET, HEAD, POST, DELETE";

/// Mounts all routes.
pub fn mount(config: &mut ServiceConfig) {
    config
        .service(
            at("/responses", ws_upgrade::METHODS)
                .route(post().to(responses::create))
                .route(web::get().to(ws_upgrade::connect)),
        )
        .service(at("/responses/compact", "POST").route(post().to(compact::compact)))
        .service(at("/responses/input_tokens", "POST").route(post().to(responses::input_tokens)))
        .service(
            at("/responses/{id}", "GET, HEAD, DELETE")
                .route(get().to(responses::show))
                .route(delete().to(responses::delete)),
        )
        .service(at("/responses/{id}/cancel", "POST").route(post().to(responses::cancel)))
        .service(
            at("/responses/{id}/input_items", "GET, HEAD").route(get().to(responses::input_items)),
        )
        .service(at("/chat/completions", "POST").route(post().to(chat_completions::create)))
        .service(at("/models", "GET, HEAD").route(get().to(models::list)))
        .service(at("/models/{id:.+}", "GET, HEAD").route(get().to(models::show)))
        .service(at("/embeddings", "POST").route(post().to(creation::create)))
        .service(at("/memory/query", "POST").route(post().to(memory_query::query)));
    mount_conversations(config);
    mount_assistants(config);
    config.default_service(web::to(not_found));
}

fn mount_conversations(config: &mut ServiceConfig) {
    config
        .service(at("/conversations", "POST").route(post().to(conversations::create)))
        .service(
            at("/conversations/{id}", "GET, HEAD, POST, DELETE")
                .route(get().to(conversations::show))
                .route(post().to(conversations::update))
                .route(delete().to(conversations::delete)),
        )
        .service(
            at("/conversations/{id}/items", "GET, HEAD, POST")
                .route(get().to(conversations::list_items))
                .route(post().to(conversations::append)),
        )
        .service(
            at("/conversations/{id}/items/{item_id}", "GET, HEAD, DELETE")
                .route(get().to(conversations::show_item))
                .route(delete().to(conversations::delete_item)),
        );
}

fn mount_assistants(config: &mut ServiceConfig) {
    config
        .service(
            at("/assistants", "GET, HEAD, POST")
                .route(get().to(stored_assistants::list))
                .route(post().to(stored_assistants::create)),
        )
        .service(
            at("/assistants/{id}", STORED_OBJECT)
                .route(get().to(stored_assistants::show))
                .route(post().to(stored_assistants::update))
                .route(delete().to(stored_assistants::delete)),
        )
        .service(at("/threads", "POST").route(post().to(threads::create)))
        .service(
            at("/threads/{id}", STORED_OBJECT)
                .route(get().to(threads::show))
                .route(post().to(threads::update))
                .route(delete().to(threads::delete)),
        )
        .service(
            at("/threads/{id}/messages", "GET, HEAD, POST")
                .route(get().to(thread_messages::list))
                .route(post().to(thread_messages::create)),
        )
        .service(
            at("/threads/{id}/messages/{message_id}", STORED_OBJECT)
                .route(get().to(thread_messages::show))
                .route(post().to(thread_messages::update))
                .route(delete().to(thread_messages::delete)),
        );
}

/// Creates a route for GET and HEAD. For HEAD, the server does not send the body.
fn get() -> Route {
    web::route().guard(Any(Get()).or(Head()))
}

/// Creates a resource with these methods. It answers other methods in this API's error format, and the
/// preflight requests of browsers with the permission to call.
fn at(path: &str, methods: &'static str) -> Resource {
    let other = move |app: Data<App>, http: HttpRequest| async move {
        let origins = &app.config.cors_origins;
        match cors::is_preflight(http.method(), http.headers(), origins) {
            true => Ok(cors::permission(methods, http.headers())),
            false => Err(V1Error::method_not_allowed(http.method().as_str(), methods)),
        }
    };
    web::resource(path).default_service(web::to(other))
}

async fn not_found(http: HttpRequest) -> V1Result<HttpResponse> {
    Err(V1Error::no_endpoint(http.method().as_str(), http.path()))
}
