//! Tests guessing of passwords: as many guesses are checked as the limit allows; the rest, right or
//! wrong, has to wait.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::HttpClient;

const RIGHT: &str = "correct horse battery";

/// The number of responses with each status.
type Counts = BTreeMap<u16, usize>;

async fn try_sign_in(visitor: &HttpClient, username: &str, password: &str) -> u16 {
    let body = json!({"username": username, "password": password});
    let tried = visitor
        .attempt(Method::POST, "/api/session", Some(&body))
        .await;
    tried.expect("the sign-in got no response").0
}

/// Makes a thousand sign-in attempts, the nth with the username `name(n)`.
async fn guess(app: &TestApp, name: impl Fn(usize) -> String) -> Counts {
    let visitor = HttpClient::new(&app.base);
    let mut counts = Counts::new();
    for n in 0..1_000 {
        let status = try_sign_in(&visitor, &name(n), &format!("guess {n}")).await;
        *counts.entry(status).or_default() += 1;
    }
    counts
}

on_sqlite! {
    async fn of_a_thousand_password_guesses_for_one_name_ten_are_checked(backend) {
        let app = TestApp::start(backend).await;
        app.admin().await;

        // In upper and lower case, which count as one name.
        let counts = guess(&app, |n| if n % 2 == 0 { "admin".into() } else { "ADMIN".into() }).await;

        eprintln!("guesses at one name: {counts:?}");
        assert_eq!(counts, Counts::from([(401, 10), (429, 990)]));
        let owner = HttpClient::new(&app.base);
        assert_eq!(try_sign_in(&owner, "admin", RIGHT).await, 429, "the right password is not limited");
        app.app.clock.advance_ms(3 * 60_000 - 1);
        assert_eq!(try_sign_in(&owner, "admin", RIGHT).await, 429);
        app.app.clock.advance_ms(1);
        assert_eq!(try_sign_in(&owner, "admin", RIGHT).await, 200);
        app.close().await;
    }

    async fn of_a_thousand_password_guesses_from_one_address_ten_are_checked(backend) {
        let app = TestApp::start(backend).await;
        app.admin().await;

        let counts = guess(&app, |n| format!("somebody{n}")).await;

        eprintln!("guesses from one address: {counts:?}");
        assert_eq!(counts, Counts::from([(401, 10), (429, 990)]));
        let owner = HttpClient::new(&app.base);
        assert_eq!(try_sign_in(&owner, "admin", RIGHT).await, 429);
        app.app.clock.advance_ms(3 * 60_000);
        assert_eq!(try_sign_in(&owner, "admin", RIGHT).await, 200);
        app.close().await;
    }

    async fn of_continued_password_guesses_ten_in_three_minutes_are_checked(backend) {
        let app = TestApp::start(backend).await;
        app.admin().await;
        let visitor = HttpClient::new(&app.base);
        let mut counts = Counts::new();

        // A quarter of an hour, a guess every two seconds.
        for n in 0..450 {
            let status = try_sign_in(&visitor, "admin", &format!("guess {n}")).await;
            *counts.entry(status).or_default() += 1;
            app.app.clock.advance_ms(2_000);
        }

        eprintln!("a quarter of an hour of guesses: {counts:?}");
        // Ten in each period of three minutes.
        assert_eq!(counts, Counts::from([(401, 50), (429, 400)]));
        app.close().await;
    }
}
