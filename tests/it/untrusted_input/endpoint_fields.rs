//! Finds the fields of an endpoint's body by calling it: the error names the field that is unknown,
//! missing, or of the wrong kind. So the tests cover a new endpoint without a change here.

use std::collections::{BTreeSet, HashMap};

use futures::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use troupe::web::openapi::endpoint::ApiEndpoint;

use crate::support::poll;
use crate::untrusted_input::http_connection::{HttpConnection, Reply};
use crate::untrusted_input::installation::{Installation, all_endpoints, columns, lorebook};

/// Names that attackers try, in addition to the columns of the database and the names in the
/// document.
const WORDS: [&str; 12] = [
    "admin",
    "is_admin",
    "user",
    "owner",
    "password",
    "token",
    "api_key",
    "permissions",
    "limit",
    "force",
    "as_user",
    "__proto__",
];

/// An endpoint with its fields.
#[derive(Clone)]
pub struct EndpointFields {
    pub method: String,
    /// The route pattern.
    pub path: String,
    /// The path with the ids of existing resources.
    pub address: String,
    /// Whether it reads a body.
    pub reads: bool,
    /// A body with as few validation errors as probing can reach.
    pub base: Map<String, Value>,
    /// The accepted fields.
    pub fields: Vec<Field>,
}

/// One field, and how a text can be put into it.
#[derive(Clone)]
pub struct Field {
    pub name: String,
    pub shape: Shape,
}

/// Where a field accepts a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Text,
    List,
    Object,
    /// No place for a string: the field is a number or a boolean.
    None,
}

impl Shape {
    /// A value of this shape that holds the text.
    pub fn around(self, text: &str) -> Value {
        match self {
            Shape::Text | Shape::None => json!(text),
            Shape::List => json!([text]),
            Shape::Object => json!({ text: text, "in": { "it": [text] } }),
        }
    }
}

impl EndpointFields {
    /// The base body with this value for one field.
    pub fn body_with(&self, field: &str, value: Value) -> String {
        let mut body = self.base.clone();
        body.insert(field.to_owned(), value);
        Value::Object(body).to_string()
    }

    /// Method and route pattern.
    pub fn call(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// The fields of every endpoint, with the ids of this server. They are probed once for all tests,
/// because they are the same on every server.
pub async fn of_all_endpoints(server: &Installation) -> Vec<EndpointFields> {
    static KNOWN: OnceCell<HashMap<String, EndpointFields>> = OnceCell::const_new();
    let known = KNOWN.get_or_init(|| probe_all(server)).await;
    let mut all = Vec::new();
    for endpoint in all_endpoints() {
        let call = format!("{} {}", endpoint.method(), endpoint.path());
        all.push(EndpointFields {
            address: server.address(&endpoint).await,
            ..known[&call].clone()
        });
    }
    all
}

async fn probe_all(server: &Installation) -> HashMap<String, EndpointFields> {
    let tables = columns(&mut server.facts().await).await;
    let columns = tables.into_values().flatten();
    let endpoints = all_endpoints();
    let documented = endpoints.iter().flat_map(documented);
    let words = columns.chain(WORDS.map(str::to_owned)).chain(documented);
    let words: BTreeSet<String> = words.collect();
    let probed = join_all(
        endpoints
            .iter()
            .map(|endpoint| probe_fields(server, endpoint, &words)),
    )
    .await;
    // Suggestions that a probe requested change `tokens_used` of their conversation when they end.
    let candidates = &server.app.app.engine.candidates;
    poll::until("all suggestions have ended", async || {
        (candidates.count() == 0).then_some(())
    })
    .await;
    // The probes have deleted lorebook entries, and later tests need one.
    let new_lorebook = server.request_with("POST", "/api/lorebooks", &lorebook().to_string());
    let created = HttpConnection::connect(&server.app.base)
        .send(&new_lorebook)
        .await;
    assert_eq!(created.expect("the request got no response").status, 201);
    probed.into_iter().map(|it| (it.call(), it)).collect()
}

/// The fields of an endpoint's body in the OpenAPI document.
pub fn documented(endpoint: &ApiEndpoint) -> BTreeSet<String> {
    let operation =
        serde_json::to_value(endpoint.operation()).expect("an operation serializes to JSON");
    let content = &operation["requestBody"]["content"]["application/json"];
    let schemas = endpoint.schemas().into_iter();
    let schemas = schemas.map(|(name, it)| (name, json!(it))).collect();
    let mut fields = BTreeSet::new();
    collect_fields(&content["schema"], &schemas, &mut fields);
    fields
}

fn collect_fields(schema: &Value, named: &HashMap<String, Value>, fields: &mut BTreeSet<String>) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    fields.extend(properties.map(|(name, _)| name.clone()));
    let target = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
    if let Some(target) = target.and_then(|it| named.get(it)) {
        collect_fields(target, named, fields);
    }
    for kind in ["allOf", "oneOf", "anyOf"] {
        for part in schema[kind].as_array().into_iter().flatten() {
            collect_fields(part, named, fields);
        }
    }
}

async fn probe_fields(
    server: &Installation,
    endpoint: &ApiEndpoint,
    words: &BTreeSet<String>,
) -> EndpointFields {
    let mut probe = Probe {
        server,
        connection: HttpConnection::connect(&server.app.base),
        method: endpoint.method().to_string(),
        address: server.address(endpoint).await,
    };
    let mut fields = Vec::new();
    let mut base = Map::new();
    let reads = probe.refuses("no_such_field").await;
    if reads {
        base = probe.base().await;
        for word in words {
            if probe.refuses(word).await {
                continue;
            }
            let shape = probe.shape(&base, word).await;
            let name = word.clone();
            fields.push(Field { name, shape });
        }
    }
    EndpointFields {
        method: probe.method,
        path: endpoint.path().to_owned(),
        address: probe.address,
        reads,
        base,
        fields,
    }
}

struct Probe<'a> {
    server: &'a Installation,
    connection: HttpConnection,
    method: String,
    address: String,
}

