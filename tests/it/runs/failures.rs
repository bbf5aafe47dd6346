//! Tests failed replies: the run stores the reason, its round waits for a user, and no message is
//! stored.

use std::time::Duration;

use serde_json::json;
use troupe::conversations::audience::viewer::Viewer;
use troupe::rounds::round;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::ForcedTurn;
use troupe::runs::services::RunSettings;
use troupe::runs::store::run::{RunReason, RunStatus};
use troupe::runs::store::run_view::{RunDocument, RunView};
use troupe::spaces::space;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fixtures;

/// Long enough for a slow machine to respond, short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

async fn open_app(
    backend: TestBackend,
    rules: impl FnOnce(&mut space::Model) + Send + 'static,
    settings: impl FnOnce(&mut RunSettings),
) -> EngineTest {
    let app = EngineTest::builder(backend).rules(rules).settings(settings);
    app.open().await
}

/// Asserts that the run fails with `code`, and that a retry continues the round.
async fn fails_with(app: EngineTest, code: &str, repair: impl AsyncFnOnce(&EngineTest)) {
    app.user.post("Hello?").await;
    app.settle().await;

    let run = app.only_run().await;
    assert_eq!(run.status, RunStatus::Failed, "{code}");
    let error = run.error.expect("the failed run has no error");
    assert_eq!(error.code, code);
    assert!(!error.message.is_empty());
    let event = app.events.wait_for_event("run_failed").await;
    assert_eq!(event["error"]["code"], code);
    assert_eq!(event["run"]["id"], json!(run.id));
    let round = app.runtime().await.round.expect("no round is waiting");
    assert_eq!((round.state, round.cursor), (round::RoundState::Failed, 0));
    assert!(app.answers().await.is_empty());

    repair(&app).await;
    let retried = app.engine.retry(app.scope(), true).await.unwrap();
    app.settle().await;

    assert_eq!(
        (retried.reason, retried.round_id),
        (RunReason::Retry, run.round_id)
    );
    assert_eq!(app.answers().await, ["Hello."], "{code}");
    assert_eq!(app.runtime().await.state(), ConversationState::Idle);
    app.close().await;
}

/// Every request gets `script` until the failure is repaired.
async fn fails_by(backend: TestBackend, script: ResponseScript, code: &str) {
    fails_within(backend, script, code, |_| ()).await;
}

async fn fails_within(
    backend: TestBackend,
    script: ResponseScript,
    code: &str,
    settings: impl FnOnce(&mut RunSettings),
) {
    let app = open_app(backend, |_| (), settings).await;
    app.upstream.always(script);
    fails_with(app, code, async |app| app.upstream.reply_with("Hello.")).await;
}

