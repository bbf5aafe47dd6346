//! Tests of the admin statistics: exact counts of rows, of current activity, and of the tokens used
//! for each space and day.

use serde_json::{Value, json};
use troupe::runs::reading::history::DAY_MS;

use crate::api::admin::admin_role::AdminFixture;
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::embedding_fixture::{EmbeddingFixture, HOUND, OCEAN};
use crate::support::embeddings_server::EmbeddingAnswer;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::expect;
use crate::support::http_response::refusal;
use crate::support::poll;
use crate::support::ws_client::WsClient;

fn reply(prompt_tokens: i64, completion_tokens: i64) -> ResponseScript {
    let reply = ResponseScript::stream().role().text("Yes.").finish("stop");
    reply.usage(prompt_tokens, completion_tokens).done()
}

/// Returns the server's date `days_ago` days ago.
fn date(fixture: &AdminFixture, days_ago: i64) -> String {
    let at = fixture.app.app.clock.now().plus_ms(-days_ago * DAY_MS);
    at.to_string()[..10].to_owned()
}

on_sqlite! {
    async fn token_use_is_summed_for_each_space_and_day(backend) {
        let fixture = AdminFixture::open(backend).await;
        let ann = fixture.app.register("ann").await;
        let (harbor, inn) = (fixture.create_space(&ann, "Harbor").await, fixture.create_space(&ann, "Inn").await);
        fixture.upstream.next(reply(100, 20));
        fixture.post(&ann, harbor.conversation, "One.").await;
        fixture.upstream.next(reply(1_000, 1));
        fixture.post(&ann, inn.conversation, "Two.").await;
        fixture.upstream.next(ResponseScript::status(401));
        fixture.post(&ann, inn.conversation, "Three.").await;
        fixture.app.app.clock.advance_ms(DAY_MS);
        for (prompt, completion) in [(7, 3), (8, 4)] {
            fixture.upstream.next(reply(prompt, completion));
            fixture.post(&ann, harbor.conversation, "Four.").await;
        }
        let row = |space: i64, name: &str, days_ago, figures: [i64; 4]| json!({
            "space_id": space, "space_name": name, "day": date(&fixture, days_ago),
            "prompt_tokens": figures[0], "completion_tokens": figures[1],
            "runs": figures[2], "failed": figures[3],
        });
        let today = row(harbor.space, "Harbor", 0, [15, 7, 2, 0]);

        let stats = fixture.get("/api/admin/stats").await;
        let one_day = fixture.get("/api/admin/stats?days=1").await;

        assert_eq!(stats["token_use"], json!({
            "days": 30, "from": date(&fixture, 29), "to": date(&fixture, 0),
            "data": [
                today,
                row(inn.space, "Inn", 1, [1_000, 1, 2, 1]),
                row(harbor.space, "Harbor", 1, [100, 20, 1, 0]),
            ],
        }));
        assert_eq!(one_day["token_use"]["data"], json!([today]));
        for query in ["?days=0", "?days=91", "?days=x", "?days=-1"] {
            let refused = fixture.admin.get(&format!("/api/admin/stats{query}")).await;
            assert_eq!(refusal(&refused), (400, "invalid_value".to_owned()), "{query}");
            assert_eq!(refused.1["error"]["param"], "days");
        }
        fixture.close().await;
    }

    async fn the_totals_count_the_current_rows_runs_and_sockets(backend) {
        let fixture = AdminFixture::open(backend).await;
        let clock = &fixture.app.app.clock;
        let ann = fixture.app.register("ann").await;
        let space = fixture.create_space(&ann, "Harbor").await;
        let _client = WsClient::subscribed(&ann, space.conversation).await;
        let gate = HoldPoint::closed();
        fixture.upstream.next(ResponseScript::say("One two.").held_at(&gate));
        expect(201, ann.post_message(space.conversation, "Count.", None).await);
        fixture.upstream.wait_for_requests(1).await;
        expect(201, ann.post_message(space.conversation, "Faster.", None).await);
        clock.advance_ms(5_000);

        let stats = fixture.get("/api/admin/stats").await;

        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let mut n = async |table: &str| {
            facts.number(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}")).await
        };
        assert_eq!(stats["totals"], json!({
            "users": 2, "guests": 0, "active_sessions": 2,
            "spaces": n("spaces").await, "conversations": n("conversations").await,
            "messages": n("messages").await,
            "queued_runs": 1, "running_runs": 1, "oldest_queued_age_ms": 5_000, "open_sockets": 1,
        }));
        assert_eq!(stats["uptime_ms"], 5_000);
        assert_eq!(stats["version"], env!("CARGO_PKG_VERSION"));
        let database = format!("{backend:?}").to_lowercase();
        assert_eq!(stats["database"], database);
        gate.open();
        fixture.settle(&ann, space.conversation).await;
        let later = fixture.get("/api/admin/stats").await;
        let load = ["queued_runs", "running_runs", "oldest_queued_age_ms"];
        let load = load.map(|it| later["totals"][it].clone());
        assert_eq!(load, [json!(0), json!(0), Value::Null]);
        fixture.close().await;
    }

    async fn the_memory_is_described_with_its_tasks_breakers_and_tokens(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.remember(HOUND).await;
        it.embed_all().await;
        it.server.answer(EmbeddingAnswer::Status(500));
        for text in ["hound%201", "hound%202", "hound%203"] {
            it.search(text).await;
        }
        it.remember(OCEAN).await;
        it.app.app.clock.advance_ms(5_000);

        let memory = poll::until("the task waits", async || {
            let memory = expect(200, it.owner.get("/api/admin/stats").await)["memory"].clone();
            (memory["queued_tasks"] == 1).then_some(memory)
        })
        .await;

        let age = memory["oldest_task_age_ms"].as_i64().unwrap();
        assert!(age >= 5_000, "{memory}");
        assert_eq!(memory, json!({
            "memories": 2, "vectors_stale": 1, "queued_tasks": 1, "running_tasks": 0, "failed_tasks": 0,
            "oldest_task_age_ms": age, "tokens_used": 0,
            "breakers": [{"provider": "openai_compatible", "model": "narrow", "open": true}],
        }));
        it.app.close().await;
    }

    async fn a_closed_socket_is_no_longer_counted(backend) {
        let fixture = AdminFixture::open(backend).await;
        let client = WsClient::open(&fixture.admin).await;
        assert_eq!(client.call(json!({"op": "ping"})).await["ok"], true);

        drop(client);

        poll::until("no socket is open", async || {
            let stats = fixture.get("/api/admin/stats").await;
            (stats["totals"]["open_sockets"] == 0).then_some(())
        })
        .await;
        fixture.close().await;
    }
}
