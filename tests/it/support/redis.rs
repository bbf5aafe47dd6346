//! A Redis of one test: started on a free port, stopped, frozen and continued.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use redis::Client;
use tempfile::TempDir;

use crate::support::poll;

/// A private `redis-server`. It goes with this value.
pub struct RedisServer {
    port: u16,
    folder: TempDir,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts one and waits until it answers.
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
        let mut process = self.process.take().expect("it runs");
        process.kill().expect("our own child can be killed");
        process.wait().expect("our own child can be waited for");
    }

    /// Starts it again, on the same port, empty.
    pub async fn start_again(&mut self) {
        let process = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed: bin/test does that");
        self.process = Some(process);
        poll::until("Redis answers", async || {
            self.ask(&["PING"]).await.ok().map(drop)
        })
        .await;
    }

    /// It neither answers nor hangs up.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Resumes the stopped process.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Sends it a command.
    pub async fn ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let client = Client::open(self.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await
    }

    /// Publishes these bytes on every channel with a subscriber. Returns how many received them.
    pub async fn publish_raw(&self, bytes: &[u8]) -> usize {
        let client = Client::open(self.url()).expect("an address");
        let connection = client.get_multiplexed_async_connection().await;
        let mut connection = connection.expect("Redis answers");
        let mut ask = redis::cmd("PUBSUB");
        let channels: Vec<String> = ask
            .arg("CHANNELS")
            .query_async(&mut connection)
            .await
            .expect("Redis answers");
        let mut n_heard = 0;
        for channel in channels {
            let mut publish = redis::cmd("PUBLISH");
            let heard: usize = publish
                .arg(channel)
                .arg(bytes)
                .query_async(&mut connection)
                .await
                .expect("Redis answers");
            n_heard += heard;
        }
        n_heard
    }

    fn signal(&self, name: &str) {
        let pid = self.process.as_ref().expect("it runs").id();
        let status = Command::new("kill")
            .args([&format!("-{name}"), &pid.to_string()])
            .status();
        assert!(status.expect("there is kill").success());
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

/// Given back at once: nothing else of this machine asks for a certain port of that range.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a bound socket").port()
}
