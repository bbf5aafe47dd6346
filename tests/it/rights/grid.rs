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

/// Without workers, what is queued stays queued; no limit ends the grid early.
const SETTINGS: &[(&str, &str)] = &[
    ("TROUPE_OPEN_REGISTRATION", "true"),
    ("TROUPE_WORKERS", "0"),
    ("LIMIT_LOGIN_FAILURES", "0"),
    ("LIMIT_REGISTRATIONS_PER_HOUR", "0"),
    ("LIMIT_POSTS_PER_MINUTE", "0"),
];

/// What a path may hold that is no id at all.
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
    let house = TestApp::start_with(TestBackend::Sqlite, SETTINGS).await;
    let document = expect(200, HttpClient::new(&house.base).get("/openapi.json").await);
    house.close().await;

    let paths = document["paths"].as_object().expect("the paths");
    let doors = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("the methods of a path");
        methods
            .keys()
            .map(move |it| format!("{} {path}", it.to_uppercase()))
    });
    let doors: BTreeSet<String> = doors.filter(|it| it != "GET /ws").collect();
    let known: BTreeSet<String> = rows().iter().map(|it| it.call.to_owned()).collect();

    let without_row: Vec<_> = doors.difference(&known).collect();
    let without_door: Vec<_> = known.difference(&doors).collect();
    assert!(without_row.is_empty(), "no row for {without_row:?}");
    assert!(without_door.is_empty(), "no door for {without_door:?}");
}

