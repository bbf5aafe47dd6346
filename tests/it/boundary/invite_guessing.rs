//! Tests of password guessing and of the lifetime of sessions.

use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;

const RIGHT: &str = "correct horse battery";

fn sign_in(app: &TestApp, username: &str, password: &str) -> RequestBuilder {
    http_client()
        .post(format!("{}/api/session", app.base))
        .json(&json!({"username": username, "password": password}))
}

/// The default cost of a hash: with the cheap hashes of other tests, sign-ins would hardly overlap,
/// and a sign-in that computes no hash would take about the same time as one that does.
const DEFAULT_HASHES: (&str, &str) = ("PASSWORD_HASH_KIB", "");

on_sqlite! {
    async fn about_ten_of_a_thousand_password_guesses_are_verified(backend) {
        let app = TestApp::start_with(backend, &[DEFAULT_HASHES]).await;
        app.admin().await;

        let guesses = (0..1_000).map(|nth| {
            let guess = format!("guess number {nth}");
            let request = sign_in(&app, "admin", &guess);
            async move { Answer::to(request).await.refusal() }
        });
        // Fifty at a time, as an attacker would.
        let guesses: Vec<_> = guesses.collect();
        let mut answers = Vec::new();
        let mut waiting = guesses.into_iter();
        loop {
            let batch: Vec<_> = waiting.by_ref().take(50).collect();
            if batch.is_empty() {
                break;
            }
            answers.extend(join_all(batch).await);
        }

        let n_verified = answers.iter().filter(|it| it.0 == 401).count();
        let n_rejected = answers.iter().filter(|it| **it == (429, "rate_limited".to_owned())).count();
        eprintln!("of 1000 guesses {n_verified} were verified, {n_rejected} rejected");
        assert_eq!(n_verified + n_rejected, 1_000);
        // Four sign-ins may be in progress when the tenth failure is counted.
        assert!((10..=13).contains(&n_verified), "{n_verified}");
        let late = Answer::to(sign_in(&app, "admin", RIGHT)).await;
        assert_eq!(late.refusal(), (429, "rate_limited".to_owned()));
        assert_eq!(late.header("retry-after"), "180");
        app.close().await;
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_time_does_not_reveal_whether_a_name_exists() {
    let settings = [("LIMIT_LOGIN_FAILURES", "0"), DEFAULT_HASHES];
    let app = TestApp::start_with(TestBackend::Sqlite, &settings).await;
    app.admin().await;
    let (mut known, mut unknown) = (Vec::new(), Vec::new());

    // The requests alternate, so that other load on the machine affects both.
    for _ in 0..25 {
        for (name, times) in [("admin", &mut known), ("nobody", &mut unknown)] {
            let began = Instant::now();
            let answer = Answer::to(sign_in(&app, name, "wrong horse")).await;
            times.push(began.elapsed());
            assert_eq!(answer.status, 401);
        }
    }

    let (known, unknown) = (median(known), median(unknown));
    eprintln!(
        "a wrong password takes {known:?} for an existing user, {unknown:?} for an unknown one"
    );
    // Without equal work, one would take only a small fraction of the other's time.
    assert!(
        known < unknown * 2 && unknown < known * 2,
        "{known:?} {unknown:?}"
    );
    app.close().await;
}

/// Returns the session of a response's cookie and checks the cookie's flags.
fn session_cookie_of(answer: &Answer, is_secure: bool) -> String {
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies.len(), 1, "{answer:?}");
    let cookie = answer.header("set-cookie");
    let mut parts = cookie.split("; ");
    let pair = parts.next().expect("a cookie has a name and a value");
    let flags: Vec<&str> = parts.collect();
    for flag in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(flags.contains(&flag), "{cookie}");
    }
    assert_eq!(flags.contains(&"Secure"), is_secure, "{cookie}");
    assert!(!cookie.contains("Domain"), "{cookie}");
    pair.to_owned()
}

async fn is_signed_in(app: &TestApp, cookie: &str) -> bool {
    let session_request = http_client()
        .get(format!("{}/api/session", app.base))
        .header("cookie", cookie);
    Answer::to(session_request).await.status == 200
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sign_in_and_password_change_replaces_the_session() {
    for (public_url, is_secure) in [
        ("", false),
        ("http://troupe.example", false),
        ("https://troupe.example", true),
    ] {
        let app =
            TestApp::start_with(TestBackend::Sqlite, &[("TROUPE_PUBLIC_URL", public_url)]).await;
        let client = http_client();
        let to = |method: Method, path: &str, cookie: &str| {
            let url = format!("{}{path}", app.base);
            client.request(method, url).header("cookie", cookie)
        };
        let planted = "troupe_session=planted";
        let account = json!({"username": "admin", "password": RIGHT, "display_name": "A"});
        let sign_in = json!({"username": "admin", "password": RIGHT});
        let change = json!({"password": "another horse", "current_password": RIGHT});

        let set_up = Answer::to(to(Method::POST, "/api/setup", planted).json(&account)).await;
        let first = session_cookie_of(&set_up, is_secure);
        assert_ne!(first, planted);
        assert!(is_signed_in(&app, &first).await && !is_signed_in(&app, planted).await);

        let again = Answer::to(to(Method::POST, "/api/session", &first).json(&sign_in)).await;
        let second = session_cookie_of(&again, is_secure);
        assert!(is_signed_in(&app, &second).await && !is_signed_in(&app, &first).await);

        let changed = Answer::to(to(Method::PATCH, "/api/users/me", &second).json(&change)).await;
        let third = session_cookie_of(&changed, is_secure);
        assert!(is_signed_in(&app, &third).await && !is_signed_in(&app, &second).await);

        let out = Answer::to(to(Method::DELETE, "/api/session", &third)).await;
        assert_eq!(session_cookie_of(&out, is_secure), "troupe_session=");
        assert!(out.header("set-cookie").contains("Max-Age=0"));
        assert!(!is_signed_in(&app, &third).await);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_server_rejects_all_sign_ins_by_default() {
    let config = troupe::config::Config::read(|_| None).unwrap();
    assert!(config.bind.ip().is_loopback());
    assert!(!config.open_registration);
    let app = TestApp::start(TestBackend::Sqlite).await;

    for (name, password) in [
        ("admin", "admin"),
        ("admin", "password"),
        ("root", "root"),
        ("troupe", "troupe"),
        ("", ""),
    ] {
        assert_eq!(
            Answer::to(sign_in(&app, name, password)).await.status,
            401,
            "{name}"
        );
    }
    let account = json!({"username": "ben", "password": RIGHT, "display_name": "B"});
    let register = http_client()
        .post(format!("{}/api/users", app.base))
        .json(&account);
    assert_eq!(
        Answer::to(register).await.refusal(),
        (403, "registration_closed".to_owned())
    );
    app.close().await;
}
