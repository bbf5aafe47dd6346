//! Tests failed replies: the run stores the reason, its round waits for a user, and no message is
//! stored.

use std::time::Duration;

use serde_json::json;
use troupe::rounds::round;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::services::RunSettings;
use troupe::runs::store::run::{RunReason, RunStatus};
use troupe::spaces::space;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fixtures;

/// Long enough for a slow machine to respond, short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

async fn room(
    backend: TestBackend,
    rules: impl FnOnce(&mut space::Model) + Send + 'static,
    settings: impl FnOnce(&mut RunSettings),
) -> EngineTest {
    let room = EngineTest::builder(backend).rules(rules).settings(settings);
    room.open().await
}

/// The run fails with `code`; then a retry, and in a second conversation a skip, continues the
/// round.
async fn fails_with(room: EngineTest, code: &str, repair: impl AsyncFnOnce(&EngineTest)) {
    room.user.post("Hello?").await;
    room.settle().await;

    let run = room.only_run().await;
    assert_eq!(run.status, RunStatus::Failed, "{code}");
    let error = run.error.expect("a failed run says why");
    assert_eq!(error.code, code);
    assert!(!error.message.is_empty());
    let told = room.events.wait_for_event("run_failed").await;
    assert_eq!(told["error"]["code"], code);
    assert_eq!(told["run"]["id"], json!(run.id));
    let round = room.runtime().await.round.expect("it waits for a person");
    assert_eq!(
        (round.row.state, round.row.cursor),
        (round::RoundState::Failed, 0)
    );
    assert!(room.answers().await.is_empty());

    repair(&room).await;
    let retried = room.engine.retry(room.conversation).await.unwrap();
    room.settle().await;

    assert_eq!(
        (retried.reason, retried.round_id),
        (RunReason::Retry, run.round_id)
    );
    assert_eq!(room.answers().await, ["Hello."], "{code}");
    assert_eq!(room.runtime().await.state(), ConversationState::Idle);
    room.close().await;
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
    let room = room(backend, |_| (), settings).await;
    room.upstream.always(script);
    fails_with(room, code, async |room| room.upstream.reply_with("Hello.")).await;
}

