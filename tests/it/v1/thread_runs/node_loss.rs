//! Tests of runs whose node is lost: they start again, fail, or wait for their client.

use serde_json::json;

use super::support::{ThreadClient, function, joined, names};
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::v1::fixture::{V1Fixture, id};

/// The statement after which a lost node executes a run.
fn start_elsewhere(id: &str, status: &str) -> String {
    format!(
        "UPDATE thread_runs SET status = '{status}', worker_id = 'elsewhere', lease = 7, attempt = 1, \
         heartbeat_at = 1, started_at = 1 WHERE id = '{id}'"
    )
}

on_both! {
    async fn a_run_of_a_lost_node_starts_again_if_nothing_was_sent(backend) {
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_WORKERS", "0"), ("REAPER_INTERVAL_MS", "600000")]).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let run = client.create(json!({})).await;
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let recover = async || {
            let services = fixture.app.app.responses.services();
            let stale_after = Some(services.settings.stale_after);
            troupe::responses::thread_runs::run_recovery::recover(services, stale_after).await.unwrap();
            client.show(id(&run)).await
        };

        facts.execute(&start_elsewhere(id(&run), "in_progress")).await;
        let once = recover().await;
        facts.execute(&start_elsewhere(id(&run), "in_progress")).await;
        facts.execute(&format!("UPDATE thread_runs SET attempt = 2 WHERE id = '{}'", id(&run))).await;
        let twice = recover().await;

        assert_eq!((&once["status"], &once["last_error"]), (&json!("queued"), &json!(null)));
        assert_eq!((&twice["status"], &twice["last_error"]["code"]), (&json!("failed"), &json!("server_error")));
        fixture.close().await;
    }

    async fn a_run_that_was_cancelled_on_a_lost_node_ends_as_cancelled(backend) {
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_WORKERS", "0"), ("REAPER_INTERVAL_MS", "600000")]).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let run = client.create(json!({})).await;
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        facts.execute(&start_elsewhere(id(&run), "cancelling")).await;

        let services = fixture.app.app.responses.services();
        let stale_after = Some(services.settings.stale_after);
        troupe::responses::thread_runs::run_recovery::recover(services, stale_after).await.unwrap();

        assert_eq!(client.show(id(&run)).await["status"], "cancelled");
        fixture.close().await;
    }

    async fn a_run_with_output_fails_and_keeps_the_text_that_was_sent(backend) {
        let fixture = V1Fixture::open_with(backend, &[("REAPER_INTERVAL_MS", "600000")]).await;
        fixture.upstream.next(ResponseScript::stream().role().words("One two ").hang());
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let mut stream = client.stream(json!({})).await;
        let mut seen = stream.until("thread.message.delta").await;
        let run = id(&seen[0].1).to_owned();

        // Another node claims the run and is lost.
        let sql = format!("UPDATE thread_runs SET worker_id = 'elsewhere', lease = 7, heartbeat_at = 1 WHERE id = '{run}'");
        DatabaseFacts::open(&fixture.app.database).await.execute(&sql).await;
        let services = fixture.app.app.responses.services();
        let stale_after = Some(services.settings.stale_after);
        troupe::responses::thread_runs::run_recovery::recover(services, stale_after).await.unwrap();

        let failed = client.show(&run).await;
        assert_eq!((&failed["status"], &failed["last_error"]["code"]), (&json!("failed"), &json!("server_error")));
        let step = &client.steps(&run).await[0];
        assert_eq!((&step["status"], &step["last_error"]), (&json!("failed"), &failed["last_error"]));
        seen.extend(stream.rest().await);
        assert_eq!(names(&seen)[seen.len() - 3..], ["message.incomplete", "run.step.failed", "run.failed"]);
        let texts = client.texts().await;
        assert!(texts[1].starts_with("One ") && texts[1] == joined(&seen), "{texts:?}");
        fixture.upstream.wait_for_disconnect(0).await;
        fixture.close().await;
    }

    async fn a_run_that_waits_for_its_client_survives_a_restart(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}")]));
        fixture.upstream.next(ResponseScript::say("Done."));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let waiting = client.run_until(json!({}), "requires_action").await;
        let services = fixture.app.app.responses.services();

        // What a node does when it starts.
        troupe::responses::thread_runs::run_recovery::recover(services, None).await.unwrap();

        assert_eq!(client.show(id(&waiting)).await, waiting);
        expect(200, client.submit(id(&waiting), &[("call_1", "x")]).await);
        client.wait_for(id(&waiting), "completed").await;
        fixture.close().await;
    }
}
