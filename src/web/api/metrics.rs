//! Endpoint `/metrics`: returns the metrics of this server as OpenMetrics text to programs on the
//! same machine and to callers with the API key of an admin.

use std::time::Duration;

use actix_web::http::header::{AUTHORIZATION, HOST};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};

use crate::accounts::credential::Credential;
use crate::app::App;
use crate::memories::metrics::memory_load;
use crate::memories::metrics::memory_load::{MemoryLoad, TaskLoad};
use crate::runs::reading::history;
use crate::runs::reading::history::QueueLoad;
use crate::telemetry::metrics;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication;
use crate::web::middleware::allowed_hosts;

/// The other metrics must be returned even when the database hangs.
const QUEUE_COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Headers that proxies add. Behind a local proxy, every request comes from a loopback address.
const FORWARDED_HEADERS: [&str; 6] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "via",
];

/// Returns the metrics of this server.
///
/// Requires the API key of an admin, or a client on the same machine.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "tell",
    tag = "server",
    security((), ("api_key" = [])),
    responses(
        (status = 200, description = "In the text format of OpenMetrics.", body = String, content_type = "application/openmetrics-text"),
        (status = 401),
        (status = 403),
        (status = 500)
    )
)]
pub async fn show(app: Data<App>, request: HttpRequest) -> ApiResult<HttpResponse> {
    authorize(&app, &request).await?;
    let (load, memory_load) = tokio::join!(count_queue(&app), count_memories(&app));
    app.engine
        .context()
        .metrics
        .queue_depths(load, app.clock.now());
    let memory = &app.engine.context().prompt_caches.memories.metrics;
    memory.show_load(memory_load, app.clock.now());
    let text = app.metrics.text().map_err(ApiError::internal)?;
    Ok(HttpResponse::Ok()
        .content_type(metrics::CONTENT_TYPE)
        .body(text))
}

async fn authorize(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if !request.headers().contains_key(AUTHORIZATION) {
        return match is_local(request) {
            true => Ok(()),
            false => Err(ApiError::not_authenticated()),
        };
    }
    let caller = authentication::authenticate(app, request).await?;
    let caller = caller.ok_or_else(ApiError::not_authenticated)?;
    // A session cookie is not accepted, so that no web page can read the metrics through an admin's
    // browser.
    match (caller.credential, caller.is_admin()) {
        (Credential::ApiKey(_), true) => Ok(()),
        _ => Err(ApiError::forbidden("The API key of an admin is required.")),
    }
}

/// Returns whether a program on this machine sent the request. A local proxy acts for other
/// clients: it adds headers or keeps the public host name. The host check also stops browsers that
/// were led here by DNS rebinding.
fn is_local(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let peer = request.peer_addr().map(|it| it.ip().to_canonical());
    let host = headers.get(HOST).and_then(|it| it.to_str().ok());
    peer.is_some_and(|it| it.is_loopback())
        && host.is_some_and(allowed_hosts::is_loopback)
        && !FORWARDED_HEADERS.iter().any(|it| headers.contains_key(*it))
}

async fn count_queue(app: &App) -> Option<QueueLoad> {
    let count = history::queue_load(app.db.reader());
    match tokio::time::timeout(QUEUE_COUNT_TIMEOUT, count).await {
        Ok(Ok(load)) => Some(load),
        Ok(Err(error)) => {
            tracing::warn!(%error, "failed to count the queue");
            None
        }
        Err(_) => None,
    }
}

async fn count_memories(app: &App) -> MemoryLoad {
    let cache = &app.engine.context().prompt_caches.memories.metrics.totals;
    let totals = cache.load(&app.db, &app.shutdown, app.clock.now());
    let (tasks, totals) = tokio::join!(
        count_tasks(app),
        tokio::time::timeout(QUEUE_COUNT_TIMEOUT, totals)
    );
    // If counting takes longer, its result is in the response to a later request.
    let totals = totals.unwrap_or_else(|_| cache.last_known());
    MemoryLoad { tasks, totals }
}

async fn count_tasks(app: &App) -> Option<TaskLoad> {
    let count = memory_load::count_tasks(app.db.reader());
    match tokio::time::timeout(QUEUE_COUNT_TIMEOUT, count).await {
        Ok(Ok(tasks)) => Some(tasks),
        Ok(Err(error)) => {
            tracing::warn!(%error, "failed to count the tasks of memories");
            None
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::is_local;

    fn local(peer: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = TestRequest::get().peer_addr(peer.parse().unwrap());
        for header in headers {
            request = request.insert_header(*header);
        }
        is_local(&request.to_http_request())
    }

    #[test]
    fn a_program_on_this_machine_is_local() {
        for host in ["127.0.0.1:8080", "localhost", "LocalHost:80", "[::1]:8080"] {
            assert!(local("127.0.0.1:9", &[("host", host)]), "{host}");
            assert!(local("[::1]:9", &[("host", host)]), "{host}");
            assert!(local("[::ffff:127.0.0.1]:9", &[("host", host)]), "{host}");
        }
    }

    #[test]
    fn other_requests_are_not_local() {
        let own = ("host", "127.0.0.1:8080");
        assert!(!local("10.0.0.7:9", &[own]));
        assert!(!local("127.0.0.1:9", &[]));
        for host in [
            "troupe.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "",
        ] {
            assert!(!local("127.0.0.1:9", &[("host", host)]), "{host}");
        }
        for passed_on in [
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-for", ""),
            ("forwarded", "for=203.0.113.7"),
            ("x-real-ip", "127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("via", "1.1 proxy"),
        ] {
            assert!(!local("127.0.0.1:9", &[own, passed_on]), "{passed_on:?}");
        }
    }
}
