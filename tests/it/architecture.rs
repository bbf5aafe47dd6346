//! Checks the layers of the modules and the style rules of the source code.
//!
//! Each rule must reject a small invalid input and accept the repository.

use std::fs;
use std::path::Path;

use crate::support::shape_rules::check;

/// Returns the path and the text of every source file in these folders.
fn files(folders: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pending: Vec<_> = folders
        .iter()
        .map(|folder| root.join(folder))
        .filter(|folder| folder.exists())
        .collect();
    let mut files = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be listed") {
            let path = entry.expect("the folder entry can be read").path();
            let name = path
                .strip_prefix(root)
                .expect("the path is below the root")
                .to_string_lossy()
                .replace('\\', "/");
            if path.is_dir() {
                pending.push(path);
            } else if [".rs", ".js", ".mjs", ".css", ".html"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                files.push((
                    name,
                    fs::read_to_string(&path).expect("a source file is UTF-8"),
                ));
            }
        }
    }
    files
}

#[test]
fn the_repository_follows_the_shape_rules() {
    let files = files(&["src", "crates", "migration", "static", "tests", "benches"]);

    let found: Vec<String> = files
        .iter()
        .flat_map(|(path, text)| check(path, text))
        .map(|violation| violation.to_string())
        .collect();

    assert!(
        files.iter().any(|(path, _)| path == "src/lib.rs"),
        "no source files were found"
    );
    assert!(
        found.is_empty(),
        "{} broken rules:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Returns the rules that an input violates, as `line: rule`.
fn broken(path: &str, text: &str) -> Vec<String> {
    check(path, text)
        .iter()
        .map(|found| format!("{}: {}", found.line, found.rule))
        .collect()
}

#[test]
fn a_module_may_use_lower_layers() {
    let text = "//! Doc.\nuse crate::conversations::message;\nuse crate::runs::queue;\nfn f() { crate::db::write::run(); super::run::g(); }\n";

    assert_eq!(broken("src/runs/engine.rs", text), Vec::<String>::new());
}

#[test]
fn a_module_may_not_use_higher_layers() {
    let found = broken(
        "src/conversations/message.rs",
        "//! Doc.\nuse crate::db::write;\nuse crate::runs::run;\n",
    );

    assert_eq!(
        found,
        ["3: `conversations` (layer 10) names `runs` (layer 13): imports point down only"]
    );
}

#[test]
fn protocols_do_not_use_each_other() {
    let text = "//! Doc.\nuse crate::web::error::ApiError;\nuse crate::web::v1::error;\n";

    let rule = |own: &str| {
        [format!(
            "3: `web/{own}` names `web/v1`: a protocol is used by nothing else in `web`"
        )]
    };
    assert_eq!(broken("src/web/api/users.rs", text), rule("api"));
    assert_eq!(broken("src/web/extract/upload.rs", text), rule("extract"));
    assert_eq!(broken("src/web/v1/sse.rs", text), Vec::<String>::new());
}

#[test]
fn a_full_path_counts_like_an_import() {
    let found = broken(
        "src/db/write.rs",
        "//! Doc.\nfn f() {\n    let x = crate::prompt::builder::build();\n}\n",
    );

    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("3: `db` (layer 3) names `prompt`"));
}

#[test]
fn modules_of_one_layer_do_not_use_each_other() {
    let found = broken(
        "src/speakers/selector.rs",
        "//! Doc.\nuse crate::rounds::round;\n",
    );

    assert_eq!(
        found,
        ["2: `speakers` names its neighbor `rounds`: modules of layer 11 do not know each other"]
    );
}

#[test]
fn paths_with_super_count_too() {
    let found = broken(
        "src/prompt/builder.rs",
        "//! Doc.\nuse super::super::runs::run;\nuse super::sections;\n",
    );

    assert_eq!(
        found,
        ["2: `prompt` (layer 12) names `runs` (layer 13): imports point down only"]
    );
}

#[test]
fn comments_strings_and_tests_do_not_count() {
    let text = "//! See crate::runs.\n// crate::api\nconst A: &str = \"crate::server\";\n#[cfg(test)]\nmod tests {\n    use crate::runs::queue;\n}\n";

    assert_eq!(
        broken("crates/base/src/clock.rs", text),
        Vec::<String>::new()
    );
}

#[test]
fn each_module_of_a_grouped_import_counts() {
    let text = "//! Doc.\nuse crate::{db, runs::queue};\n";

    assert_eq!(
        broken("src/conversations/message.rs", text),
        ["2: `conversations` (layer 10) names `runs` (layer 13): imports point down only"]
    );
}

#[test]
fn an_unknown_module_is_rejected() {
    let text = "//! Doc.\nuse crate::nowhere::x;\n";

    assert!(broken("src/runs/engine.rs", text)[0].contains("is no module"));
    assert!(broken("src/utils/text.rs", "//! Doc.\n")[0].contains("is not in src/lib.rs"));
}

#[test]
fn imports_of_one_module_are_grouped() {
    let split = "//! Doc.\nuse std::fmt;\nuse crate::runs::run::RunKind;\nuse crate::runs::run::RunStatus;\n";
    let grouped = "//! Doc.\nuse std::fmt;\nuse crate::runs::run::{RunKind, RunStatus};\n";

    assert_eq!(
        broken("src/runs/engine.rs", split),
        ["4: one `use` for each module: merge this one with the earlier import"]
    );
    assert_eq!(broken("src/runs/engine.rs", grouped), Vec::<String>::new());
}

#[test]
fn a_mod_file_holds_no_code() {
    let found = broken(
        "src/runs/mod.rs",
        "//! Doc.\n\npub mod queue;\npub use queue::claim;\nmod hidden;\n",
    );

    assert_eq!(
        found.iter().map(|rule| &rule[..2]).collect::<Vec<_>>(),
        ["4:", "5:"]
    );
}

#[test]
fn a_file_has_a_doc_comment_and_at_most_400_lines() {
    assert!(broken("crates/base/src/clock.rs", "use std::fmt;\n")[0].contains("opens with `//!`"));
    assert!(broken("static/js/store.js", &"x()\n".repeat(401))[0].contains("at most 400 lines"));
    assert_eq!(
        broken("static/js/store.js", &"x()\n".repeat(400)),
        Vec::<String>::new()
    );
}

#[test]
fn transactions_time_and_tasks_are_used_in_one_place() {
    let text = "//! Doc.\nasync fn f() {\n    db.begin().await;\n    Utc::now();\n    tokio::spawn(g());\n}\n";

    assert_eq!(broken("src/web/live/session.rs", text).len(), 3);
    assert_eq!(broken("crates/leased-jobs/src/lease.rs", text).len(), 2);
    assert_eq!(
        broken("src/db/write.rs", "//! Doc.\nfn f() { db.begin(); }\n"),
        Vec::<String>::new()
    );
    assert_eq!(
        broken(
            "crates/base/src/clock.rs",
            "//! Doc.\nfn f() { Utc::now(); }\n"
        ),
        Vec::<String>::new()
    );
    assert_eq!(
        broken(
            "src/runs/execution/run_job.rs",
            "//! Doc.\nfn f() { tokio::spawn(g()); }\n"
        ),
        Vec::<String>::new()
    );
}

#[test]
fn the_web_layers_write_no_queries() {
    let text = "//! Doc.\nuse sea_orm::EntityTrait;\nasync fn f() {\n    user::Entity::find_by_id(id).one(db).await;\n    page.load(users, user::Column::Id, db).await;\n}\n";
    let rule = "the web layers do not use sea-orm: call a finder in the module of the table";

    let found = [
        "web/api/users.rs",
        "web/v1/models.rs",
        "web/live/queries.rs",
        "web/error.rs",
    ]
    .map(|file| broken(&format!("src/{file}"), text));

    for rules in found {
        assert_eq!(rules, [2, 4, 5].map(|line| format!("{line}: {rule}")));
    }
    assert_eq!(
        broken("src/accounts/session.rs", text),
        Vec::<String>::new()
    );
}

#[test]
fn no_handler_is_mounted_without_its_description() {
    let text = "//! Doc.\nfn f(config: &mut ServiceConfig) {\n    config.service(web::resource(\"/x\").route(post().to(x)));\n}\n";

    assert_eq!(broken("src/web/v1/assistants/routes.rs", text).len(), 2);
    assert!(broken("src/web/v1/http/mounting.rs", text).is_empty());
}

#[test]
fn the_database_clock_is_read_in_one_place() {
    let sql = "//! Doc.\nconst A: &str = \"SELECT 1 WHERE at < now()\";\nconst B: &str = \"CURRENT_TIMESTAMP\";\nfn f() { clock.now(); }\n";

    assert_eq!(broken("src/accounts/session.rs", sql).len(), 2);
    assert_eq!(broken("src/db/backend.rs", sql), Vec::<String>::new());
}

#[test]
fn http_clients_are_built_in_one_place() {
    let text = "//! Doc.\nfn f() {\n    let client = reqwest::Client::new();\n    reqwest::Client::builder();\n}\n";

    assert_eq!(broken("src/runs/execution/executor.rs", text).len(), 2);
    assert_eq!(
        broken("crates/outbound-http/src/client.rs", text),
        Vec::<String>::new()
    );
}

#[test]
fn a_crate_uses_neither_the_application_nor_the_web_framework() {
    let text = "//! Doc.\nuse troupe::db::write;\nuse actix_web::web::Bytes;\n";

    assert_eq!(broken("crates/llm/src/request.rs", text).len(), 2);
    assert_eq!(broken("src/main.rs", text), Vec::<String>::new());
}

#[test]
fn an_error_that_the_database_did_not_report_is_not_a_database_error() {
    let text = "//! Doc.\nfn f() -> DbErr {\n    DbErr::Custom(String::new())\n}\n";

    assert_eq!(broken("src/runs/execution/executor.rs", text).len(), 1);
    assert_eq!(broken("src/db/write.rs", text).len(), 1);
}

#[test]
fn run_status_changes_in_one_file() {
    let update =
        "//! Doc.\nfn f() { run::Entity::update_many().col_expr(run::Column::Status, x); }\n";
    let sql = "//! Doc.\nconst A: &str = \"UPDATE \\\n    conversation_runs SET status = 'failed'\";\nconst B: &str = \"SELECT 1 FROM conversation_runs\";\n";

    assert_eq!(broken("src/runs/execution/recovery.rs", update).len(), 2);
    assert_eq!(
        broken("src/runs/store/queue.rs", update),
        Vec::<String>::new()
    );
    assert_eq!(
        broken("src/web/api/runs.rs", sql),
        [
            "3: a run moves in runs/store/queue.rs only, by a statement that names the state it expects"
        ]
    );
}
