//! Tests of what runs detect about their endpoint: which fields it rejects, how long a prompt may be, and how it
//! counts tokens.

use base::clock::Timestamp;
use llm::provider_options::{DETECTED, REFUSED_FIELDS};
use llm::tokens;
use serde_json::{Value, json};
use troupe::providers::detected::detected_settings::TOKEN_CORRECTIONS;
use troupe::providers::detected::{model_lists, token_calibration};
use troupe::providers::provider;
use troupe::providers::provider::ProviderChange;
use troupe::spaces::space;

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

    async fn a_prompt_that_is_refused_as_too_long_is_built_once_more_and_shorter(backend) {
        let window = |it: &mut space::Model| it.settings = json!({"preset": {"context_tokens": 1_200, "max_tokens": 100}});
        let app = EngineTest::builder(backend).rules(window).open().await;
        let long = "The rain falls on the harbor. ".repeat(20);
        for _ in 0..6 {
            app.user.post(&long).await;
            app.settle().await;
        }
        let before = app.upstream.n_requests();
        let too_long = json!({"error": {"message": "This model's maximum context length is 900 tokens."}});
        app.upstream.next(ResponseScript::json(400, &too_long));

        app.user.post("And now?").await;
        app.settle().await;

        assert_eq!(app.upstream.n_requests(), before + 2);
        let sent = |n: usize| app.upstream.body(n)["messages"].to_string().len();
        assert!(sent(before + 1) < sent(before) * 9 / 10, "{} and {}", sent(before + 1), sent(before));
        assert_eq!(app.answers().await.len(), 7);
        app.upstream.next(ResponseScript::json(400, &too_long));
        app.upstream.next(ResponseScript::json(400, &too_long));
        app.user.post("And now?").await;
        app.settle().await;
        assert_eq!(app.upstream.n_requests(), before + 4, "it is not built a third time");
        app.close().await;
    }

    async fn the_tokens_that_a_provider_reports_correct_the_next_estimates(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.answer_with(|body| {
            let sent = body["messages"].as_array().into_iter().flatten();
            let texts = sent.filter_map(|it| it["content"].as_str());
            let reported = texts.map(tokens::count).sum::<i64>() * 2;
            ResponseScript::stream().text("Hello.").finish("stop").usage(reported, 2).done()
        });

        for n in 0..5 {
            let (row, settings) = app.provider_settings().await;
            assert!(settings[DETECTED][TOKEN_CORRECTIONS].is_null(), "after {n} replies: {settings}");
            assert_eq!(token_calibration::correction(&row), Some(1.0));
            app.user.post("The rain falls on the harbor, and nobody knows why.").await;
            app.settle().await;
        }

        let (row, settings) = app.provider_settings().await;
        let correction = token_calibration::correction(&row).expect("no factor is set");
        assert!((1.2..2.0).contains(&correction), "{settings}");
        app.close().await;
    }

    async fn a_list_of_models_is_read_again_after_a_day(backend) {
        let app = EngineTest::builder(backend).open().await;
        let (row, _) = app.provider_settings().await;
        let list = |window: i64| json!({"data": [{"id": row.model, "context_length": window}]});
        let models = app.engine.context().models.clone();
        let day = 24 * 60 * 60 * 1_000;

        app.upstream.document("/v1/models", list(8_000));
        model_lists::refresh_stale_lists(&app.db, &models, Timestamp(day)).await.unwrap();
        assert_eq!(app.provider_settings().await.0.known_context_tokens(), None, "it was never read");
        model_lists::load(&app.db, &models, &row, Timestamp(0)).await.unwrap();
        app.upstream.document("/v1/models", list(16_000));
        model_lists::refresh_stale_lists(&app.db, &models, Timestamp(day - 1)).await.unwrap();
        assert_eq!(app.provider_settings().await.0.known_context_tokens(), Some(8_000));
        model_lists::refresh_stale_lists(&app.db, &models, Timestamp(day)).await.unwrap();

        assert_eq!(app.provider_settings().await.0.known_context_tokens(), Some(16_000));
        app.close().await;
    }
}
