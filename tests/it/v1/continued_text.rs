//! Tests that an assistant message at the end of the input is continued and not answered.

use serde_json::{Value, json};

use super::fixture::V1Fixture;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

/// The instruction for a model that cannot continue a text of its own.
const NUDGE: &str = "[Go on with the last message from where it ends. Repeat nothing of it.]";

fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn story() -> Value {
    json!([
        message("user", "Tell me a story."),
        message("assistant", "Once upon")
    ])
}

/// The role and the text of the last two messages of the newest prompt.
fn end_of_prompt(fixture: &V1Fixture) -> [(String, String); 2] {
    let body = fixture.upstream.body(fixture.upstream.n_requests() - 1);
    let all = body["messages"].as_array().expect("a list");
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    [all.len() - 2, all.len() - 1].map(|at| (text(&all[at]["role"]), text(&all[at]["content"])))
}

on_sqlite! {
    async fn a_text_of_the_model_at_the_end_of_the_input_is_continued(backend) {
        let fixture = V1Fixture::open(backend).await;
        let expected = [
            ("assistant".to_owned(), "Once upon".to_owned()),
            ("system".to_owned(), NUDGE.to_owned()),
        ];

        fixture.upstream.next(ResponseScript::say(" a time."));
        let response = fixture.program.respond(json!({ "input": story() })).await;
        assert_eq!(end_of_prompt(&fixture), expected);
        let texts = response["output"][0]["content"].to_string();
        assert!(texts.contains("a time.") && !texts.contains("Once"), "{texts}");

        let model = response["model"].clone();
        let chat = json!({ "model": model, "messages": story() });
        let (status, completion) = fixture.program.post("/chat/completions", chat).await;
        assert_eq!(status, 200, "{completion}");
        assert_eq!(end_of_prompt(&fixture), expected);

        let next = json!({ "input": "And then?", "previous_response_id": response["id"] });
        fixture.program.respond(next).await;
        assert_eq!(end_of_prompt(&fixture)[1], ("user".to_owned(), "And then?".to_owned()));
        fixture.close().await;
    }
}
