//! An HTTP client of one user: signs in, keeps the cookie, and calls endpoints.

use std::sync::OnceLock;

use reqwest::header::HeaderMap;
use reqwest::{Certificate, Client, ClientBuilder, Method};
use serde_json::{Value, json};

/// `PASSWORD_HASH_KIB` of a test server: with the default, hashing the passwords of test users would
/// use a third of the processor time of the tests.
pub const CHEAP_HASH_KIB: &str = "8";

/// The password of every test user.
const PASSWORD: &str = "correct horse battery";

/// Checks a response: method, path, status, body.
type ResponseInspector = fn(&Method, &str, u16, &Value);

/// Checks every response that any client receives.
static INSPECTOR: OnceLock<ResponseInspector> = OnceLock::new();

/// Sets the check of every response; later calls have no effect.
pub fn inspect_every_response(inspector: ResponseInspector) {
    // Only the first call sets it.
    let _ = INSPECTOR.set(inspector);
}

/// A client of one user. Sends no `Origin`, like a program.
#[derive(Clone)]
pub struct HttpClient {
    base: String,
    client: Client,
    cookie: Option<String>,
}

/// Returns a client that uses neither the system's certificates nor a proxy.
pub fn http_client() -> Client {
    let client = http_client_builder().build();
    client.expect("the client can be built")
}

/// Returns the builder of [`http_client`].
pub fn http_client_builder() -> ClientBuilder {
    // Only the first call installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
    let roots = roots
        .iter()
        .map(|root| Certificate::from_der(root).expect("the bundled certificates are valid"));
    Client::builder().tls_certs_only(roots).no_proxy()
}

impl HttpClient {
    /// Returns a client that is not signed in.
    pub fn new(base: &str) -> HttpClient {
        HttpClient {
            base: base.to_owned(),
            client: http_client(),
            cookie: None,
        }
    }

    /// Creates the first account of a new server and signs in.
    pub async fn set_up(base: &str, username: &str) -> HttpClient {
        let mut person = HttpClient::new(base);
        let body = json!({"username": username, "password": PASSWORD, "display_name": username});
        person.enter("/api/setup", &body, 201).await;
        person
    }

    /// Registers another account on a server with open registration.
    pub async fn register(base: &str, username: &str) -> HttpClient {
        let mut person = HttpClient::new(base);
        let body = json!({"username": username, "password": PASSWORD, "display_name": username});
        person.enter("/api/users", &body, 201).await;
        person
    }

    /// Signs in to an existing account, as a second browser.
    pub async fn sign_in(base: &str, username: &str) -> HttpClient {
        let mut person = HttpClient::new(base);
        person
            .enter(
                "/api/session",
                &json!({"username": username, "password": PASSWORD}),
                200,
            )
            .await;
        person
    }

    /// Joins as a guest by an invite link; returns the client and `{user, membership}`.
    pub async fn join_by_link(base: &str, token: &str, display_name: &str) -> (HttpClient, Value) {
        let mut person = HttpClient::new(base);
        let body = json!({"display_name": display_name});
        let answer = person
            .enter(&format!("/api/join/{token}"), &body, 201)
            .await;
        (person, answer)
    }

    async fn enter(&mut self, path: &str, body: &Value, expected: u16) -> Value {
        let answer = self
            .client
            .post(format!("{}{path}", self.base))
            .json(body)
            .send()
            .await
            .expect("the server answers");
        let status = answer.status().as_u16();
        self.cookie = session_in(answer.headers());
        let text = answer.text().await.unwrap_or_default();
        assert_eq!(status, expected, "POST {path}: {text}");
        assert!(self.cookie.is_some(), "POST {path} set no session cookie");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"))
    }

