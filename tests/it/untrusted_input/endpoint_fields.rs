//! Finds the fields of an endpoint's body by calling it: the error names the field that is unknown,
//! missing, or of the wrong kind. So the tests cover a new endpoint without a change here.

use std::collections::{BTreeSet, HashMap};

use futures::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use troupe::web::openapi::endpoint::ApiEndpoint;

use crate::support::poll;
use crate::untrusted_input::http_connection::{HttpConnection, Reply};
use crate::untrusted_input::installation::{Installation, all_endpoints, book, columns};

/// Names that strangers try, in addition to the columns of the database and the names in the
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
    /// As the router has it.
    pub path: String,
    /// With the ids of what is there.
    pub address: String,
    /// Whether it reads a body.
    pub reads: bool,
    /// A body that it finds as little wrong with as can be found out.
    pub base: Map<String, Value>,
    /// The fields that it knows.
    pub fields: Vec<Field>,
}

/// One field, and how a text can be put into it.
#[derive(Clone)]
pub struct Field {
    pub name: String,
    pub shape: Shape,
}

/// Where in a field a text may stand.
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
    /// The whole body with this value for one field.
    pub fn body_with(&self, field: &str, value: Value) -> String {
        let mut body = self.base.clone();
        body.insert(field.to_owned(), value);
        Value::Object(body).to_string()
    }

    /// Method and path, as the page on the API has them.
    pub fn call(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// The fields of every endpoint, with the ids of this server. They are found out once for all
/// tests, because they are the same on every server.
pub async fn of_all_endpoints(house: &Installation) -> Vec<EndpointFields> {
    static KNOWN: OnceCell<HashMap<String, EndpointFields>> = OnceCell::const_new();
    let known = KNOWN.get_or_init(|| learn_all(house)).await;
    let mut all = Vec::new();
    for door in all_endpoints() {
        let call = format!("{} {}", door.method(), door.path());
        all.push(EndpointFields {
            address: house.address(&door).await,
            ..known[&call].clone()
        });
    }
    all
}

async fn learn_all(house: &Installation) -> HashMap<String, EndpointFields> {
    let tables = columns(&mut house.facts().await).await;
    let columns = tables.into_values().flatten();
    let doors = all_endpoints();
    let documented = doors.iter().flat_map(documented);
    let words = columns.chain(WORDS.map(str::to_owned)).chain(documented);
    let words: BTreeSet<String> = words.collect();
    let learned = join_all(doors.iter().map(|door| learn(house, door, &words))).await;
    // Suggestions that a trial asked for cost their space tokens when they end.
    let candidates = &house.app.app.engine.candidates;
    poll::until("no suggestion is being written", async || {
        (candidates.count() == 0).then_some(())
    })
    .await;
    // An entry is one of its book; of those there were, one or the other has been deleted.
    let again = house.request_with("POST", "/api/lorebooks", &book().to_string());
    let made = HttpConnection::connect(&house.app.base).send(&again).await;
    assert_eq!(made.expect("an answer").status, 201);
    learned.into_iter().map(|it| (it.call(), it)).collect()
}

/// The fields of an endpoint's body, as far as its document names them.
pub fn documented(door: &ApiEndpoint) -> BTreeSet<String> {
    let operation = serde_json::to_value(door.operation()).expect("a document is JSON");
    let content = &operation["requestBody"]["content"]["application/json"];
    let schemas = door.schemas().into_iter();
    let schemas = schemas.map(|(name, it)| (name, json!(it))).collect();
    let mut fields = BTreeSet::new();
    gather(&content["schema"], &schemas, &mut fields);
    fields
}

fn gather(schema: &Value, named: &HashMap<String, Value>, fields: &mut BTreeSet<String>) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    fields.extend(properties.map(|(name, _)| name.clone()));
    let target = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
    if let Some(target) = target.and_then(|it| named.get(it)) {
        gather(target, named, fields);
    }
    for kind in ["allOf", "oneOf", "anyOf"] {
        for part in schema[kind].as_array().into_iter().flatten() {
            gather(part, named, fields);
        }
    }
}

async fn learn(
    house: &Installation,
    door: &ApiEndpoint,
    words: &BTreeSet<String>,
) -> EndpointFields {
    let mut asking = Probe {
        house,
        line: HttpConnection::connect(&house.app.base),
        method: door.method().to_string(),
        address: house.address(door).await,
    };
    let mut fields = Vec::new();
    let mut base = Map::new();
    let reads = asking.refuses("no_such_field").await;
    if reads {
        base = asking.base().await;
        for word in words {
            if asking.refuses(word).await {
                continue;
            }
            let shape = asking.shape(&base, word).await;
            let name = word.clone();
            fields.push(Field { name, shape });
        }
    }
    EndpointFields {
        method: asking.method,
        path: door.path().to_owned(),
        address: asking.address,
        reads,
        base,
        fields,
    }
}

struct Probe<'a> {
    house: &'a Installation,
    line: HttpConnection,
    method: String,
    address: String,
}

impl Probe<'_> {
    async fn send(&mut self, body: &Value) -> Reply {
        let (method, address) = (&self.method, &self.address);
        let request = self.house.request_with(method, address, &body.to_string());
        let reply = self.line.send(&request).await;
        reply.unwrap_or_else(|error| panic!("{method} {address}: {error}"))
    }

    /// Whether it says that it does not know this field.
    async fn refuses(&mut self, field: &str) -> bool {
        let reply = self.send(&json!({ field: [[]] })).await;
        reply.error() == ("unknown_field".to_owned(), field.to_owned())
    }

    /// Fills in what is missing until nothing is.
    async fn base(&mut self) -> Map<String, Value> {
        let mut base = Map::new();
        let mut n_tried: HashMap<String, usize> = HashMap::new();
        loop {
            let reply = self.send(&Value::Object(base.clone())).await;
            let (code, param) = reply.error();
            let is_ours = match code.as_str() {
                "missing_field" => true,
                "invalid_type" | "invalid_value" => base.contains_key(&param),
                _ => false,
            };
            let nth = n_tried.entry(param.clone()).or_default();
            let guess = guesses(&param).into_iter().nth(*nth);
            let Some(guess) = guess.filter(|_| is_ours) else {
                return base;
            };
            *nth += 1;
            base.insert(param, guess);
        }
    }

    /// Where in a field a text may stand: there it does not complain of the type.
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

/// What a field may take, the likeliest first.
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

    /// What the corpora rest on: if asking finds nothing out, they attack nothing.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn probing_an_endpoint_finds_its_fields() {
        let house = Installation::open(TestBackend::Sqlite).await;

        let all = of_all_endpoints(&house).await;

        let n_reading = all.iter().filter(|it| it.reads).count();
        let n_fields: usize = all.iter().map(|it| it.fields.len()).sum();
        assert!(
            n_reading > 20 && n_fields > 120,
            "{n_reading} and {n_fields}"
        );
        let door = all.iter().find(|it| it.call() == "POST /api/providers");
        let door = door.expect("it is mounted");
        let shape_of = |name: &str| {
            let field = door.fields.iter().find(|it| it.name == name);
            field.map(|it| it.shape)
        };
        assert_eq!(shape_of("name"), Some(Shape::Text));
        assert_eq!(shape_of("settings"), Some(Shape::Object));
        assert_eq!(shape_of("disabled"), Some(Shape::None));
        assert_eq!(shape_of("created_at"), None);
        let base: Vec<_> = door.base.keys().collect();
        assert_eq!(base, ["base_url", "name", "model"]);
        house.close_unharmed().await;
    }
}
