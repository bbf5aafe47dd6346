//! Tests of a provider whose model continues the text at the end of a request.

use serde_json::{Value, json};
use troupe::conversations::audience::viewer::Viewer;
use troupe::providers::provider;
use troupe::providers::provider::ProviderChange;
use troupe::runs::scheduling::command::VersionRequest;
use troupe::spaces::space;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// Opens a space with this preset, whose model continues texts.
async fn open(backend: TestBackend, preset: Value) -> EngineTest {
    let with_preset = move |it: &mut space::Model| it.settings = json!({ "preset": preset });
    let app = EngineTest::builder(backend).rules(with_preset).open().await;
    let row = provider::find_default(app.db.reader())
        .await
        .unwrap()
        .expect("there is a provider");
    let change = ProviderChange {
        settings: Some(json!({"prefill": "on"})),
        ..ProviderChange::default()
    };
    provider::update(&app.db, &app.engine.context().models.cipher, row.id, change)
        .await
        .unwrap();
    app
}

on_sqlite! {
    async fn the_text_to_continue_is_the_last_message_of_the_request(backend) {
        let app = open(backend, json!({})).await;
        app.user.post("Hi.").await;
        app.settle().await;
        app.upstream.next(ResponseScript::say(" And so on."));

        let request = VersionRequest { message: None, by: "Eve".to_owned(), instruction: None, viewer: Viewer::Server };
        app.engine.continue_message(app.conversation, request).await.unwrap();
        app.settle().await;

        let sent = app.upstream.body(1)["messages"].clone();
        let last = sent.as_array().and_then(|it| it.last());
        assert_eq!(last, Some(&json!({"role": "assistant", "content": "Hello."})), "{sent}");
        assert_eq!(app.answers().await, ["Hello. And so on."]);
        app.close().await;
    }

    async fn a_reply_begins_with_the_prefill_only_if_the_preset_shows_it(backend) {
        for (shows, text) in [(false, "indeed."), (true, "Well, indeed.")] {
            let app = open(backend, json!({"assistant_prefill": "Well,", "show_prefill": shows})).await;
            app.upstream.next(ResponseScript::say(" indeed."));
            app.user.post("Hi.").await;
            app.settle().await;

            let sent = app.upstream.body(0)["messages"].clone();
            let last = sent.as_array().and_then(|it| it.last());
            assert_eq!(last, Some(&json!({"role": "assistant", "content": "Well,"})), "{sent}");
            assert_eq!(app.answers().await, [text]);
            app.close().await;
        }
    }
}
