//! Tests of Continue with a provider whose model continues the text at the end of a request.

use serde_json::json;
use troupe::conversations::audience::viewer::Viewer;
use troupe::providers::provider;
use troupe::providers::provider::ProviderChange;
use troupe::runs::scheduling::command::VersionRequest;

use crate::support::backends::on_sqlite;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

on_sqlite! {
    async fn the_text_to_continue_is_the_last_message_of_the_request(backend) {
        let app = EngineTest::builder(backend).open().await;
        let row = provider::find_default(app.db.reader()).await.unwrap().expect("there is a provider");
        let change = ProviderChange { settings: Some(json!({"prefill": "on"})), ..ProviderChange::default() };
        provider::update(&app.db, &app.engine.context().models.cipher, row.id, change).await.unwrap();
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
}
