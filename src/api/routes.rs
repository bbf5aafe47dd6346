//! The whole surface on one screen.

use crate::api::admin;
use crate::api::api_keys;
use crate::api::buttons;
use crate::api::characters;
use crate::api::conversations;
use crate::api::health;
use crate::api::memberships;
use crate::api::messages;
use crate::api::metrics;
use crate::api::providers;
use crate::api::runs;
use crate::api::seat_changes;
use crate::api::session;
use crate::api::setup;
use crate::api::spaces;
use crate::api::users;
use actix_web::web::ServiceConfig;
use actix_web::web::delete;
use actix_web::web::get;
use actix_web::web::patch;
use actix_web::web::post;
use actix_web::web::resource;

/// Doors that ask nobody who they are, or ask in their own way.
pub fn open(doors: &mut ServiceConfig) {
    doors
        .service(resource("/healthz").route(get().to(health::alive)))
        .service(resource("/readyz").route(get().to(health::ready)))
        .service(resource("/metrics").route(get().to(metrics::tell)));
}

/// Everything under `/api`.
pub fn api(doors: &mut ServiceConfig) {
    doors
        .configure(people)
        .configure(rooms)
        .configure(shelf)
        .configure(play)
        .configure(office);
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

fn rooms(doors: &mut ServiceConfig) {
    doors
        .service(
            resource("/spaces")
                .route(get().to(spaces::list))
                .route(post().to(spaces::create)),
        )
        .service(
            resource("/spaces/{space_id}")
                .route(get().to(spaces::show))
                .route(patch().to(spaces::change))
                .route(delete().to(spaces::delete)),
        )
        .service(
            resource("/spaces/{space_id}/memberships")
                .route(get().to(memberships::list))
                .route(post().to(memberships::create)),
        )
        .service(
            resource("/memberships/{membership_id}")
                .route(patch().to(seat_changes::change))
                .route(delete().to(memberships::leave)),
        );
}

fn shelf(doors: &mut ServiceConfig) {
    doors
        .service(
            resource("/characters")
                .route(get().to(characters::list))
                .route(post().to(characters::create)),
        )
        .service(
            resource(r"/characters/{character_id:\d+}")
                .route(get().to(characters::show))
                .route(patch().to(characters::change))
                .route(delete().to(characters::delete)),
        )
        .service(resource("/characters/{character_id}/export").route(get().to(characters::export)))
        .service(resource("/characters/{character_id}/avatar").route(get().to(characters::avatar)))
        .service(
            resource("/providers")
                .route(get().to(providers::list))
                .route(post().to(providers::create)),
        )
        .service(
            resource("/providers/{provider_id}")
                .route(patch().to(providers::change))
                .route(delete().to(providers::delete)),
        )
        .service(resource("/providers/{provider_id}/test").route(post().to(providers::test)))
        .service(resource("/providers/{provider_id}/models").route(get().to(providers::models)));
}

fn play(doors: &mut ServiceConfig) {
    let button = |path: &str| resource(format!("/conversations/{{conversation_id}}/{path}"));
    doors
        .service(
            resource("/spaces/{space_id}/conversations")
                .route(get().to(conversations::list))
                .route(post().to(conversations::create)),
        )
        .service(
            resource("/conversations/{conversation_id}")
                .route(get().to(conversations::show))
                .route(patch().to(conversations::change))
                .route(delete().to(conversations::delete)),
        )
        .service(
            button("messages")
                .route(get().to(messages::list))
                .route(post().to(messages::create)),
        )
        .service(button("read").route(post().to(conversations::read)))
        .service(button("generate").route(post().to(buttons::generate)))
        .service(button("stop").route(post().to(buttons::stop)))
        .service(button("pause").route(post().to(buttons::pause)))
        .service(button("resume").route(post().to(buttons::resume)))
        .service(button("skip").route(post().to(buttons::skip)))
        .service(button("retry").route(post().to(buttons::retry)))
        .service(button("prompt").route(get().to(conversations::prompt)))
        .service(button("runs").route(get().to(runs::list)))
        .service(
            resource("/messages/{message_id}")
                .route(patch().to(messages::change))
                .route(delete().to(messages::hide)),
        )
        .service(resource("/messages/{message_id}/swipes").route(get().to(messages::swipes)))
        .service(resource("/runs/{run_id}").route(get().to(runs::show)))
        .service(resource("/runs/{run_id}/cancel").route(post().to(runs::cancel)));
}

fn office(doors: &mut ServiceConfig) {
    doors
        .service(resource("/admin/users").route(get().to(admin::users::list)))
        .service(
            resource("/admin/users/{user_id}")
                .route(get().to(admin::users::show))
                .route(patch().to(admin::users::change)),
        )
        .service(resource("/admin/runs").route(get().to(admin::runs::list)))
        .service(resource("/admin/stats").route(get().to(admin::stats::show)))
        .service(resource("/admin/reap").route(post().to(runs::reap)));
}