on_sqlite! {
    async fn every_cell_of_the_grid_answers_as_the_table_says(backend) {
        let cast = RoleClients::create(TestApp::start_with(backend, SETTINGS).await).await;
        let mut facts = DatabaseFacts::open(&cast.house.database).await;
        ids_of_each_kind_are_far_apart(&mut facts).await;
        let mut foreign = fixture::create(&cast, Role::Elsewhere).await;
        fixture::create_resources_of(&cast, Role::Elsewhere, &mut foreign).await;
        let mut grid = Grid {
            foreign,
            cast,
            facts,
            cells: 0,
            wrong: Vec::new(),
        };

        let stage = fixture::create(&grid.cast, Role::Owner).await;
        let everything = grid.snapshot().await;
        for row in rows() {
            grid.refused(&row, &stage).await;
            if grid.snapshot().await != everything {
                grid.wrong.push(format!("{} {}: a refusal left a trace", row.call, row.case));
            }
        }
        for row in rows() {
            grid.allowed(&row, &stage).await;
        }

        let Grid { cells, wrong, cast, .. } = grid;
        eprintln!("{cells} cells");
        cast.house.close().await;
        assert!(wrong.is_empty(), "{} of {cells} cells:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// No id of one kind is one of another, so that one that is mistaken finds nothing.
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
    cast: RoleClients,
    facts: DatabaseFacts,
    /// The ids of a space in which only [`Who::Elsewhere`] sits.
    foreign: Ids,
    cells: usize,
    wrong: Vec<String>,
}

impl Grid {
    /// Tries roles that are refused: with their own ids, foreign ones, missing ones, and malformed
    /// ones.
    async fn refused(&mut self, row: &Row, stage: &Ids) {
        for who in Role::ALL {
            let status = row.expects(who);
            if Row::is_refusal(status) && row.before == Setup::Nothing {
                let path = row.filled(|it| text(&stage.of(row.id_for(it), who)));
                self.check_call(row, who, "own", &path, stage, status).await;
            }
            if row.parameters().is_empty() {
                continue;
            }
            let may_know = self.without_the_thing(row, who);
            // An admin may access everything except what belongs to one user; a token is a right by
            // itself.
            let may_be_there = match who {
                Role::Elsewhere => true,
                _ if row.parameters() == ["token"] => true,
                Role::Admin => row.before != Setup::Furnishes,
                _ => false,
            };
            if !may_be_there {
                let path = row.filled(|it| text(&self.foreign.of(it, who)));
                self.check_call(row, who, "foreign", &path, stage, may_know)
                    .await;
            }
            // A malformed id is 404 for every role.
            let parameter = row.parameters()[0];
            let has_form = |id: &str| match parameter {
                "run_id" => id.len() == 36 && id.contains('-'),
                _ => id.len() < 20 && id.bytes().all(|it| it.is_ascii_digit()),
            };
            let mut ids = self.missing_ids(row, stage, who);
            if parameter != "token" {
                ids.extend(NO_IDS.iter().map(|it| (*it).to_owned()));
            }
            for id in ids {
                let path = row.filled(|_| id.clone());
                let expected = match parameter == "token" || has_form(&id) {
                    true => may_know,
                    false => 404,
                };
                self.check_call(row, who, "no such", &path, stage, expected)
                    .await;
            }
        }
    }

    /// What is answered about something that is not there, or not theirs to know of.
    fn without_the_thing(&self, row: &Row, who: Role) -> u16 {
        match (who, row.expects(Role::Outsider)) {
            (Role::Nobody, _) if row.expects(who) == 401 => 401,
            // What only admins do is refused to others before it is looked for.
            (Role::Admin, _) => 404,
            (_, 403) => 403,
            _ => 404,
        }
    }

    /// Ids that stand for nothing: missing ones and ones of another kind.
    fn missing_ids(&self, row: &Row, stage: &Ids, who: Role) -> Vec<String> {
        let is_about = row.parameters()[0];
        let other_kind = match is_about {
            "space_id" => "conversation_id",
            "run_id" => "message_id",
            _ => "space_id",
        };
        let other_kind = text(&stage.of(other_kind, who));
        let missing = match is_about {
            "run_id" => "01890000-0000-7000-8000-000000000001".to_owned(),
            _ => "999999999".to_owned(),
        };
        vec![other_kind, missing]
    }

    /// Tries roles that are allowed, each in a new space if the call changes something.
    async fn allowed(&mut self, row: &Row, common: &Ids) {
        for who in Role::ALL {
            let status = row.expects(who);
            if Row::is_refusal(status) && row.before == Setup::Nothing {
                continue;
            }
            let mut stage = match row.method() {
                "GET" => common.clone(),
                _ => fixture::create(&self.cast, Role::Owner).await,
            };
            match row.before {
                Setup::Nothing => {}
                Setup::Furnishes => fixture::create_resources_of(&self.cast, who, &mut stage).await,
                Setup::Speaks if who.is_seated() => {
                    let conversation = stage.of("conversation_id", who);
                    let message = fixture::post(&self.cast, who, &conversation).await;
                    stage.insert(format!("message_id:{}", who.name()), &message["id"]);
                }
                Setup::Speaks => {}
                Setup::ComesAnew if who != Role::Nobody => {
                    let caller = HttpClient::sign_in(&self.cast.house.base, who.name()).await;
                    self.cells += 1;
                    let (got, answer) =
                        call(&caller, row, &row.filled(|_| String::new()), &stage, who).await;
                    self.compare(row, who, "own", status, got, &answer);
                    continue;
                }
                Setup::ComesAnew => {}
            }
            let path = row.filled(|it| text(&stage.of(row.id_for(it), who)));
            self.check_call(row, who, "own", &path, &stage, status)
                .await;
        }
    }

    async fn check_call(
        &mut self,
        row: &Row,
        who: Role,
        ids: &str,
        path: &str,
        stage: &Ids,
        expected: u16,
    ) {
        self.cells += 1;
        let (got, answer) = call(self.cast.person(who), row, path, stage, who).await;
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
        // What one may not know of looks the same as what is not there.
        let tells = got == 404 && expected == 404 && answer["error"]["code"] != "not_found";
        if got != expected || tells {
            let (call, case) = (row.call, row.case);
            self.wrong.push(format!(
                "{call} {case}: {who:?} with {ids}: {got} and not {expected}: {answer}"
            ));
        }
    }

    /// Every row of every table, but for what a mere visit writes down.
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

async fn call(caller: &HttpClient, row: &Row, path: &str, stage: &Ids, who: Role) -> (u16, Value) {
    let method = Method::from_bytes(row.method().as_bytes()).expect("a method");
    let body = (row.body)(stage, who);
    let body = (!body.is_null()).then_some(&body);
    let answer = caller.attempt(method, path, body).await;
    answer.unwrap_or_else(|error| panic!("{} {path}: {error}", row.method()))
}

/// An id as it stands in a path.
fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
