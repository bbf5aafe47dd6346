//! An HTTP client of one user: signs in, keeps the cookie, and calls endpoints.

use std::sync::OnceLock;

use reqwest::header::HeaderMap;
use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};

/// What every person of a test signs in with.
const PASSWORD: &str = "correct horse battery";

/// Looks at an answer: method, path, status, body.
type ResponseInspector = fn(&Method, &str, u16, &Value);

/// Who looks at every answer that anybody gets.
static INSPECTOR: OnceLock<ResponseInspector> = OnceLock::new();

/// Has every answer looked at from now on; the first one who asks for it does.
pub fn inspect_every_response(witness: ResponseInspector) {
    // A second one is refused; the first one stands.
    let _ = INSPECTOR.set(witness);
}

/// Someone with an account. Sends no `Origin`, as a program would.
#[derive(Clone)]
pub struct HttpClient {
    base: String,
    client: Client,
    cookie: Option<String>,
}

/// A client that needs no certificates of the system and no proxy.
pub fn http_client() -> Client {
    // A second install is refused; the first one stands.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
    let roots = roots
        .iter()
        .map(|root| Certificate::from_der(root).expect("the bundled roots are well formed"));
    Client::builder()
        .tls_certs_only(roots)
        .no_proxy()
        .build()
        .expect("a client with its own roots can be built")
}

impl HttpClient {
    /// A client that is not signed in.
    pub fn new(base: &str) -> HttpClient {
        HttpClient {
            base: base.to_owned(),
            client: http_client(),
            cookie: None,
        }
    }

    /// The first account of a fresh server, signed in.
    pub async fn set_up(base: &str, username: &str) -> HttpClient {
        let mut person = HttpClient::new(base);
        let body = json!({"username": username, "password": PASSWORD, "display_name": username});
        person.enter("/api/setup", &body, 201).await;
        person
    }

    /// One more account, on a server on which anybody may register.
    pub async fn register(base: &str, username: &str) -> HttpClient {
        let mut person = HttpClient::new(base);
        let body = json!({"username": username, "password": PASSWORD, "display_name": username});
        person.enter("/api/users", &body, 201).await;
        person
    }

    /// The same account in a second browser.
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

    /// A guest who came by a link, and the answer `{user, membership}`.
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
        assert!(self.cookie.is_some(), "POST {path} gave no session");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The same browser at another node.
    pub fn with_base(&self, base: &str) -> HttpClient {
        HttpClient {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// Where the server is.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// `troupe_session=…`, as a browser would send it.
    pub fn cookie(&self) -> &str {
        self.cookie.as_deref().expect("signed in")
    }

    /// Asks; a broken connection is an answer too.
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
        if let Some(witness) = INSPECTOR.get() {
            witness(&method, path, status, &body);
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

    /// The same, with the cookie that comes with a good answer, if one does.
    pub async fn patch_with_cookie(&self, path: &str, body: &Value) -> (Value, Option<String>) {
        let request = self.client.patch(format!("{}{path}", self.base));
        let request = request.header("cookie", self.cookie()).json(body);
        let answer = request.send().await.expect("the server answers");
        assert_eq!(answer.status(), 200, "PATCH {path}");
        let cookie = session_in(answer.headers());
        (answer.json().await.expect("an answer is JSON"), cookie)
    }

    /// The same browser with another cookie.
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

    /// A character with a name; with a greeting, when it has one.
    pub async fn create_character(&self, name: &str, greeting: Option<&str>) -> Value {
        let mut card = json!({"name": name});
        if let Some(greeting) = greeting {
            card["first_mes"] = json!(greeting);
        }
        expect(201, self.post("/api/characters", card).await)
    }

    /// A space with some of its columns set; answers the space with its root conversation.
    pub async fn create_space(&self, name: &str, settings: Value) -> Value {
        let mut body = json!({"name": name});
        for (key, value) in settings.as_object().into_iter().flatten() {
            body[key.as_str()] = value.clone();
        }
        expect(201, self.post("/api/spaces", body).await)
    }

    /// Gives a character a seat in a space; answers the membership.
    pub async fn add_character(&self, space: &Value, character: &Value) -> Value {
        let path = format!("/api/spaces/{}/memberships", space["id"]);
        expect(
            201,
            self.post(&path, json!({"character_id": character["id"]}))
                .await,
        )
    }

    /// Adds a person to a space, or invites one who then accepts; returns the membership.
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

    /// Makes an invite to a space; answers it with its token.
    pub async fn invite(&self, space: i64, body: Value) -> Value {
        let path = format!("/api/spaces/{space}/invites");
        expect(201, self.post(&path, body).await)
    }

    /// Joins by an invite with this session.
    pub async fn join(&self, token: &str) -> (u16, Value) {
        self.post(&format!("/api/join/{token}"), json!({})).await
    }

    /// Says something; answers `{message, run}`.
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

    /// Triggers a turn of a speaker, or of the next one.
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

    /// The conversation with its state.
    pub async fn conversation(&self, conversation: i64) -> Value {
        expect(
            200,
            self.get(&format!("/api/conversations/{conversation}"))
                .await,
        )
    }

    /// Every run of a conversation, as many as one page holds.
    pub async fn runs(&self, conversation: i64) -> Vec<Value> {
        data(expect(
            200,
            self.get(&format!("/api/conversations/{conversation}/runs?limit=200"))
                .await,
        ))
    }

    /// The newest messages, ascending, as many as one page holds.
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

/// `troupe_session=…`, when an answer sets it.
fn session_in(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all("set-cookie").iter();
    let mut pairs = cookies.filter_map(|it| it.to_str().ok()?.split(';').next());
    let session = pairs.find(|pair| pair.starts_with("troupe_session="));
    session.map(str::to_owned)
}

/// The document of an answer that must have this status.
pub fn expect(status: u16, answer: (u16, Value)) -> Value {
    assert_eq!(answer.0, status, "{}", answer.1);
    answer.1
}

/// The id of a document that has a number for it.
pub fn id(document: &Value) -> i64 {
    document["id"]
        .as_i64()
        .unwrap_or_else(|| panic!("no numeric id in {document}"))
}

/// The token of an invite that was made just now.
pub fn token_of(invite: &Value) -> &str {
    invite["token"]
        .as_str()
        .unwrap_or_else(|| panic!("no token in {invite}"))
}

/// The root conversation of a space.
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
