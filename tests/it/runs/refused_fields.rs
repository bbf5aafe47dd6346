//! Tests of runs whose endpoint refuses a field or the order of roles: the reply comes, and the provider
//! remembers what was refused until its settings are saved.

use llm::provider_options::{DETECTED, REFUSED_FIELDS};
use serde_json::{Value, json};
use troupe::providers::provider;
use troupe::providers::provider::ProviderChange;

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

impl EngineTest {
    async fn provider_settings(&self) -> (provider::Model, Value) {
        let found = provider::find_default(self.db.reader()).await;
        let row = found.unwrap().expect("there is a provider");
        let settings = row.settings.clone();
        (row, settings)
    }
}

on_both! {
    async fn a_refused_field_is_remembered_for_the_next_runs_until_the_settings_are_saved(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.answer_with(|body| match body.get("stream_options") {
            Some(_) => ResponseScript::json(400, &json!({"error": {"message": "Extra field: stream_options"}})),
            None => ResponseScript::say("Hello."),
        });

        app.user.post("Hi.").await;
        app.settle().await;
        assert_eq!(app.answers().await, ["Hello."]);
        assert_eq!(app.upstream.n_requests(), 2);
        app.user.post("And now?").await;
        app.settle().await;

        assert_eq!(app.upstream.n_requests(), 3, "the field was sent again");
        let (row, settings) = app.provider_settings().await;
        assert!(settings[DETECTED][REFUSED_FIELDS]["stream_options"].is_string(), "{settings}");
        let saved = ProviderChange { settings: Some(json!({"temperature": 0.5})), ..ProviderChange::default() };
        provider::update(&app.db, &app.engine.context().models.cipher, row.id, saved).await.unwrap();
        assert_eq!(app.provider_settings().await.1, json!({"temperature": 0.5}));
        app.close().await;
    }
}
