//! A response with its headers, for tests of what all endpoints have in common.

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// A response, read completely.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    /// Sends a prepared request.
    pub async fn to(request: RequestBuilder) -> Answer {
        let answer = request.send().await.expect("the server answers");
        Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            text: answer.text().await.expect("the body arrives"),
        }
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Returns the status and code of an error and checks its format.
    pub fn refusal(&self) -> (u16, String) {
        let body = self.json();
        (self.status, code(&body))
    }

    /// Returns a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |it| it.to_str().expect("our headers are text"))
    }
}

/// Returns the code of an error document and checks its format.
pub fn code(body: &Value) -> String {
    let error = &body["error"];
    assert!(error["type"].is_string(), "no type in {body}");
    assert!(error["message"].is_string(), "no message in {body}");
    assert!(error.get("param").is_some(), "no param in {body}");
    error["code"]
        .as_str()
        .unwrap_or_else(|| panic!("no code in {body}"))
        .to_owned()
}

/// Returns the status and code of an error response of an [`HttpClient`].
pub fn refusal(answer: &(u16, Value)) -> (u16, String) {
    (answer.0, code(&answer.1))
}
