//! Tests every cell of the rights grid: each endpoint with each role.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;

use crate::rights::fixture;
use crate::rights::fixture::Ids;
use crate::rights::roles::{Role, RoleClients};
use crate::rights::table::{Row, Setup, rows};
use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect};

/// Without workers, queued runs stay queued; limits would end the grid early.
const SETTINGS: &[(&str, &str)] = &[
    ("TROUPE_OPEN_REGISTRATION", "true"),
    ("TROUPE_WORKERS", "0"),
    ("LIMIT_LOGIN_FAILURES", "0"),
    ("LIMIT_REGISTRATIONS_PER_HOUR", "0"),
    ("LIMIT_POSTS_PER_MINUTE", "0"),
];

/// Path segments that are not a valid id.
const NO_IDS: [&str; 6] = [
    "abc",
    "-1",
    "1.5",
    "%00",
    "99999999999999999999999",
    "01890000-0000-7000-8000-000000000000",
];

#[tokio::test]
async fn every_endpoint_has_a_row_and_every_row_an_endpoint() {
    let app = TestApp::start_with(TestBackend::Sqlite, SETTINGS).await;
    let document = expect(200, HttpClient::new(&app.base).get("/openapi.json").await);
    app.close().await;

    let paths = document["paths"]
        .as_object()
        .expect("the document has paths");
    let endpoints = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("a path has methods");
        methods
            .keys()
            .map(move |it| format!("{} {path}", it.to_uppercase()))
    });
    // Those under `/v1` need an API key and have tests of their own.
    let is_here = |it: &String| it != "GET /ws" && !it.contains(" /v1/");
    let endpoints: BTreeSet<String> = endpoints.filter(is_here).collect();
    let known: BTreeSet<String> = rows().iter().map(|it| it.call.to_owned()).collect();

    let without_row: Vec<_> = endpoints.difference(&known).collect();
    let without_endpoint: Vec<_> = known.difference(&endpoints).collect();
    assert!(without_row.is_empty(), "no row for {without_row:?}");
    assert!(
        without_endpoint.is_empty(),
        "no endpoint for {without_endpoint:?}"
    );
}

on_sqlite! {
    async fn a_rejected_call_returns_the_status_of_the_table_and_changes_nothing(backend) {
        let (mut grid, space_ids) = Grid::open(backend).await;
        let everything = grid.snapshot().await;
        for row in rows() {
            grid.refused(&row, &space_ids).await;
            if grid.snapshot().await != everything {
                grid.wrong.push(format!("{} {}: a rejected call changed the database", row.call, row.case));
            }
        }
        grid.close().await;
    }

    async fn an_allowed_call_returns_the_status_of_the_table(backend) {
        let (mut grid, space_ids) = Grid::open(backend).await;
        for row in rows() {
            grid.allowed(&row, &space_ids).await;
        }
        grid.close().await;
    }
}

/// Makes the ids of different tables disjoint, so that an id of the wrong table finds nothing.
async fn ids_of_each_kind_are_far_apart(facts: &mut DatabaseFacts) {
    let tables = [
        "users",
        "sessions",
        "api_keys",
        "spaces",
        "space_memberships",
        "conversations",
        "messages",
        "characters",
        "llm_providers",
        "tool_approvals",
        "space_invitations",
    ];
    for (table, from) in tables.iter().zip((1..).map(|it| it * 1_000_000)) {
        match facts {
            DatabaseFacts::Postgres(_) => {
                let sql = format!("ALTER SEQUENCE {table}_id_seq RESTART WITH {from}");
                facts.execute(&sql).await;
            }
            DatabaseFacts::Sqlite(_) => {
                let sql = format!(
                    "DELETE FROM sqlite_sequence WHERE name = '{table}'; \
                     INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {from})"
                );
                facts.execute(&sql).await;
            }
        }
    }
}

struct Grid {
    clients: RoleClients,
    facts: DatabaseFacts,
    /// The ids of a space whose only member is [`Role::Elsewhere`].
    foreign: Ids,
    cells: usize,
    wrong: Vec<String>,
}

