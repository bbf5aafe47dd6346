//! Tests untrusted cards in prompts: for any card the prompt is built in time, and contains no
//! secret of the server.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::backends::on_sqlite;
use crate::support::http_client::{id, root_of};
use crate::untrusted_input::installation::Installation;
use crate::untrusted_input::strings;

/// Far longer than building any prompt takes, even on a busy machine; an exponential expansion
/// never ends.
const MAX_BUILD_TIME: Duration = Duration::from_secs(10);

/// Macros that would grow, loop, or read secrets.
fn hostile_macros() -> Vec<String> {
    let nested = |n: usize| format!("{}user{}", "{{".repeat(n), "}}".repeat(n));
    vec![
        nested(20),
        nested(2_000),
        "{{char}}".repeat(5_000),
        "{{random::a,b}}".repeat(3_000),
        format!("{{{{random::{}}}}}", "a,".repeat(20_000)),
        "{{pick::{{pick::{{pick::a,b}},c}},d}}".to_owned(),
        "{{setvar::a::{{getvar::a}}{{getvar::a}}}}".repeat(500),
        "{{roll:1000000d1000000}}".repeat(500),
        "{{description}}{{personality}}{{scenario}}".repeat(200),
        "{{env::TROUPE_SECRET_KEY}} ${TROUPE_SECRET_KEY} {{TROUPE_SECRET_KEY}}".to_owned(),
        "{{#if a}}".repeat(2_000),
        "{{//".repeat(2_000),
    ]
}

on_sqlite! {
    async fn a_prompt_is_built_from_any_card_text(backend) {
        let server = Installation::open(backend).await;
        let space = server.admin.create_space("Stage", json!({})).await;
        let card = server.admin.create_character("Stranger", None).await;
        let membership = server.admin.add_character(&space, &card).await;
        let prompt = format!("/api/conversations/{}/prompt?speaker_id={}", root_of(&space), id(&membership));
        let path = format!("/api/characters/{}", card["id"]);
        let secret = &server.app.app.config.secret_key.as_ref().expect("the test server has no secret key").0;
        let texts = strings::all().into_iter().filter(|it| !it.contains('\0'));

        let mut n = 0;
        for text in texts.chain(hostile_macros()) {
            let change = json!({
                "description": text,
                "personality": text,
                "scenario": text,
                "mes_example": text,
                "system_prompt": text,
                "post_history_instructions": text,
                "nickname": text,
                "extensions": {"depth_prompt": {"prompt": text, "depth": 0}},
            });
            let shown: String = text.chars().take(60).collect();
            assert_eq!(server.admin.patch(&path, change).await.0, 200, "{shown:?}");
            let began = Instant::now();

            let (status, answer) = server.admin.get(&prompt).await;

            assert!(began.elapsed() < MAX_BUILD_TIME, "{shown:?} took {:?}", began.elapsed());
            let code = &answer["error"]["code"];
            let is_too_long = status == 422 && code == "context_overflow" && text.len() > 1_000;
            let has_too_many = status == 422 && code == "invalid_macro" && text.contains("{{");
            assert!(status == 200 || is_too_long || has_too_many, "{shown:?}: {status} {code}");
            assert!(!answer.to_string().contains(secret), "{shown:?}");
            n += 2;
        }
        eprintln!("cards in prompts: {n} requests");
        server.close_unharmed().await;
    }
}
