//! A Redis server of one test, which can be stopped, suspended and resumed.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use redis::Client;
use tempfile::TempDir;

use crate::support::poll;

/// A private `redis-server`, killed on drop.
pub struct RedisServer {
    port: u16,
    folder: TempDir,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts a server and waits until it answers.
    pub async fn start() -> RedisServer {
        let mut server = RedisServer {
            port: free_port(),
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            process: None,
        };
        server.start_again().await;
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of `REDIS_URL`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("Redis is running");
        process.kill().expect("Redis can be killed");
        process.wait().expect("Redis can be waited for");
    }

    /// Starts it again on the same port, without data.
    pub async fn start_again(&mut self) {
        let process = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed (by bin/test)");
        self.process = Some(process);
        poll::until("Redis answers", async || {
            self.ask(&["PING"]).await.ok().map(drop)
        })
        .await;
    }

    /// Suspends the process: it neither answers nor disconnects.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Resumes the process.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Sends a command.
    pub async fn ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let client = Client::open(self.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await
    }

    /// Publishes these bytes on every channel with a subscriber; returns how many received them.
    pub async fn publish_raw(&self, bytes: &[u8]) -> usize {
        let client = Client::open(self.url()).expect("a valid URL");
        let connection = client.get_multiplexed_async_connection().await;
        let mut connection = connection.expect("Redis answers");
        let mut command = redis::cmd("PUBSUB");
        let channels: Vec<String> = command
            .arg("CHANNELS")
            .query_async(&mut connection)
            .await
            .expect("Redis answers");
        let mut n_received = 0;
        for channel in channels {
            let mut publish = redis::cmd("PUBLISH");
            let received: usize = publish
                .arg(channel)
                .arg(bytes)
                .query_async(&mut connection)
                .await
                .expect("Redis answers");
            n_received += received;
        }
        n_received
    }

    fn signal(&self, name: &str) {
        let pid = self.process.as_ref().expect("Redis is running").id();
        let status = Command::new("kill")
            .args([&format!("-{name}"), &pid.to_string()])
            .status();
        assert!(status.expect("kill can be started").success());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns a free port; nothing else on this machine binds to a fixed port of that range.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a bound socket").port()
}