impl Probe<'_> {
    async fn send(&mut self, body: &Value) -> Reply {
        let (method, address) = (&self.method, &self.address);
        let request = self.server.request_with(method, address, &body.to_string());
        let reply = self.connection.send(&request).await;
        reply.unwrap_or_else(|error| panic!("{method} {address}: {error}"))
    }

    /// Whether the endpoint rejects this field as unknown.
    async fn refuses(&mut self, field: &str) -> bool {
        let reply = self.send(&json!({ field: [[]] })).await;
        reply.error() == ("unknown_field".to_owned(), field.to_owned())
    }

    /// Adds guessed values until no required field is missing.
    async fn base(&mut self) -> Map<String, Value> {
        let mut base = Map::new();
        let mut n_tried: HashMap<String, usize> = HashMap::new();
        loop {
            let reply = self.send(&Value::Object(base.clone())).await;
            let (code, param) = reply.error();
            let is_fixable = match code.as_str() {
                "missing_field" => true,
                "invalid_type" | "invalid_value" => base.contains_key(&param),
                _ => false,
            };
            let nth = n_tried.entry(param.clone()).or_default();
            let guess = guesses(&param).into_iter().nth(*nth);
            let Some(guess) = guess.filter(|_| is_fixable) else {
                return base;
            };
            *nth += 1;
            base.insert(param, guess);
        }
    }

    /// The first shape that is not rejected with `invalid_type`.
    async fn shape(&mut self, base: &Map<String, Value>, field: &str) -> Shape {
        for shape in [Shape::Text, Shape::List, Shape::Object] {
            let mut body = base.clone();
            body.insert(field.to_owned(), shape.around("x"));
            let (code, param) = self.send(&Value::Object(body)).await.error();
            let is_about_it = param == field || param.starts_with(&format!("{field}."));
            if !(is_about_it && code == "invalid_type") {
                return shape;
            }
        }
        Shape::None
    }
}

/// Values that a field may accept, the likeliest first.
fn guesses(field: &str) -> [Value; 6] {
    let likely = match field {
        "password" => "correct horse battery",
        "base_url" => "http://127.0.0.1:9/v1",
        _ => "corpus",
    };
    [
        json!(likely),
        json!(1),
        json!(0),
        json!(true),
        json!([]),
        json!({}),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Shape, of_all_endpoints};
    use crate::support::backends::TestBackend;
    use crate::untrusted_input::installation::Installation;

    /// Without fields the other tests of this folder would send nothing.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn probing_an_endpoint_finds_its_fields() {
        let server = Installation::open(TestBackend::Sqlite).await;

        let all = of_all_endpoints(&server).await;

        let n_reading = all.iter().filter(|it| it.reads).count();
        let n_fields: usize = all.iter().map(|it| it.fields.len()).sum();
        assert!(
            n_reading > 20 && n_fields > 120,
            "{n_reading} and {n_fields}"
        );
        let endpoint = all.iter().find(|it| it.call() == "POST /api/providers");
        let endpoint = endpoint.expect("POST /api/providers is not listed");
        let shape_of = |name: &str| {
            let field = endpoint.fields.iter().find(|it| it.name == name);
            field.map(|it| it.shape)
        };
        assert_eq!(shape_of("name"), Some(Shape::Text));
        assert_eq!(shape_of("settings"), Some(Shape::Object));
        assert_eq!(shape_of("disabled"), Some(Shape::None));
        assert_eq!(shape_of("created_at"), None);
        let base: Vec<_> = endpoint.base.keys().collect();
        assert_eq!(base, ["base_url", "name", "model"]);
        server.close_unharmed().await;
    }
}
