//! Tests of the cancellation of runs, in each status and from another node.

use serde_json::json;

use super::support::{ThreadClient, function, names};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::support::v1_client::error_of;
use crate::v1::fixture::{V1Fixture, id};

on_both! {
    async fn a_running_run_is_cancelled_and_its_thread_is_usable(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::stream().role().words("One two ").hang());
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let mut stream = client.stream(json!({})).await;
        let seen = stream.until("thread.message.delta").await;
        let run = id(&seen[0].1).to_owned();

        let cancelling = expect(200, client.cancel(&run).await);

        assert!(cancelling["status"] == "cancelling" || cancelling["status"] == "cancelled", "{cancelling}");
        fixture.upstream.wait_for_disconnect(0).await;
        let ended = client.wait_for(&run, "cancelled").await;
        assert!(ended["cancelled_at"].is_i64(), "{ended}");
        let rest = stream.rest().await;
        let end = ["run.cancelling", "run.step.cancelled", "message.incomplete", "run.cancelled"];
        assert_eq!(names(&rest)[rest.len() - 4..], end);
        assert_eq!(rest.last().unwrap().1, ended);
        let message = client.messages().await.remove(1);
        assert_eq!(message["incomplete_details"]["reason"], "run_cancelled");
        let again = error_of(&client.cancel(&run).await);
        assert_eq!((again.0, again.1.as_str()), (400, "run_not_cancellable"));
        expect(200, client.say("Again.").await);
        client.run_until(json!({}), "completed").await;
        fixture.close().await;
    }

    async fn a_queued_run_and_one_that_waits_are_cancelled_at_once(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}")]));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let waiting = client.run_until(json!({}), "requires_action").await;

        let cancelled = expect(200, client.cancel(id(&waiting)).await);

        assert_eq!((&cancelled["status"], &cancelled["required_action"]), (&json!("cancelled"), &json!(null)));
        assert_eq!(client.steps(id(&waiting)).await[0]["status"], "cancelled");
        let late = error_of(&client.submit(id(&waiting), &[("call_1", "x")]).await);
        assert_eq!(late.1, "run_not_awaiting_tools");
        fixture.close().await;
    }
}

on_sqlite! {
    async fn a_queued_run_is_cancelled_at_once(backend) {
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_WORKERS", "0")]).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let run = client.create(json!({})).await;

        let cancelled = expect(200, client.cancel(id(&run)).await);

        assert_eq!(cancelled["status"], "cancelled");
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }

    async fn a_deleted_thread_ends_its_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::hang_before_headers());
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let run = client.create(json!({})).await;
        fixture.upstream.wait_for_requests(1).await;

        expect(200, fixture.program.delete(&client.path("")).await);

        fixture.upstream.wait_for_disconnect(0).await;
        assert_eq!(fixture.program.get(&client.path(&format!("/runs/{}", id(&run)))).await.0, 404);
        fixture.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_cancelled_from_another_node() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = V1Fixture::open_with(TestBackend::Postgres, &[("TROUPE_WORKERS", "0")]).await;
    let second = fixture.second_node().await;
    fixture
        .upstream
        .always(ResponseScript::hang_before_headers());
    let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
    let run = client.create(json!({})).await;
    fixture.upstream.wait_for_requests(1).await;

    let cancelling = expect(200, client.cancel(id(&run)).await);

    assert_eq!(cancelling["status"], "cancelling");
    client.wait_for(id(&run), "cancelled").await;
    fixture.upstream.wait_for_disconnect(0).await;
    second.close().await;
    fixture.close().await;
}
