//! Binds the HTTP server, mounts middleware and endpoints, starts engines and background tasks, and
//! shuts all of them down in order when the system requests termination.
//!
//! **Invariant:** shutdown proceeds in this order: no new work starts; runs end or are released;
//! sockets close; the HTTP server stops; the background tasks end; the database closes.

use std::net::SocketAddr;
use std::num::NonZero;
use std::thread;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{HttpServer, web};
use anyhow::Context;

use crate::app::App;
use crate::db::probe;
use crate::db::sqlite::maintenance;
use crate::providers::detected::model_lists;
use crate::server::openapi::{OpenApiFile, OpenApiFiles};
use crate::server::{client_files, endpoints};
use crate::spaces::maintenance::garbage_collection;
use crate::web::error::ApiError;
use crate::web::extract::{authentication, request_body};
use crate::web::middleware::{allowed_hosts, request_metrics, response_headers, run_to_completion};
use crate::web::openapi::endpoint;
use crate::web::v1::api_key_auth;
use crate::web::v1::headers::answer_headers;
use crate::web::v1::http::{mounting, response_compression};

/// A peer that acknowledges no data for this long is considered gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);

/// A server that is bound to its address.
pub struct BoundServer {
    /// The bound address, with the actual port if port 0 was configured.
    pub address: SocketAddr,
    server: Server,
    app: App,
}

/// Binds, mounts the endpoints, and starts the engines and background tasks.
///
/// # Errors
/// Returns an error when the address cannot be bound or the recovery after the previous process
/// fails.
pub async fn listen(app: App) -> anyhow::Result<BoundServer> {
    let bind = app.config.bind;
    let data = web::Data::new(app.clone());
    let connections = app.connections.clone();
    let n_workers = thread::available_parallelism().map_or(1, NonZero::get);
    let endpoints = endpoints::all();
    let openapi_files = web::Data::new(OpenApiFiles {
        all: OpenApiFile::new(|| endpoints::all().document()),
        v1: OpenApiFile::new(|| endpoints::all().v1_document()),
    });
    let server = HttpServer::new(move || {
        actix_web::App::new()
            .app_data(data.clone())
            .app_data(openapi_files.clone())
            .app_data(web::PathConfig::default().error_handler(|_, _| ApiError::not_found().into()))
            .app_data(web::QueryConfig::default().error_handler(|_, _| {
                // actix's own message would repeat the whole query.
                let message =
                    "The query contains a name or a value that this path does not accept.";
                ApiError::new(400, "invalid_value", message).into()
            }))
            .wrap(from_fn(allowed_hosts::require_allowed_host))
            .wrap(from_fn(response_headers::apply))
            .wrap(from_fn(request_metrics::count))
            .wrap(from_fn(request_body::limit))
            .configure(|it| endpoint::mount(&endpoints.open, "", it))
            .service(
                web::scope("/api")
                    .wrap(from_fn(run_to_completion::run_to_completion))
                    .wrap(from_fn(authentication::identify))
                    .configure(|it| endpoint::mount(&endpoints.api, "/api", it)),
            )
            .service(
                web::scope("/v1")
                    .wrap(from_fn(api_key_auth::authenticate))
                    .wrap(from_fn(answer_headers::apply))
                    .wrap(from_fn(response_compression::compress))
                    .configure(|it| mounting::mount(&endpoints.v1, it)),
            )
            .default_service(web::to(client_files::serve))
    });
    let server = server
        .tcp_nodelay(true)
        // A disconnected client cancels its request immediately; changes run to completion on their
        // own.
        .h1_allow_half_closed(false)
        .keep_alive(Duration::from_secs(30))
        .client_request_timeout(Duration::from_secs(10))
        // Per worker: all of them together stay below the limit of the system.
        .max_connections(app.connections.capacity().div_ceil(n_workers))
        .workers(n_workers)
        .shutdown_timeout(5)
        .disable_signals()
        .on_connect(move |connection, extensions| {
            // A peer that stops reading would keep its socket forever: nothing else limits writes.
            let Some(stream) = connection.downcast_ref::<actix_web::rt::net::TcpStream>() else {
                return;
            };
            let socket = socket2::SockRef::from(stream);
            let _ = socket.set_tcp_user_timeout(Some(PEER_TIMEOUT));
            let peer = stream.peer_addr().ok();
            match peer.and_then(|peer| connections.admit(peer.ip())) {
                // Kept with the connection until it closes.
                Some(permit) => {
                    extensions.insert(permit);
                }
                None => {
                    let _ = socket.shutdown(std::net::Shutdown::Both);
                }
            }
        })
        .bind(bind)
        .with_context(|| format!("TROUPE_BIND {bind} cannot be bound"))?;
    app.engine.start().await?;
    app.responses.start().await?;
    app.imports.start();
    app.learning.start();
    app.embedding.start();
    let (db, clock, shutdown) = (app.db.clone(), app.clock.clone(), app.shutdown.clone());
    app.shutdown
        .spawn(probe::run_write_probe(db.clone(), shutdown.clone()));
    app.shutdown
        .spawn(maintenance::run_maintenance(db.clone(), shutdown.clone()));
    app.shutdown.spawn(model_lists::run_refresh(
        db.clone(),
        app.models.clone(),
        clock.clone(),
        shutdown.clone(),
    ));
    app.shutdown
        .spawn(garbage_collection::run(db, clock, shutdown));
    let address = server.addrs().first().copied().unwrap_or(bind);
    Ok(BoundServer {
        address,
        server: server.run(),
        app,
    })
}

impl BoundServer {
    /// Serves until `stop` resolves, then shuts down in order.
    ///
    /// # Errors
    /// Returns an error when the HTTP server fails.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let handle = self.server.handle();
        let app = self.app;
        let closing = async move {
            stop.await;
            close(&app, &handle).await;
            app.db.close_cleanly().await;
        };
        let (served, ()) = futures::join!(self.server, closing);
        served.context("the server failed")
    }
}

async fn close(app: &App, server: &ServerHandle) {
    tracing::info!("shutting down; accepting no new work");
    app.shutdown.draining.cancel();
    let grace = app.config.shutdown_grace;
    let (runs, responses) = (app.engine.drain(grace), app.responses.drain(grace));
    futures::join!(runs, responses, app.imports.drain());
    app.shutdown.stopping.cancel();
    server.stop(true).await;
    app.shutdown.wait().await;
    tracing::info!("shutdown complete");
}

/// Resolves when the system requests termination. A second request ends the process immediately.
pub async fn shutdown_signal() {
    one_signal().await;
    tokio::spawn(async {
        one_signal().await;
        tracing::warn!("received a second termination signal; exiting immediately");
        std::process::exit(1);
    });
}

#[cfg(unix)]
async fn one_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            // Without this handler the system's default action ends the process.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(not(unix))]
async fn one_signal() {
    // An error means that no signal can be received.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
