//! The server to compare with: forwards a request to the model and its bytes back, with the
//! libraries that the server uses.

use std::net::TcpListener;

use actix_web::{App, HttpResponse, HttpServer, web};
use reqwest::Client;

/// The environment variable with the model's URL; a process that has it is the pass-through.
pub const TO: &str = "BENCH_PASS_TO";

/// Serves forever if this process is the pass-through; otherwise returns `false`.
pub fn serve_if_selected() -> bool {
    let Ok(base_url) = std::env::var(TO) else {
        return false;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("listening on http://{}", listener.local_addr().unwrap());
    let serving = async move {
        HttpServer::new(move || {
            let client = Client::builder().tcp_nodelay(true).build().unwrap();
            let state = web::Data::new((client, base_url.clone()));
            let proxy = web::post().to(proxy);
            App::new()
                .app_data(state)
                .route("/v1/chat/completions", proxy)
        })
        .workers(2)
        .tcp_nodelay(true)
        .listen(listener)
        .unwrap()
        .run()
        .await
        .unwrap();
    };
    actix_web::rt::System::new().block_on(serving);
    true
}

async fn proxy(state: web::Data<(Client, String)>, body: web::Bytes) -> HttpResponse {
    let (client, base_url) = state.get_ref();
    let request = client.post(format!("{base_url}/chat/completions"));
    let request = request
        .header("content-type", "application/json")
        .body(body);
    let answer = request.send().await.unwrap();
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .streaming(answer.bytes_stream())
}
