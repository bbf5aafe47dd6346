//! Tests of the admin's run list: all runs of all spaces, with filters, and no message text.

use serde_json::{Value, json};

use crate::api::admin::admin_role::AdminFixture;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::expect;
use crate::support::http_response::refusal;
use crate::support::poll;

const PLANTED: &str = "zanzibar-secret";

fn field<'a>(list: &'a Value, name: &str) -> Vec<&'a Value> {
    let all = list["data"].as_array().unwrap().iter();
    all.map(|it| &it[name]).collect()
}

on_sqlite! {
    async fn every_run_is_listed_newest_first_and_can_be_filtered(backend) {
        let fixture = AdminFixture::open(backend).await;
        let ann = fixture.app.register("ann").await;
        let (one, two) = (fixture.create_space(&fixture.admin, "Harbor").await, fixture.create_space(&ann, "Inn").await);
        fixture.post(&fixture.admin, one.conversation, "First.").await;
        fixture.upstream.next(ResponseScript::status(401));
        fixture.post(&ann, two.conversation, "Second.").await;
        let forced = json!({});
        expect(202, ann.post(&format!("/api/conversations/{}/generate", two.conversation), forced).await);
        fixture.settle(&ann, two.conversation).await;
        let list = async |query: &str| fixture.get(&format!("/api/admin/runs{query}")).await;

        let all = list("").await;

        assert_eq!(field(&all, "status"), ["succeeded", "failed", "succeeded"]);
        assert_eq!(field(&all, "space_name"), ["Inn", "Inn", "Harbor"]);
        assert_eq!(field(&all, "speaker_name"), ["Ada"; 3]);
        assert_eq!(all["data"][2]["conversation_id"], one.conversation);
        assert!(field(&all, "worker_id").iter().all(|it| it.as_str().unwrap().starts_with("node-")));
        let ids = field(&all, "id");
        let (space, conversation) = (two.space, one.conversation);
        for (query, found) in [
            ("?status=failed".to_owned(), vec![1]),
            ("?status=queued".to_owned(), vec![]),
            ("?status=running".to_owned(), vec![]),
            ("?kind=force_talk".to_owned(), vec![0]),
            ("?kind=user_turn".to_owned(), vec![1, 2]),
            (format!("?space_id={space}"), vec![0, 1]),
            (format!("?conversation_id={conversation}"), vec![2]),
            (format!("?conversation_id={conversation}&space_id={space}"), vec![]),
            ("?error_code=upstream_error".to_owned(), vec![1]),
            ("?error_code=internal".to_owned(), vec![]),
            ("?error_code=upstream_error&status=succeeded".to_owned(), vec![]),
            ("?limit=1".to_owned(), vec![0]),
            (format!("?limit=1&before={}", ids[0].as_str().unwrap()), vec![1]),
            (format!("?limit=1&after={}", ids[2].as_str().unwrap()), vec![1]),
            (format!("?after={}", ids[2].as_str().unwrap()), vec![0, 1]),
        ] {
            let wanted: Vec<&Value> = found.iter().map(|at: &usize| ids[*at]).collect();
            assert_eq!(field(&list(&query).await, "id"), wanted, "{query}");
        }
        assert_eq!(list("?limit=1").await["has_more"], true);
        for query in ["?status=done", "?kind=x", "?space_id=x", "?error_code=%00", "?before=1"] {
            let refused = fixture.admin.get(&format!("/api/admin/runs{query}")).await;
            assert_eq!(refusal(&refused), (400, "invalid_value".to_owned()), "{query}");
        }
        fixture.close().await;
    }

    async fn a_running_run_shows_its_heartbeat_and_progress_but_no_text(backend) {
        let fixture = AdminFixture::open(backend).await;
        let space = fixture.create_space(&fixture.admin, "Harbor").await;
        let (gate, text) = (HoldPoint::closed(), format!("{PLANTED} ünd more"));
        fixture.upstream.next(ResponseScript::say(&text).held_at(&gate));
        let post = fixture.admin.post_message(space.conversation, PLANTED, None).await;
        expect(201, post);
        gate.step();
        gate.step();

        let running = poll::until("two words are written", async || {
            let list = fixture.get("/api/admin/runs?status=running").await;
            let live = &list["data"][0]["live"];
            (live["chars"].as_u64()? > 16).then_some(list)
        })
        .await;

        let run = &running["data"][0];
        assert_eq!(run["live"], json!({"chars": format!("{PLANTED} ünd").chars().count()}));
        assert!(run["heartbeat_age_ms"].as_i64().unwrap() >= 0);
        assert_eq!((&run["attempt"], &run["finished_at"]), (&json!(1), &Value::Null));
        assert!(!running.to_string().contains("zanzibar"), "{running}");
        gate.open();
        fixture.settle(&fixture.admin, space.conversation).await;
        let ended = fixture.get("/api/admin/runs").await;
        assert_eq!(ended["data"][0]["live"], Value::Null);
        assert_eq!(ended["data"][0]["heartbeat_age_ms"], Value::Null);
        assert_eq!(ended["data"][0]["usage"], json!({"prompt_tokens": 7, "completion_tokens": 3, "estimated": false}));
        assert!(!ended.to_string().contains("zanzibar"), "{ended}");
        fixture.close().await;
    }

    async fn reaping_returns_the_number_of_recovered_runs(backend) {
        let fixture = AdminFixture::open(backend).await;

        let report = expect(200, fixture.admin.post("/api/admin/reap", json!({})).await);

        assert_eq!(report, json!({"failed": 0, "requeued": 0, "turns_skipped": 0, "rounds_closed": 0, "jobs_continued": 0}));
        fixture.close().await;
    }
}