impl Grid {
    /// Starts a server with a user for each role, and creates the resources of a space.
    async fn open(backend: TestBackend) -> (Grid, Ids) {
        let clients = RoleClients::create(TestApp::start_with(backend, SETTINGS).await).await;
        let mut facts = DatabaseFacts::open(&clients.app.database).await;
        ids_of_each_kind_are_far_apart(&mut facts).await;
        let mut foreign = fixture::create(&clients, Role::Elsewhere).await;
        fixture::create_resources_of(&clients, Role::Elsewhere, &mut foreign).await;
        let space_ids = fixture::create(&clients, Role::Owner).await;
        let grid = Grid {
            foreign,
            clients,
            facts,
            cells: 0,
            wrong: Vec::new(),
        };
        (grid, space_ids)
    }

    /// Stops the server, and fails if a cell was wrong.
    async fn close(self) {
        let (cells, wrong) = (self.cells, self.wrong);
        self.clients.app.close().await;
        let list = wrong.join("\n");
        assert!(
            wrong.is_empty(),
            "{} of {cells} cells failed:\n{list}",
            wrong.len()
        );
    }

    /// Calls the endpoint with each rejected role: with own ids, foreign ones, missing ones, and
    /// malformed ones.
    async fn refused(&mut self, row: &Row, space_ids: &Ids) {
        for who in Role::ALL {
            let status = row.expects(who);
            if Row::is_refusal(status) && row.before == Setup::Nothing {
                let path = row.filled(|it| text(&space_ids.of(row.id_for(it), who)));
                self.check_call(row, who, "own", &path, space_ids, status)
                    .await;
            }
            if row.parameters().is_empty() {
                continue;
            }
            let missing_status = self.missing_status(row, who);
            // An admin may access everything except what belongs to one user; a token alone grants
            // access.
            let may_access = match who {
                Role::Elsewhere => true,
                _ if row.parameters() == ["token"] => true,
                Role::Admin => row.before != Setup::CreatesKeyAndSession,
                _ => false,
            };
            if !may_access {
                let path = row.filled(|it| text(&self.foreign.of(it, who)));
                self.check_call(row, who, "foreign", &path, space_ids, missing_status)
                    .await;
            }
            // A malformed id is 404 for every role.
            let parameter = row.parameters()[0];
            let has_form = |id: &str| match parameter {
                "run_id" => id.len() == 36 && id.contains('-'),
                _ => id.len() < 20 && id.bytes().all(|it| it.is_ascii_digit()),
            };
            let mut ids = self.missing_ids(row, space_ids, who);
            if parameter != "token" {
                ids.extend(NO_IDS.iter().map(|it| (*it).to_owned()));
            }
            for id in ids {
                let path = row.filled(|_| id.clone());
                let expected = match parameter == "token" || has_form(&id) {
                    true => missing_status,
                    false => 404,
                };
                self.check_call(row, who, "no such", &path, space_ids, expected)
                    .await;
            }
        }
    }

    /// Returns the expected status for a resource that is missing or not visible to the role.
    fn missing_status(&self, row: &Row, who: Role) -> u16 {
        match (who, row.expects(Role::Outsider)) {
            (Role::SignedOut, _) if row.expects(who) == 401 => 401,
            // For endpoints of admins, other roles are rejected before the resource is looked up.
            (Role::Admin, _) => 404,
            (_, 403) => 403,
            _ => 404,
        }
    }

    /// Returns ids that do not exist: one of another table and an unused one.
    fn missing_ids(&self, row: &Row, space_ids: &Ids, who: Role) -> Vec<String> {
        let is_about = row.parameters()[0];
        let other_kind = match is_about {
            "space_id" => "conversation_id",
            "run_id" => "message_id",
            _ => "space_id",
        };
        let other_kind = text(&space_ids.of(other_kind, who));
        let missing = match is_about {
            "run_id" => "01890000-0000-7000-8000-000000000001".to_owned(),
            _ => "999999999".to_owned(),
        };
        vec![other_kind, missing]
    }