on_sqlite! {
    async fn a_status_500_of_the_provider_fails_the_run(backend) {
        fails_by(backend, ResponseScript::status(500), "upstream_error").await;
    }

    async fn a_status_400_of_the_provider_fails_the_run(backend) {
        fails_by(backend, ResponseScript::status(400), "upstream_error").await;
    }

    async fn a_rate_limited_model_call_fails_the_run(backend) {
        fails_by(backend, ResponseScript::rate_limited("0"), "upstream_rate_limited").await;
    }

    async fn an_error_event_in_the_stream_fails_the_run(backend) {
        let script = ResponseScript::stream().role().words("One two").error("It broke.");
        fails_by(backend, script, "upstream_error").await;
    }

    async fn a_connection_closed_during_the_stream_fails_the_run(backend) {
        let script = ResponseScript::stream().role().words("One two").close();
        fails_by(backend, script, "upstream_disconnected").await;
    }

    async fn a_stream_without_finish_reason_and_done_fails_the_run(backend) {
        let script = ResponseScript::stream().role().words("One two");
        fails_by(backend, script, "upstream_disconnected").await;
    }

    async fn a_reply_of_only_whitespace_fails_the_run(backend) {
        let script = ResponseScript::stream().role().text(" \n").finish("stop").done();
        fails_by(backend, script, "empty_response").await;
    }

    async fn a_filtered_reply_fails_the_run(backend) {
        let script = ResponseScript::stream().role().finish("content_filter").done();
        fails_by(backend, script, "content_filter").await;
    }

    async fn a_model_that_sends_no_first_chunk_fails_the_run(backend) {
        let script = ResponseScript::hang_before_first_chunk();
        fails_within(backend, script, "upstream_timeout", |it| it.call_limits.first_chunk = SHORT).await;
    }

    async fn a_stream_that_becomes_idle_fails_the_run(backend) {
        let script = ResponseScript::stream().role().words("One two").hang();
        fails_within(backend, script, "upstream_timeout", |it| it.call_limits.idle = SHORT).await;
    }

    async fn a_stream_beyond_the_total_time_limit_fails_the_run(backend) {
        let script = ResponseScript::stream().forever(": ping\n\n", Duration::from_millis(20));
        fails_within(backend, script, "run_timeout", |it| it.call_limits.total = SHORT).await;
    }

    async fn a_prompt_over_the_context_size_fails_the_run(backend) {
        let tight = json!({ "preset": { "context_tokens": 40, "max_tokens": 30 } });
        let app = open_app(backend, move |it| it.settings = tight, |_| ()).await;

        fails_with(app, "context_overflow", async |app| {
            app.change_rules(|it| it.settings = json!({})).await;
        })
        .await;
    }

    async fn a_missing_provider_fails_the_run(backend) {
        let app = open_app(backend, |_| (), |_| ()).await;
        fixtures::disable_provider(&app.db, true).await;

        fails_with(app, "no_provider", async |app| {
            fixtures::disable_provider(&app.db, false).await;
        })
        .await;
    }

    async fn a_space_at_its_token_limit_fails_the_run(backend) {
        let broke = |it: &mut space::Model| (it.token_limit, it.unattributed_tokens) = (10, 10);
        let app = open_app(backend, broke, |_| ()).await;

        fails_with(app, "token_limit_exceeded", async |app| {
            app.change_rules(|it| it.token_limit = 0).await;
        })
        .await;
    }

    async fn the_tokens_of_a_failed_reply_are_charged(backend) {
        let app = EngineTest::builder(backend).open().await;
        let script = ResponseScript::stream().role().finish("stop").usage(7, 0).done();
        app.upstream.always(script);

        app.user.post("Hello?").await;
        app.settle().await;

        assert_eq!(app.tokens_used().await, 7);
        app.close().await;
    }

    async fn the_tokens_of_a_reply_are_charged(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.reply_with("One two three.");

        app.user.post("Count.").await;
        app.settle().await;

        let usage = app.only_run().await.usage.expect("no usage was stored");
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (7, 3));
        assert_eq!(app.tokens_used().await, 10);
        app.close().await;
    }

    async fn a_failed_forced_turn_fails_no_round_and_can_be_retried(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.always(ResponseScript::status(400));
        let ada = app.membership("Ada").await.id;
        let force = app.engine.force_talk(app.conversation, ForcedTurn::new(Some(ada), "Eve", Viewer::Server));
        force.await.unwrap();
        app.settle().await;

        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.upstream.reply_with("Hello.");
        app.engine.retry(app.scope(), true).await.unwrap();
        app.settle().await;

        assert_eq!(app.answers().await, ["Hello."]);
        app.close().await;
    }

    async fn a_failed_generate_in_manual_order_is_shown_until_a_newer_message(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.reply_order = space::ReplyOrder::Manual)
            .open()
            .await;
        app.user.post("Hello?").await;
        app.upstream.always(ResponseScript::status(400));
        let generate = || app.engine.force_talk(app.conversation, ForcedTurn::new(None, "Eve", Viewer::Server));
        let failed = generate().await.unwrap();
        app.settle().await;

        let snapshot = app.engine.snapshot(app.conversation, Viewer::Server, None).await.unwrap();
        let shown = whole(snapshot.unwrap().failed_run);
        let document = app.engine.conversation_view(app.conversation, Viewer::Server).await.unwrap();
        assert_eq!((shown.id, shown.status), (failed.id, RunStatus::Failed));
        assert_eq!(shown.error.unwrap().code, "upstream_error");
        assert_eq!(whole(document.failed_run).id, failed.id);
        assert_eq!(document.state, ConversationState::Idle, "no round failed");

        let again = app.engine.retry(app.scope(), true).await.unwrap();
        app.settle().await;
        let document = app.engine.conversation_view(app.conversation, Viewer::Server).await.unwrap();
        assert_eq!(whole(document.failed_run).id, again.id);
        assert!(again.run_seq > failed.run_seq);

        app.user.post("Never mind.").await;
        let document = app.engine.conversation_view(app.conversation, Viewer::Server).await.unwrap();
        assert!(document.failed_run.is_none(), "the failure is shown after a newer message");
        app.close().await;
    }
}

/// The document of a run that everyone sees.
fn whole(run: Option<RunDocument>) -> RunView {
    match run {
        Some(RunDocument::Whole(view)) => *view,
        other => panic!("no run is shown: {other:?}"),
    }
}

on_both! {
    async fn two_simultaneous_retries_create_one_run(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.always(ResponseScript::status(400));
        app.user.post("Hello?").await;
        app.settle().await;
        let gate = app.upstream.gate();
        app.upstream.reply_with("Hello.");

        let retry = || app.engine.retry(app.scope(), true);
        let (one, two) = tokio::join!(retry(), retry());
        gate.open();
        app.settle().await;

        assert_eq!(one.unwrap().id, two.unwrap().id);
        assert_eq!(app.answers().await, ["Hello."]);
        app.close().await;
    }
}
