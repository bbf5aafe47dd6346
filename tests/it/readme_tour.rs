//! Runs the commands of the README's first tour unchanged on a fresh server.

use std::path::Path;

use serde_json::{Deserializer, Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::http_client::http_client;
use crate::support::process::Server;
use crate::support::ws_client::{WsClient, connect_with_key, type_of};
use crate::support::{api_contract, poll};

const README: &str = include_str!("../../README.md");

/// Returns the text between a heading and the next second-level heading.
fn section(heading: &str) -> &'static str {
    let from = README
        .find(heading)
        .unwrap_or_else(|| panic!("the README does not contain {heading:?}"));
    let text = &README[from + heading.len()..];
    text.find("\n## ").map_or(text, |to| &text[..to])
}

/// Returns the shell blocks of a text, in order.
fn shell_blocks(text: &str) -> Vec<&str> {
    let fences = text.split("```").skip(1).step_by(2);
    fences
        .filter_map(|block| block.split_once('\n'))
        .filter(|(kind, _)| kind.split(' ').next() == Some("sh"))
        .map(|(_, block)| block)
        .collect()
}

/// Runs a script in a folder; returns the JSON values that it printed.
async fn run(script: &str, folder: &Path) -> Vec<Value> {
    let mut bash = Command::new("bash");
    bash.args(["-eu", "-o", "pipefail", "-c", script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(folder)
        .kill_on_drop(true);
    let ended = timeout(poll::DEADLINE, bash.output())
        .await
        .expect("the script exits in time")
        .expect("bash can be started");
    let printed = String::from_utf8(ended.stdout).expect("the output is UTF-8");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{stderr}\n{printed}");
    Deserializer::from_str(&printed)
        .into_iter()
        .map(|answer| answer.unwrap_or_else(|error| panic!("{error} in: {printed}")))
        .collect()
}

/// The server after the tour, and the commands of its WebSocket part.
struct TourResult {
    server: Server,
    key: String,
    live_block: String,
}

impl TourResult {
    async fn get(&self, path: &str) -> Value {
        let request = http_client().get(format!("{}{path}", self.server.url()));
        let answer = request.bearer_auth(&self.key).send().await;
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status(), 200, "GET {path}");
        answer.json().await.expect("the response is JSON")
    }

    async fn post(&self, content: &str) {
        let address = format!("{}/api/conversations/2/messages", self.server.url());
        let request = http_client().post(address).bearer_auth(&self.key);
        let answer = request.json(&json!({ "content": content })).send().await;
        assert_eq!(answer.expect("the server answers").status(), 201);
    }

    /// Waits until the conversation has `n` messages and is idle.
    async fn messages(&self, n: usize) -> Vec<Value> {
        poll::until("the reply is stored", async || {
            let list = self.get("/api/conversations/2/messages?html=true").await;
            let messages = list["data"].as_array().expect("data is a list").clone();
            let state = self.get("/api/conversations/2").await["state"].clone();
            (messages.len() == n && state == "idle").then_some(messages)
        })
        .await
    }
}

/// Runs the blocks on a fresh server, checks each response, and stores the API key.
async fn run_tour() -> TourResult {
    let mut server = Server::fresh();
    server.launch().await;
    server.wait_ready().await;
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let address = server.url().replace("http://", "");
    let blocks = shell_blocks(section("## A first tour without the browser"));
    let (live, plain): (Vec<&str>, Vec<&str>) = blocks
        .into_iter()
        .partition(|block| block.starts_with("websocat"));
    assert_eq!((plain.len(), live.len()), (2, 1));

    let script = format!("{}\nprintf %s \"$KEY\" > key", plain.join("\n"));
    let answers = run(&script.replace("localhost:8080", &address), folder.path()).await;
    check_the_answers(answers);

    TourResult {
        server,
        key: std::fs::read_to_string(folder.path().join("key")).expect("the script wrote the key"),
        live_block: live[0].replace("localhost:8080", &address),
    }
}

fn check_the_answers(answers: Vec<Value>) {
    let [
        setup,
        character,
        space,
        membership,
        posted,
        invite,
        conversation,
        messages,
    ] = <[Value; 8]>::try_from(answers).expect("eight calls print a response");
    assert_eq!(setup["user"]["role"], "admin", "{setup}");
    assert!(
        README.contains("the character is 3, the space 2 and its conversation 2"),
        "the README names other ids than the next block uses"
    );
    assert_eq!(character["id"], 3, "{character}");
    assert_eq!(space["id"], 2, "{space}");
    assert_eq!(space["root_conversation_id"], 2, "{space}");
    assert_eq!(membership["character_id"], 3, "{membership}");
    assert_eq!(membership["space_id"], 2, "{membership}");
    assert_eq!(posted["message"]["content"], "Which clock is the oldest?");
    assert_eq!(posted["run"]["status"], "queued", "{posted}");
    let link = invite["url"].as_str().unwrap_or_default();
    assert!(
        link.starts_with("http://") && link.contains("/join#"),
        "{invite}"
    );
    assert_eq!(conversation["id"], 2, "{conversation}");
    assert_eq!(
        messages["data"][0]["content"], "Come in, Ann. Mind the pendulums.",
        "{messages}"
    );
    assert_eq!(messages["data"][1], posted["message"], "{messages}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_readme_tour_works_as_described() {
    let tour = run_tour().await;

    let messages = tour.messages(3).await;

    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["assistant", "user", "assistant"]);
    assert_eq!(messages[2]["author_name"], "Mina");
    assert_ne!(messages[2]["content"], "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_websocket_part_of_the_tour_receives_every_event_that_it_names() {
    let tour = run_tour().await;
    let (command, frame) = tour
        .live_block
        .trim_end()
        .split_once('\n')
        .expect("the block has a command and a frame");
    let address = command
        .split(' ')
        .next_back()
        .expect("the command has an address");
    let description = section(
        "The server responds with a snapshot, and then sends an event for everything that happens:",
    );
    let listed: Vec<&str> = description
        .lines()
        .next()
        .expect("a line lists the events")
        .split('`')
        .skip(1)
        .step_by(2)
        .collect();
    assert!(listed.len() > 4, "{listed:?}");

    let client = WsClient::at(
        connect_with_key(address, &tour.key)
            .await
            .expect("the socket accepts the API key"),
    );
    client.send_text(frame).await;
    let answer = client
        .wait_for("the answer", |frame| frame["re"] == 1)
        .await;
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(answer["snapshot"]["messages"][0]["author_name"], "Mina");
    tour.messages(3).await;
    let position = client.here();
    tour.post("And the youngest?").await;

    for event in listed {
        let is_it = |frame: &Value| type_of(frame).as_deref() == Some(event);
        client.wait_after(position, event, is_it).await;
    }
    let messages = tour.messages(5).await;
    client
        .wait_after(position, "the reply as it is stored", |frame| {
            frame["type"] == "message_created" && frame["message"] == messages[4]
        })
        .await;
    client.log().iter().for_each(api_contract::check_frame);
}