    /// Returns the same client for another node.
    pub fn with_base(&self, base: &str) -> HttpClient {
        HttpClient {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// Returns the base URL of the server.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns `troupe_session=…`, as a browser would send it.
    pub fn cookie(&self) -> &str {
        self.cookie.as_deref().expect("signed in")
    }

    /// Sends a request; a broken connection is an error, not a panic.
    pub async fn attempt(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), reqwest::Error> {
        let mut request = self
            .client
            .request(method.clone(), format!("{}{path}", self.base));
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let text = answer.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        if let Some(inspector) = INSPECTOR.get() {
            inspector(&method, path, status, &body);
        }
        Ok((status, body))
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let what = format!("{method} {path}");
        self.attempt(method, path, body)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(Method::POST, path, Some(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(Method::PATCH, path, Some(&body)).await
    }

    /// Sends a PATCH request; returns the body and the new session cookie, if there is one.
    pub async fn patch_with_cookie(&self, path: &str, body: &Value) -> (Value, Option<String>) {
        let request = self.client.patch(format!("{}{path}", self.base));
        let request = request.header("cookie", self.cookie()).json(body);
        let answer = request.send().await.expect("the server answers");
        assert_eq!(answer.status(), 200, "PATCH {path}");
        let cookie = session_in(answer.headers());
        (answer.json().await.expect("an answer is JSON"), cookie)
    }

    /// Returns the same client with another cookie.
    pub fn with_cookie(&self, cookie: String) -> HttpClient {
        HttpClient {
            cookie: Some(cookie),
            ..self.clone()
        }
    }

    pub async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(Method::PUT, path, Some(&body)).await
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        self.ask(Method::DELETE, path, None).await
    }

    /// Creates a character with a name and an optional greeting.
    pub async fn create_character(&self, name: &str, greeting: Option<&str>) -> Value {
        let mut card = json!({"name": name});
        if let Some(greeting) = greeting {
            card["first_mes"] = json!(greeting);
        }
        expect(201, self.post("/api/characters", card).await)
    }

    /// Creates a space with these settings; returns it with its root conversation.
    pub async fn create_space(&self, name: &str, settings: Value) -> Value {
        let mut body = json!({"name": name});
        for (key, value) in settings.as_object().into_iter().flatten() {
            body[key.as_str()] = value.clone();
        }
        expect(201, self.post("/api/spaces", body).await)
    }

    /// Adds a character to a space; returns the membership.
    pub async fn add_character(&self, space: &Value, character: &Value) -> Value {
        let path = format!("/api/spaces/{}/memberships", space["id"]);
        expect(
            201,
            self.post(&path, json!({"character_id": character["id"]}))
                .await,
        )
    }

    /// Adds a user to a space, or invites the user, who then accepts; returns the membership.
    pub async fn add_member(&self, space: i64, person: &HttpClient, role: &str) -> Value {
        let me = expect(200, person.get("/api/session").await);
        let body = json!({"user_id": me["user"]["id"], "role": role});
        let path = format!("/api/spaces/{space}/memberships");
        match self.post(&path, body).await {
            (201, membership) => membership,
            answer => {
                let invitation = &expect(202, answer)["invitation"];
                let accept = format!("/api/invitations/{}/accept", invitation["id"]);
                expect(200, person.post(&accept, json!({})).await)["membership"].clone()
            }
        }
    }

    /// Creates an invite to a space; returns it with its token.
    pub async fn invite(&self, space: i64, body: Value) -> Value {
        let path = format!("/api/spaces/{space}/invites");
        expect(201, self.post(&path, body).await)
    }

    /// Joins a space by an invite with this session.
    pub async fn join(&self, token: &str) -> (u16, Value) {
        self.post(&format!("/api/join/{token}"), json!({})).await
    }

    /// Posts a message; returns `{message, run}`.
    pub async fn post_message(
        &self,
        conversation: i64,
        content: &str,
        client_id: Option<&str>,
    ) -> (u16, Value) {
        let mut body = json!({"content": content});
        if let Some(client_id) = client_id {
            body["client_id"] = json!(client_id);
        }
        self.post(&format!("/api/conversations/{conversation}/messages"), body)
            .await
    }

    pub async fn stop(&self, conversation: i64) -> (u16, Value) {
        self.command(conversation, "stop").await
    }

    pub async fn retry(&self, conversation: i64) -> (u16, Value) {
        self.command(conversation, "retry").await
    }

    pub async fn skip(&self, conversation: i64) -> (u16, Value) {
        self.command(conversation, "skip").await
    }

    pub async fn pause(&self, conversation: i64) -> (u16, Value) {
        self.command(conversation, "pause").await
    }

    pub async fn resume(&self, conversation: i64) -> (u16, Value) {
        self.command(conversation, "resume").await
    }

    /// Triggers a reply of a speaker, or of the next one.
    pub async fn generate(&self, conversation: i64, speaker: Option<i64>) -> (u16, Value) {
        let body = speaker.map_or_else(|| json!({}), |speaker| json!({"speaker_id": speaker}));
        self.post(&format!("/api/conversations/{conversation}/generate"), body)
            .await
    }

    async fn command(&self, conversation: i64, verb: &str) -> (u16, Value) {
        self.post(
            &format!("/api/conversations/{conversation}/{verb}"),
            json!({}),
        )
        .await
    }

    /// Returns the conversation with its state.
    pub async fn conversation(&self, conversation: i64) -> Value {
        expect(
            200,
            self.get(&format!("/api/conversations/{conversation}"))
                .await,
        )
    }

    /// Returns the runs of a conversation, at most one page.
    pub async fn runs(&self, conversation: i64) -> Vec<Value> {
        data(expect(
            200,
            self.get(&format!("/api/conversations/{conversation}/runs?limit=200"))
                .await,
        ))
    }

    /// Returns the newest messages, ascending, at most one page.
    pub async fn messages(&self, conversation: i64) -> Vec<Value> {
        data(expect(
            200,
            self.get(&format!(
                "/api/conversations/{conversation}/messages?limit=200&html=true"
            ))
            .await,
        ))
    }
}

/// Returns `troupe_session=…` if the response sets it.
fn session_in(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all("set-cookie").iter();
    let mut pairs = cookies.filter_map(|it| it.to_str().ok()?.split(';').next());
    let session = pairs.find(|pair| pair.starts_with("troupe_session="));
    session.map(str::to_owned)
}

/// Returns the body of a response and asserts its status.
pub fn expect(status: u16, answer: (u16, Value)) -> Value {
    assert_eq!(answer.0, status, "{}", answer.1);
    answer.1
}

/// Returns the numeric id of a document.
pub fn id(document: &Value) -> i64 {
    document["id"]
        .as_i64()
        .unwrap_or_else(|| panic!("no numeric id in {document}"))
}

/// Returns the token of a new invite.
pub fn token_of(invite: &Value) -> &str {
    invite["token"]
        .as_str()
        .unwrap_or_else(|| panic!("no token in {invite}"))
}

/// Returns the id of the root conversation of a space.
pub fn root_of(space: &Value) -> i64 {
    space["root_conversation_id"]
        .as_i64()
        .unwrap_or_else(|| panic!("no root conversation in {space}"))
}

fn data(page: Value) -> Vec<Value> {
    page["data"]
        .as_array()
        .cloned()
        .unwrap_or_else(|| panic!("no list in {page}"))
}
