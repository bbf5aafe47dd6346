//! Mounts the routes of `/v1`, and answers unknown paths and methods with errors of the Responses
//! API.
//!
//! They are not mounted by `web/openapi/endpoint.rs`, because the Open Responses specification
//! describes them and an unknown method or path must return its error format.

use actix_web::web::{ServiceConfig, delete, get, post};
use actix_web::{HttpResponse, Resource, web};

use crate::web::v1::chat::chat_completions;
use crate::web::v1::embeddings::creation;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::{compact, conversations, memory_query, models, responses, ws_upgrade};

/// Mounts all routes.
pub fn mount(config: &mut ServiceConfig) {
    config
        .service(
            at("/responses")
                .route(post().to(responses::create))
                .route(get().to(ws_upgrade::connect)),
        )
        .service(at("/responses/compact").route(post().to(compact::compact)))
        .service(at("/responses/input_tokens").route(post().to(responses::input_tokens)))
        .service(
            at("/responses/{id}")
                .route(get().to(responses::show))
                .route(delete().to(responses::delete)),
        )
        .service(at("/responses/{id}/cancel").route(post().to(responses::cancel)))
        .service(at("/responses/{id}/input_items").route(get().to(responses::input_items)))
        .service(at("/chat/completions").route(post().to(chat_completions::create)))
        .service(at("/models").route(get().to(models::list)))
        .service(at("/models/{id:.+}").route(get().to(models::show)))
        .service(at("/embeddings").route(post().to(creation::create)))
        .service(at("/memory/query").route(post().to(memory_query::query)));
    mount_conversations(config);
    config.default_service(web::to(not_found));
}

fn mount_conversations(config: &mut ServiceConfig) {
    config
        .service(at("/conversations").route(post().to(conversations::create)))
        .service(
            at("/conversations/{id}")
                .route(get().to(conversations::show))
                .route(post().to(conversations::update))
                .route(delete().to(conversations::delete)),
        )
        .service(
            at("/conversations/{id}/items")
                .route(get().to(conversations::list_items))
                .route(post().to(conversations::append)),
        )
        .service(
            at("/conversations/{id}/items/{item_id}")
                .route(get().to(conversations::show_item))
                .route(delete().to(conversations::delete_item)),
        );
}

/// Creates a resource that answers other methods with this API's error format.
fn at(path: &str) -> Resource {
    web::resource(path).default_service(web::to(method_not_allowed))
}

async fn method_not_allowed() -> V1Result<HttpResponse> {
    Err(responses::method_not_allowed())
}

async fn not_found() -> V1Result<HttpResponse> {
    Err(V1Error::not_found())
}
