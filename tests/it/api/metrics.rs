//! Tests of the Prometheus metrics: access, correct values, and no private data.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::json;

use crate::api::admin::admin_role::AdminFixture;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::embedding_fixture::{EmbeddingFixture, HOUND, OCEAN};
use crate::support::embeddings_server::EmbeddingAnswer;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::{HttpClient, expect, http_client};
use crate::support::http_response::Answer;
use crate::support::poll;
use crate::support::ws_client::WsClient;

const PLANTED: &str = "zanzibar";

/// Requests the metrics with these headers.
async fn request_metrics(fixture: &AdminFixture, headers: &[(&str, &str)]) -> Answer {
    request_from(&fixture.app.base, headers).await
}

async fn request_from(base: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = http_client().get(format!("{base}/metrics"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::to(request).await
}

/// Returns every sample by its name and labels; panics on invalid OpenMetrics text.
async fn samples(fixture: &AdminFixture) -> BTreeMap<String, f64> {
    samples_from(&fixture.app.base).await
}

async fn samples_from(base: &str) -> BTreeMap<String, f64> {
    let answer = request_from(base, &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut lines: Vec<&str> = answer.text.lines().collect();
    assert_eq!(lines.pop(), Some("# EOF"));
    let mut found = BTreeMap::new();
    let mut family = "";
    for line in lines {
        if let Some(comment) = line.strip_prefix("# ") {
            family = comment.split(' ').nth(1).unwrap();
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(
            series.starts_with(family),
            "{series} is listed under {family}"
        );
        let value = value
            .parse()
            .unwrap_or_else(|_| panic!("not a number: {line}"));
        assert!(
            found.insert(series.to_owned(), value).is_none(),
            "duplicate series: {series}"
        );
    }
    found
}

async fn key_of(person: &HttpClient) -> String {
    let made = expect(
        201,
        person
            .post("/api/api_keys", json!({"name": "scraper"}))
            .await,
    );
    format!("Bearer {}", made["key"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_need_an_admins_key_or_a_local_request() {
    let public = [("TROUPE_PUBLIC_URL", "https://troupe.example")];
    let fixture = AdminFixture::open_with(TestBackend::Sqlite, &public).await;
    let ann = fixture.app.register("ann").await;
    let (admins, anns) = (key_of(&fixture.admin).await, key_of(&ann).await);
    let elsewhere = ("x-forwarded-for", "203.0.113.7");
    let cookie = ("cookie", fixture.admin.cookie());

    let here = request_metrics(&fixture, &[]).await;

    assert_eq!(here.status, 200);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(here.header("content-type"), kind);
    let by_key = request_metrics(&fixture, &[elsewhere, ("authorization", &admins)]).await;
    assert_eq!(by_key.status, 200);
    for (headers, refusal) in [
        (vec![elsewhere], (401, "not_authenticated")),
        (vec![("host", "troupe.example")], (401, "not_authenticated")),
        (vec![("host", "evil.example")], (421, "misdirected_request")),
        (vec![elsewhere, cookie], (401, "not_authenticated")),
        (
            vec![("authorization", "Bearer trp_wrong")],
            (401, "not_authenticated"),
        ),
        (
            vec![("authorization", "Basic x"), cookie],
            (403, "forbidden"),
        ),
        (vec![("authorization", anns.as_str())], (403, "forbidden")),
        (
            vec![elsewhere, ("authorization", anns.as_str())],
            (403, "forbidden"),
        ),
    ] {
        let refused = request_metrics(&fixture, &headers).await;
        assert_eq!(
            refused.refusal(),
            (refusal.0, refusal.1.to_owned()),
            "{headers:?}"
        );
    }
    fixture.close().await;
}

on_sqlite! {
    async fn every_metric_is_counted(backend) {
        let fixture = AdminFixture::open(backend).await;
        let space = fixture.create_space(&fixture.admin, "Harbor").await;
        let client = WsClient::subscribed(&fixture.admin, space.conversation).await;
        fixture.post(&fixture.admin, space.conversation, "One.").await;
        fixture.upstream.next(ResponseScript::status(401));
        fixture.post(&fixture.admin, space.conversation, "Two.").await;
        let gate = HoldPoint::closed();
        fixture.upstream.next(ResponseScript::say("Slow one.").held_at(&gate));
        let post = fixture.admin.post_message(space.conversation, "Three.", None).await;
        expect(201, post);
        fixture.upstream.wait_for_requests(3).await;
        let post = fixture.admin.post_message(space.conversation, "Four.", None).await;
        expect(201, post);
        fixture.app.app.clock.advance_ms(5_000);

        let during = samples(&fixture).await;
        expect(202, fixture.admin.stop(space.conversation).await);
        fixture.settle(&fixture.admin, space.conversation).await;
        drop(client);
        let after = poll::until("everything has ended", async || {
            let now = samples(&fixture).await;
            let is_idle = ["troupe_runs_held", "troupe_sockets_open"].iter().all(|it| now[*it] == 0.0);
            is_idle.then_some(now)
        })
        .await;

        let messages = r#"route="/api/conversations/{conversation_id}/messages",method="POST""#;
        for (series, value) in [
            ("troupe_sockets_open", 1.0),
            ("troupe_runs_held", 1.0),
            ("troupe_runs_running", 1.0),
            ("troupe_runs_queued", 1.0),
            ("troupe_runs_oldest_queued_seconds", 5.0),
            ("troupe_database_up", 1.0),
        ] {
            assert_eq!(during[series], value, "{series}");
        }
        for (series, value) in [
            ("troupe_runs_queued".to_owned(), 0.0),
            ("troupe_runs_running".to_owned(), 0.0),
            ("troupe_runs_oldest_queued_seconds".to_owned(), 0.0),
            (r#"troupe_runs_ended_total{kind="user_turn",outcome="succeeded",error=""}"#.to_owned(), 1.0),
            (r#"troupe_runs_ended_total{kind="user_turn",outcome="failed",error="upstream_error"}"#.to_owned(), 1.0),
            (r#"troupe_runs_ended_total{kind="user_turn",outcome="canceled",error=""}"#.to_owned(), 2.0),
            ("troupe_run_wait_seconds_count".to_owned(), 3.0),
            ("troupe_run_first_delta_seconds_count".to_owned(), 1.0),
            (r#"troupe_run_duration_seconds_count{outcome="succeeded"}"#.to_owned(), 1.0),
            (r#"troupe_run_duration_seconds_sum{outcome="canceled"}"#.to_owned(), 5.0),
            (r#"troupe_upstream_calls_total{provider="openai_compatible",outcome="answered"}"#.to_owned(), 1.0),
            (r#"troupe_upstream_calls_total{provider="openai_compatible",outcome="refused"}"#.to_owned(), 1.0),
            (r#"troupe_upstream_calls_total{provider="openai_compatible",outcome="hung_up"}"#.to_owned(), 1.0),
            (r#"troupe_upstream_tokens_total{provider="openai_compatible",direction="prompt"}"#.to_owned(), 7.0),
            (r#"troupe_upstream_tokens_total{provider="openai_compatible",direction="completion"}"#.to_owned(), 1.0),
            (format!(r#"troupe_http_requests_total{{{messages},status="2xx"}}"#), 4.0),
            (format!("troupe_http_request_duration_seconds_count{{{messages}}}"), 4.0),
        ] {
            assert_eq!(after.get(&series), Some(&value), "{series} in {after:#?}");
        }
        let pool = match backend {
            TestBackend::Sqlite => "read",
            TestBackend::Postgres => "all",
        };
        for series in [
            r#"troupe_events_published_total{kind="delta"}"#.to_owned(),
            r#"troupe_events_published_total{kind="frame"}"#.to_owned(),
            "troupe_database_write_wait_seconds_count".to_owned(),
            format!(r#"troupe_database_connections{{pool="{pool}",state="idle"}}"#),
            "process_resident_memory_bytes".to_owned(),
            "process_open_fds".to_owned(),
            "process_start_time_seconds".to_owned(),
        ] {
            assert!(after[&series] > 0.0, "{series}");
        }
        fixture.close().await;
    }

    async fn no_metric_contains_message_text(backend) {
        let fixture = AdminFixture::open(backend).await;
        let ann = fixture.app.register(PLANTED).await;
        let settings = json!({"reply_order": "list", "description": PLANTED});
        let space = ann.create_space(PLANTED, settings).await;
        let character = ann.create_character(PLANTED, Some(PLANTED)).await;
        ann.add_character(&space, &character).await;
        let conversation = space["root_conversation_id"].as_i64().unwrap();
        let title = json!({"title": PLANTED});
        expect(200, ann.patch(&format!("/api/conversations/{conversation}"), title).await);
        let model = json!({"name": PLANTED, "model": PLANTED, "base_url": fixture.upstream.base_url(), "is_default": true});
        expect(201, fixture.admin.post("/api/providers", model).await);
        fixture.upstream.next(ResponseScript::say(PLANTED));
        fixture.post(&ann, conversation, PLANTED).await;
        let refusal = json!({"error": {"message": PLANTED, "code": PLANTED, "type": PLANTED}});
        fixture.upstream.next(ResponseScript::json(400, &refusal));
        fixture.post(&ann, conversation, PLANTED).await;
        for path in [
            format!("/{PLANTED}"),
            format!("/api/{PLANTED}?q={PLANTED}"),
            format!("/c/{PLANTED}"),
            format!("/api/conversations/{PLANTED}"),
            format!("/api/search?q={PLANTED}"),
            format!("/css/{PLANTED}.css"),
        ] {
            ann.get(&path).await;
        }

        let answer = request_metrics(&fixture, &[]).await;

        assert_eq!(answer.status, 200);
        assert!(!answer.text.contains(PLANTED), "{}", answer.text);
        assert!(answer.text.contains(r#"outcome="succeeded""#), "{}", answer.text);
        fixture.close().await;
    }
}

on_both! {
    async fn the_memory_is_counted(backend) {
        let it = EmbeddingFixture::open(backend).await;
        let base = it.app.base.clone();
        it.remember(HOUND).await;
        it.remember(OCEAN).await;
        it.embed_all().await;
        for text in ["dog", "dog", "zebra"] {
            it.search(text).await;
        }
        it.server.answer(EmbeddingAnswer::Status(500));
        for text in ["hound%201", "hound%202", "hound%203"] {
            it.search(text).await;
        }
        it.remember(PLANTED).await;
        it.app.app.clock.advance_ms(5_000);

        let found = poll::until("the task waits", async || {
            let found = samples_from(&base).await;
            (found[r#"troupe_memory_outbox{status="queued"}"#] == 1.0).then_some(found)
        })
        .await;

        for (series, value) in [
            (r#"troupe_memory_outbox{status="running"}"#, 0.0),
            (r#"troupe_memory_outbox{status="failed"}"#, 0.0),
            ("troupe_memories_total", 3.0),
            ("troupe_memory_vectors_stale", 1.0),
            ("troupe_memory_dropped_total", 0.0),
            ("troupe_memory_recall_seconds_count", 6.0),
            (r#"troupe_memory_recall_total{result="hit"}"#, 2.0),
            (r#"troupe_memory_recall_total{result="empty"}"#, 1.0),
            (r#"troupe_memory_recall_total{result="degraded"}"#, 3.0),
            (r#"troupe_memory_source_failures_total{source="vectors"}"#, 3.0),
            (r#"troupe_embedding_requests_total{path="read",result="succeeded"}"#, 2.0),
            (r#"troupe_embedding_requests_total{path="read",result="failed"}"#, 3.0),
            (r#"troupe_embedding_cache_total{result="hit"}"#, 1.0),
            (r#"troupe_memory_breaker_open{provider="openai_compatible"}"#, 1.0),
        ] {
            assert_eq!(found.get(series), Some(&value), "{series} in {found:#?}");
        }
        for series in [
            r#"troupe_embedding_requests_total{path="write",result="succeeded"}"#,
            r#"troupe_embedding_cache_total{result="miss"}"#,
        ] {
            assert!(found[series] > 0.0, "{series}");
        }
        assert!(found["troupe_memory_outbox_oldest_seconds"] >= 5.0);
        let text = request_from(&base, &[]).await.text;
        assert!(!text.contains(PLANTED) && !text.contains("narrow"), "{text}");
        it.app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_shown_while_the_memories_cannot_be_counted() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = AdminFixture::open(TestBackend::Postgres).await;
    let mut holder = DatabaseFacts::open(&fixture.app.database).await;
    holder
        .execute("BEGIN; LOCK TABLE memories IN ACCESS EXCLUSIVE MODE")
        .await;

    let found = samples(&fixture).await;
    assert_eq!(found[r#"troupe_memory_outbox{status="queued"}"#], 0.0);
    assert!(found["troupe_memories_total"].is_nan(), "{found:#?}");

    holder.execute("COMMIT").await;
    poll::until("the memories are counted", async || {
        (samples(&fixture).await["troupe_memories_total"] == 0.0).then_some(())
    })
    .await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusual_requests_add_no_metric_series() {
    let fixture = AdminFixture::open(TestBackend::Sqlite).await;
    let ann = fixture.app.register("ann").await;
    let odd = async |n: usize| {
        let method = Method::from_bytes(format!("ODD{n}").as_bytes()).unwrap();
        for path in ["/nothing", "/api/nothing", "/api/spaces/"] {
            let path = format!("{path}{n}");
            ann.get(&path).await;
            ann.attempt(method.clone(), &path, None).await.unwrap();
        }
        samples(&fixture).await.len()
    };
    odd(1).await;
    let before = odd(2).await;

    for n in 3..20 {
        odd(n).await;
    }

    assert_eq!(odd(20).await, before);
    fixture.close().await;
}
