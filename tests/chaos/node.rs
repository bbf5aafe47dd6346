//! One server process of the chaos run: killed, stopped and started again, always on the same port.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use parking_lot::Mutex;
use reqwest::Client;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::support::http_client::http_client;
use crate::support::ports::lasting_port;

/// The limit for one start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// One server. Dropping it kills it.
pub struct Node {
    pub index: usize,
    pub url: String,
    folder: TempDir,
    env: Vec<(String, String)>,
    http: Client,
    process: Mutex<Option<Child>>,
    output: Arc<Mutex<Output>>,
}

/// The parts of its output that the run evaluates.
#[derive(Default)]
struct Output {
    worker: String,
    lines: Vec<String>,
    panics: Vec<String>,
}

impl Node {
    /// Returns a node that is not started yet.
    pub fn new(index: usize, mut env: Vec<(String, String)>) -> Node {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let bind = format!("127.0.0.1:{}", lasting_port());
        env.push(("TROUPE_BIND".to_owned(), bind.clone()));
        let data = folder.path().join("data").display().to_string();
        env.push(("TROUPE_DATA_DIR".to_owned(), data));
        Node {
            index,
            url: format!("http://{bind}"),
            folder,
            env,
            http: http_client(),
            process: Mutex::default(),
            output: Arc::default(),
        }
    }

    /// Starts it, repeatedly while a shared service is unavailable; returns whether it is ready.
    pub async fn start(&self) -> bool {
        let end = Instant::now() + START_TIMEOUT;
        while Instant::now() < end {
            if self.is_gone() {
                self.spawn();
            }
            if self.is_ready().await {
                return true;
            }
            sleep(Duration::from_millis(50)).await;
        }
        false
    }

    /// Whether it responds that it is ready.
    pub async fn is_ready(&self) -> bool {
        let asked = self.http.get(format!("{}/readyz", self.url)).send();
        let answer = timeout(Duration::from_secs(1), asked).await;
        answer.is_ok_and(|it| it.is_ok_and(|it| it.status() == 200))
    }

    /// Starts the process without waiting.
    pub fn spawn(&self) {
        // Started by a shell that ignores SIGXFSZ, so that a write beyond the limit of file sizes
        // fails instead of ending the process.
        let mut command = Command::new("sh");
        let binary = env!("CARGO_BIN_EXE_troupe");
        command.args(["-c", "trap '' XFSZ; exec \"$0\"", binary]);
        command.env_clear().current_dir(self.folder.path());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start the server binary");
        follow(&self.output, child.stdout.take());
        follow(&self.output, child.stderr.take());
        *self.process.lock() = Some(child);
    }

    /// The worker name under which it claims runs.
    pub fn worker(&self) -> String {
        self.output.lock().worker.clone()
    }

    /// `kill -9`.
    pub fn kill(&self) {
        if let Some(mut child) = self.process.lock().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Whether the process has ended.
    pub fn is_gone(&self) -> bool {
        let mut process = self.process.lock();
        let ended = process
            .as_mut()
            .is_none_or(|it| it.try_wait().is_ok_and(|it| it.is_some()));
        if ended {
            *process = None;
        }
        ended
    }

    /// Whether the process is stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        let Some(pid) = self.pid() else { return false };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|it| it.trim_start().starts_with('T'))
    }

    /// Sends a signal: STOP, CONT or TERM.
    pub fn signal(&self, name: &str) {
        if let Some(pid) = self.pid() {
            let mut kill = Command::new("kill");
            let _ = kill.args([format!("-{name}"), pid.to_string()]).status();
        }
    }

    /// The size to which its files may grow, in bytes; larger writes fail with an I/O error.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let Some(pid) = self.pid() else { return };
        let soft = bytes.map_or("unlimited".to_owned(), |it| it.to_string());
        let limit = format!("--fsize={soft}:unlimited");
        let _ = Command::new("prlimit")
            .args(["--pid", &pid.to_string(), &limit])
            .status();
    }

    /// The id of its process, if it is running.
    pub fn pid(&self) -> Option<u32> {
        self.process.lock().as_ref().map(Child::id)
    }

    /// Sets the action of one of its fail points.
    pub fn arm(&self, fail_point: &str, action: &str) {
        let mut process = self.process.lock();
        let stdin = process.as_mut().and_then(|it| it.stdin.as_mut());
        if let Some(stdin) = stdin {
            // The write fails if the process has ended.
            let _ = writeln!(stdin, "{fail_point}={action}");
        }
    }

    /// Places where the code panicked without a fail point.
    pub fn panics(&self) -> Vec<String> {
        self.output.lock().panics.clone()
    }

    /// The last `n` lines of its output.
    pub fn tail(&self, n: usize) -> String {
        let output = self.output.lock();
        output.lines[output.lines.len().saturating_sub(n)..].join("\n")
    }

    /// Writes its output to a file of this folder.
    pub fn write_log(&self, folder: &std::path::Path) {
        let file = folder.join(format!("node-{}.log", self.index));
        let _ = fs::write(file, self.output.lock().lines.join("\n"));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn follow(output: &Arc<Mutex<Output>>, stream: Option<impl Read + Send + 'static>) {
    let (output, stream) = (Arc::clone(output), stream.expect("its output is piped"));
    thread::spawn(move || {
        let mut panicked = false;
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut output = output.lock();
            if let Some(worker) = worker_in(&line) {
                output.worker = worker;
            }
            // A panic prints its location in one line and its message in the next.
            if panicked && !line.contains("failpoint") {
                let location = output.lines.last().cloned().unwrap_or_default();
                output.panics.push(format!("{location} {line}"));
            }
            panicked = line.contains("panicked at") && !line.contains("fail-0.5");
            output.lines.push(line);
        }
    });
}

/// The name of the node in the log line with its address.
fn worker_in(line: &str) -> Option<String> {
    let line: String = without_colors(line);
    line.find("listening on http://")?;
    let from = line.find("node-")?;
    let name = line[from..].chars();
    Some(
        name.take_while(|it| it.is_ascii_alphanumeric() || *it == '-')
            .collect(),
    )
}

fn without_colors(line: &str) -> String {
    let mut plain = String::new();
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        if sign == '\u{1b}' {
            signs.by_ref().find(|it| *it == 'm');
        } else {
            plain.push(sign);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::worker_in;

    #[test]
    fn the_worker_name_is_read_from_the_log() {
        let line =
            "INFO troupe: listening on http://127.0.0.1:1 \u{1b}[3mnode.id\u{1b}[0m=\"node-01a1b\"";

        assert_eq!(worker_in(line), Some("node-01a1b".to_owned()));
        assert_eq!(worker_in("WARN run was abandoned by node-01a1b"), None);
    }
}
