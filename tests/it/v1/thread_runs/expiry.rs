//! Tests of the expiry of runs: without outputs of tools, and with too much work.

use serde_json::json;

use super::support::{ThreadClient, function, names};
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::support::v1_client::error_of;
use crate::v1::fixture::{V1Fixture, id};

on_both! {
    async fn a_run_without_outputs_of_its_tools_expires(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}")]));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let waiting = client.run_until(json!({}), "requires_action").await;
        let services = fixture.app.app.responses.services();
        let wait_s = waiting["expires_at"].as_i64().unwrap() - services.clock.now().0 / 1_000;
        assert!((590..=600).contains(&wait_s), "{wait_s}");

        // As if ten minutes had passed.
        let sql = format!("UPDATE thread_runs SET expires_at = 1 WHERE id = '{}'", id(&waiting));
        DatabaseFacts::open(&fixture.app.database).await.execute(&sql).await;
        troupe::responses::thread_runs::run_recovery::end_expired(services).await.unwrap();

        let expired = client.wait_for(id(&waiting), "expired").await;
        assert_eq!((&expired["required_action"], &expired["expires_at"]), (&json!(null), &json!(null)));
        let step = &client.steps(id(&waiting)).await[0];
        assert_eq!((&step["status"], step["expired_at"].is_i64()), (&json!("expired"), true));
        let late = error_of(&client.submit(id(&waiting), &[("call_1", "x")]).await);
        assert_eq!((late.0, late.1.as_str()), (400, "run_not_awaiting_tools"));
        expect(200, client.say("Again.").await);
        client.run_until(json!({}), "completed").await;
        fixture.close().await;
    }

    async fn outputs_that_arrive_after_the_expiry_end_the_run(backend) {
        let fixture = V1Fixture::open_with(backend, &[("REAPER_INTERVAL_MS", "600000")]).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}")]));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let waiting = client.run_until(json!({}), "requires_action").await;
        let sql = format!("UPDATE thread_runs SET expires_at = 1 WHERE id = '{}'", id(&waiting));
        DatabaseFacts::open(&fixture.app.database).await.execute(&sql).await;

        let late = error_of(&client.submit(id(&waiting), &[("call_1", "x")]).await);

        assert_eq!(late.1, "run_not_awaiting_tools");
        assert_eq!(client.show(id(&waiting)).await["status"], "expired");
        fixture.close().await;
    }

    async fn a_run_that_works_too_long_expires(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RUN_TIMEOUT_MS", "1500")]).await;
        fixture.upstream.next(ResponseScript::stream().role().words("One ").hang());
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;

        let events = client.stream(json!({})).await.rest().await;

        let end = ["message.incomplete", "run.step.expired", "run.expired"];
        assert_eq!(names(&events)[events.len() - 3..], end);
        fixture.upstream.wait_for_disconnect(0).await;
        assert_eq!(client.show(id(&events[0].1)).await, events.last().unwrap().1);
        expect(200, client.say("Again.").await);
        fixture.close().await;
    }
}