on_sqlite! {
    async fn an_error_of_the_provider(backend) {
        fails_by(backend, ResponseScript::status(500), "upstream_error").await;
    }

    async fn a_refusal_of_the_provider(backend) {
        fails_by(backend, ResponseScript::status(400), "upstream_error").await;
    }

    async fn too_many_requests(backend) {
        fails_by(backend, ResponseScript::rate_limited("0"), "upstream_rate_limited").await;
    }

    async fn an_error_inside_the_stream(backend) {
        let script = ResponseScript::stream().role().words("One two").error("It broke.");
        fails_by(backend, script, "upstream_error").await;
    }

    async fn a_stream_that_breaks_off(backend) {
        let script = ResponseScript::stream().role().words("One two").close();
        fails_by(backend, script, "upstream_disconnected").await;
    }

    async fn a_stream_that_ends_without_an_end(backend) {
        let script = ResponseScript::stream().role().words("One two");
        fails_by(backend, script, "upstream_disconnected").await;
    }

    async fn nothing_to_read(backend) {
        let script = ResponseScript::stream().role().text(" \n").finish("stop").done();
        fails_by(backend, script, "empty_response").await;
    }

    async fn a_withheld_answer(backend) {
        let script = ResponseScript::stream().role().finish("content_filter").done();
        fails_by(backend, script, "content_filter").await;
    }

    async fn a_model_that_never_begins(backend) {
        let script = ResponseScript::hang_before_first_chunk();
        fails_within(backend, script, "upstream_timeout", |it| it.call_limits.first_chunk = SHORT).await;
    }

    async fn a_model_that_falls_silent(backend) {
        let script = ResponseScript::stream().role().words("One two").hang();
        fails_within(backend, script, "upstream_timeout", |it| it.call_limits.idle = SHORT).await;
    }

    async fn a_model_that_never_ends(backend) {
        let script = ResponseScript::stream().forever(": ping\n\n", Duration::from_millis(20));
        fails_within(backend, script, "run_timeout", |it| it.call_limits.total = SHORT).await;
    }

    async fn a_prompt_that_does_not_fit(backend) {
        let tight = json!({ "preset": { "context_tokens": 40, "max_tokens": 30 } });
        let room = room(backend, move |it| it.settings = tight, |_| ()).await;

        fails_with(room, "context_overflow", async |room| {
            room.change_rules(|it| it.settings = json!({})).await;
        })
        .await;
    }

    async fn no_model_to_ask(backend) {
        let room = room(backend, |_| (), |_| ()).await;
        fixtures::disable_provider(&room.db, true).await;

        fails_with(room, "no_provider", async |room| {
            fixtures::disable_provider(&room.db, false).await;
        })
        .await;
    }

    async fn no_tokens_left(backend) {
        let broke = |it: &mut space::Model| (it.token_limit, it.tokens_used) = (10, 10);
        let room = room(backend, broke, |_| ()).await;

        fails_with(room, "token_limit_exceeded", async |room| {
            room.change_rules(|it| it.token_limit = 0).await;
        })
        .await;
    }

    async fn a_failed_turn_can_be_skipped(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.always(ResponseScript::status(400));
        room.user.post("Hello?").await;
        room.settle().await;

        room.engine.skip(room.conversation).await.unwrap();
        room.settle().await;

        let runtime = room.runtime().await;
        assert_eq!(runtime.state(), ConversationState::Idle);
        assert!(runtime.round.is_none());
        assert!(room.answers().await.is_empty());
        room.close().await;
    }

    async fn what_a_failed_reply_cost_is_spent(backend) {
        let room = EngineTest::builder(backend).open().await;
        let script = ResponseScript::stream().role().finish("stop").usage(7, 0).done();
        room.upstream.always(script);

        room.user.post("Hello?").await;
        room.settle().await;

        assert_eq!(room.tokens_used().await, 7);
        room.close().await;
    }

    async fn what_a_reply_cost_is_spent(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.reply_with("One two three.");

        room.user.post("Count.").await;
        room.settle().await;

        let usage = room.only_run().await.usage.expect("the model sent a bill");
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (7, 3));
        assert_eq!(room.tokens_used().await, 10);
        room.close().await;
    }

    async fn a_failed_forced_turn_fails_no_round_and_can_be_retried(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.always(ResponseScript::status(400));
        let ada = room.membership("Ada").await.id;
        let force = room.engine.force_talk(room.conversation, Some(ada), "Eve".to_owned());
        force.await.unwrap();
        room.settle().await;

        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.upstream.reply_with("Hello.");
        room.engine.retry(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(room.answers().await, ["Hello."]);
        room.close().await;
    }

    async fn a_failed_generate_in_manual_order_is_shown_until_something_newer(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.reply_order = space::ReplyOrder::Manual)
            .open()
            .await;
        room.user.post("Hello?").await;
        room.upstream.always(ResponseScript::status(400));
        let generate = || room.engine.force_talk(room.conversation, None, "Eve".to_owned());
        let failed = generate().await.unwrap();
        room.settle().await;

        let snapshot = room.engine.snapshot(room.conversation, None).await.unwrap();
        let shown = snapshot.unwrap().failed_run.expect("it is in the snapshot");
        let document = room.engine.conversation_view(room.conversation).await.unwrap();
        assert_eq!((shown.id, shown.status), (failed.id, RunStatus::Failed));
        assert_eq!(shown.error.unwrap().code, "upstream_error");
        assert_eq!(document.failed_run.expect("and in the document").id, failed.id);
        assert_eq!(document.state, ConversationState::Idle, "no round failed");

        let again = room.engine.retry(room.conversation).await.unwrap();
        room.settle().await;
        let document = room.engine.conversation_view(room.conversation).await.unwrap();
        assert_eq!(document.failed_run.expect("it failed again").id, again.id);
        assert!(again.run_seq > failed.run_seq);

        room.user.post("Never mind.").await;
        let document = room.engine.conversation_view(room.conversation).await.unwrap();
        assert!(document.failed_run.is_none(), "something newer was said");
        room.close().await;
    }
}

on_both! {
    async fn two_retries_at_once_are_one_run(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.always(ResponseScript::status(400));
        room.user.post("Hello?").await;
        room.settle().await;
        let gate = room.upstream.gate();
        room.upstream.reply_with("Hello.");

        let retry = || room.engine.retry(room.conversation);
        let (one, two) = tokio::join!(retry(), retry());
        gate.open();
        room.settle().await;

        assert_eq!(one.unwrap().id, two.unwrap().id);
        assert_eq!(room.answers().await, ["Hello."]);
        room.close().await;
    }
}
