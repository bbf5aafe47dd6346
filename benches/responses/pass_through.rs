//! The server to compare with: forwards a request to the model and its bytes back, with the
//! libraries that the server uses.

use std::net::TcpListener;

use actix_web::{App, HttpResponse, HttpServer, web};
use reqwest::Client;

/// Names the model's address; who is started with it is the pass-through.
pub const TO: &str = "BENCH_PASS_TO";

/// Serves for ever, if this process is to be the pass-through.
pub fn runs() -> bool {
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
            let pass = web::post().to(pass);
            App::new()
                .app_data(state)
                .route("/v1/chat/completions", pass)
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

async fn pass(state: web::Data<(Client, String)>, body: web::Bytes) -> HttpResponse {
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
