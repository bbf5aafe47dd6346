//! Middleware that lets a request that may change data finish, even if its client disconnects.
//!
//! The server drops a request whose client closes the connection. A handler that has written to the
//! database must still publish events and revoke what was lost with a membership.

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use tracing::Instrument;

use crate::web::error::ApiError;
use crate::web::extract::csrf;

/// The middleware around endpoints that change data.
///
/// # Errors
/// Returns errors that the handler did not turn into a response; 500 if it panicked.
pub async fn run_to_completion(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if csrf::is_safe_method(request.method()) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    // A task of the same worker: it is only dropped when the worker ends.
    let work = actix_web::rt::spawn(next.call(request).in_current_span());
    match work.await {
        Ok(answer) => Ok(answer?.map_into_boxed_body()),
        Err(error) => Err(ApiError::internal(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use actix_web::dev::ServiceRequest;
    use actix_web::middleware::{Next, from_fn};
    use actix_web::{App, HttpResponse, HttpServer, web};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;
    use tokio::sync::{Notify, mpsc};

    use super::run_to_completion;

    /// The signals of one test request.
    #[derive(Clone)]
    struct TestSignals {
        begun: Arc<Notify>,
        left: Arc<Notify>,
        proceed: Arc<Notify>,
        /// Whether the handler finished.
        ended: mpsc::Sender<bool>,
    }

    /// Reports when it is dropped whether the work was finished.
    struct Work {
        is_done: bool,
        ended: mpsc::Sender<bool>,
    }

    impl Drop for Work {
        fn drop(&mut self) {
            let _ = self.ended.try_send(self.is_done);
        }
    }

    struct NotifyOnDrop(Arc<Notify>);

    impl Drop for NotifyOnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    async fn handler(signals: web::Data<TestSignals>) -> HttpResponse {
        let mut work = Work {
            is_done: false,
            ended: signals.ended.clone(),
        };
        signals.begun.notify_one();
        signals.proceed.notified().await;
        work.is_done = true;
        HttpResponse::NoContent().finish()
    }

    #[actix_web::test]
    async fn a_started_change_continues_when_the_client_disconnects() {
        let (ended, mut outcome) = mpsc::channel(1);
        let signals = TestSignals {
            begun: Arc::default(),
            left: Arc::default(),
            proceed: Arc::default(),
            ended,
        };
        let data = web::Data::new(signals.clone());
        let server = HttpServer::new(move || {
            let left = data.left.clone();
            let watch = move |request: ServiceRequest, next: Next<_>| {
                let left = NotifyOnDrop(left.clone());
                async move {
                    let answer = next.call(request).await;
                    drop(left);
                    answer
                }
            };
            App::new()
                .app_data(data.clone())
                .wrap(from_fn(run_to_completion))
                .wrap(from_fn(watch))
                .route("/", web::post().to(handler))
        });
        let server = server
            .workers(1)
            .disable_signals()
            .h1_allow_half_closed(false)
            .bind("127.0.0.1:0")
            .unwrap();
        let address = server.addrs()[0];
        let server = server.run();
        let handle = server.handle();
        let serving = actix_web::rt::spawn(server);

        let mut client = TcpStream::connect(address).await.unwrap();
        let request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
        client.write_all(request).await.unwrap();
        signals.begun.notified().await;
        drop(client);
        signals.left.notified().await;
        signals.proceed.notify_one();

        assert_eq!(outcome.recv().await, Some(true));
        handle.stop(false).await;
        serving.await.unwrap().unwrap();
    }
}