    /// Calls the endpoint with each allowed role. Reads use the common space. Other calls use a new
    /// space: one for the row or, if the row needs it, one for each role.
    async fn allowed(&mut self, row: &Row, common: &Ids) {
        let shared = match row.method() {
            "GET" => Some(common.clone()),
            _ if row.needs_space_per_role() => None,
            _ => Some(fixture::create(&self.clients, Role::Owner).await),
        };
        for who in Role::ALL {
            let status = row.expects(who);
            if Row::is_refusal(status) && row.before == Setup::Nothing {
                continue;
            }
            let mut space_ids = match &shared {
                Some(ids) => ids.clone(),
                None => fixture::create(&self.clients, Role::Owner).await,
            };
            match row.before {
                Setup::Nothing => {}
                Setup::CreatesKeyAndSession => {
                    fixture::create_resources_of(&self.clients, who, &mut space_ids).await
                }
                Setup::Speaks if who.has_membership() => {
                    let conversation = space_ids.of("conversation_id", who);
                    let message = fixture::post(&self.clients, who, &conversation).await;
                    space_ids.insert(format!("message_id:{}", who.name()), &message["id"]);
                }
                Setup::Speaks => {}
                Setup::OpensSession if who != Role::SignedOut => {
                    let caller = HttpClient::sign_in(&self.clients.app.base, who.name()).await;
                    self.cells += 1;
                    let (got, answer) = call(
                        &caller,
                        row,
                        &row.filled(|_| String::new()),
                        &space_ids,
                        who,
                    )
                    .await;
                    self.compare(row, who, "own", status, got, &answer);
                    continue;
                }
                Setup::OpensSession => {}
            }
            let path = row.filled(|it| text(&space_ids.of(row.id_for(it), who)));
            self.check_call(row, who, "own", &path, &space_ids, status)
                .await;
        }
    }

    async fn check_call(
        &mut self,
        row: &Row,
        who: Role,
        ids: &str,
        path: &str,
        space_ids: &Ids,
        expected: u16,
    ) {
        self.cells += 1;
        let (got, answer) = call(self.clients.person(who), row, path, space_ids, who).await;
        self.compare(
            row,
            who,
            &format!("{ids} ids ({path})"),
            expected,
            got,
            &answer,
        );
    }

    fn compare(
        &mut self,
        row: &Row,
        who: Role,
        ids: &str,
        expected: u16,
        got: u16,
        answer: &Value,
    ) {
        // An invisible resource gets the same error as one that does not exist.
        let reveals_resource =
            got == 404 && expected == 404 && answer["error"]["code"] != "not_found";
        if got != expected || reveals_resource {
            let (call, case) = (row.call, row.case);
            self.wrong.push(format!(
                "{call} {case}: {who:?} with {ids}: {got}, expected {expected}: {answer}"
            ));
        }
    }

    /// Returns every row of every table, without the columns that any request updates.
    async fn snapshot(&mut self) -> Vec<String> {
        let (tables, quote): (&str, fn(&str) -> String) = match self.facts {
            DatabaseFacts::Sqlite(_) => (
                "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
                 WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' ORDER BY 1, c.cid",
                |it| format!("quote({it})"),
            ),
            DatabaseFacts::Postgres(_) => (
                "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) \
                 FROM information_schema.columns WHERE table_schema = 'public' \
                 ORDER BY 1, ordinal_position",
                |it| format!("CAST({it} AS TEXT)"),
            ),
        };
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        for row in self.facts.rows(tables).await {
            let (table, column) = (
                row[0].clone().unwrap_or_default(),
                row[1].clone().unwrap_or_default(),
            );
            if matches!(column.as_str(), "last_seen_at" | "last_used_at") {
                continue;
            }
            match columns.last_mut() {
                Some((name, of_it)) if *name == table => of_it.push(quote(&column)),
                _ => columns.push((table, vec![quote(&column)])),
            }
        }
        let mut all = Vec::new();
        for (table, columns) in columns {
            let sql = format!("SELECT {} FROM {table} ORDER BY 1", columns.join(", "));
            let rows = self.facts.rows(&sql).await;
            all.extend(rows.into_iter().map(|row| format!("{table}: {row:?}")));
        }
        all
    }
}

async fn call(
    caller: &HttpClient,
    row: &Row,
    path: &str,
    space_ids: &Ids,
    who: Role,
) -> (u16, Value) {
    let method = Method::from_bytes(row.method().as_bytes()).expect("a method");
    let body = (row.body)(space_ids, who);
    let body = (!body.is_null()).then_some(&body);
    let answer = caller.attempt(method, path, body).await;
    answer.unwrap_or_else(|error| panic!("{} {path}: {error}", row.method()))
}

/// Returns an id as text for a path.
fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
