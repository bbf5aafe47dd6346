//! The whole surface on one screen.

use crate::api::api_keys;
use crate::api::health;
use crate::api::session;
use crate::api::setup;
use crate::api::users;
use actix_web::web::ServiceConfig;
use actix_web::web::delete;
use actix_web::web::get;
use actix_web::web::patch;
use actix_web::web::post;
use actix_web::web::resource;

/// Doors that ask nobody who they are.
pub fn open(doors: &mut ServiceConfig) {
    doors
        .service(resource("/healthz").route(get().to(health::alive)))
        .service(resource("/readyz").route(get().to(health::ready)));
}

/// Everything under `/api`.
pub fn api(doors: &mut ServiceConfig) {
    doors.configure(people);
}

fn people(doors: &mut ServiceConfig) {
    doors
        .service(
            resource("/setup")
                .route(get().to(setup::needed))
                .route(post().to(setup::set_up)),
        )
        .service(
            resource("/session")
                .route(post().to(session::sign_in))
                .route(get().to(session::current))
                .route(delete().to(session::sign_out)),
        )
        .service(resource("/sessions").route(get().to(session::list)))
        .service(resource("/sessions/{session_id}").route(delete().to(session::end)))
        .service(resource("/users").route(post().to(users::register)))
        .service(resource("/users/me").route(patch().to(users::change_me)))
        .service(
            resource("/api_keys")
                .route(get().to(api_keys::list))
                .route(post().to(api_keys::create)),
        )
        .service(resource("/api_keys/{api_key_id}").route(delete().to(api_keys::revoke)));
}
