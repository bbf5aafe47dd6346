//! What is mounted under `/v1`.
//!
//! Not by `http/endpoint.rs`: these calls are described by the specification that they follow, and a
//! wrong method or address is told in its words.

use crate::openai::compact;
use crate::openai::conversations;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::models;
use crate::openai::responses;
use crate::openai::socket;
use actix_web::HttpResponse;
use actix_web::Resource;
use actix_web::web;
use actix_web::web::ServiceConfig;
use actix_web::web::delete;
use actix_web::web::get;
use actix_web::web::post;

/// Mounts every call.
pub fn mount(into: &mut ServiceConfig) {
    into.service(
        at("/responses")
            .route(post().to(responses::create))
            .route(get().to(socket::connect)),
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
    .service(at("/models").route(get().to(models::index)))
    .service(at("/models/{id:.+}").route(get().to(models::show)))
    .service(at("/memory/query").route(post().to(not_yet)));
    mount_conversations(into);
    into.default_service(web::to(nothing));
}

fn mount_conversations(into: &mut ServiceConfig) {
    into.service(at("/conversations").route(post().to(conversations::create)))
        .service(
            at("/conversations/{id}")
                .route(get().to(conversations::show))
                .route(post().to(conversations::update))
                .route(delete().to(conversations::delete)),
        )
        .service(
            at("/conversations/{id}/items")
                .route(get().to(conversations::items))
                .route(post().to(conversations::append)),
        )
        .service(
            at("/conversations/{id}/items/{item_id}")
                .route(get().to(conversations::item))
                .route(delete().to(conversations::delete_item)),
        );
}

/// An address whose other methods are refused in the words of this API.
fn at(path: &str) -> Resource {
    web::resource(path).default_service(web::to(wrong_method))
}

async fn wrong_method() -> Answer<HttpResponse> {
    Err(responses::wrong_method())
}

async fn not_yet() -> Answer<HttpResponse> {
    Err(Problem::not_implemented())
}

async fn nothing() -> Answer<HttpResponse> {
    Err(Problem::not_found())
}
