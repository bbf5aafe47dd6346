//! A server process: its environment, its signals and its exit.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::{fs, thread};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::support::backends::TestDatabase;
use crate::support::http_client::{CHEAP_HASH_KIB, http_client};
use crate::support::poll;
use crate::support::ports::lasting_port;

/// A server process. It keeps its folder, port and settings through restarts.
pub struct Server {
    /// The working directory, which contains the data directory; removed on drop.
    folder: TempDir,
    env: Vec<(String, String)>,
    port: u16,
    /// The maximum number of open files; `None`: the limit of the test process.
    pub max_files: Option<usize>,
    process: Option<Child>,
    output: Output,
    /// Whether SIGXFSZ is ignored, so that writes beyond the file size limit fail with an error.
    survives_file_limit: bool,
}

/// The output of the process, including earlier starts.
#[derive(Clone, Default)]
struct Output {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Output {
    fn follow(&self, stream: impl Read + Send + 'static) {
        let output = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                output.lines.lock().push(line);
            }
        });
    }

    fn tail(&self, n: usize) -> String {
        let lines = self.lines.lock();
        lines[lines.len().saturating_sub(n)..].join("\n")
    }
}

impl Server {
    /// Starts a server on a database of the test, and waits until it is ready.
    pub async fn start(database: &TestDatabase, env: &[(&str, &str)]) -> Server {
        let mut server = Server::prepare(database, env);
        server.launch().await;
        server.wait_ready().await;
        server
    }

    /// Configures a server without starting it, for tests of the start itself.
    pub fn prepare(database: &TestDatabase, env: &[(&str, &str)]) -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = lasting_port();
        let mut all = vec![
            ("TROUPE_BIND".to_owned(), format!("127.0.0.1:{port}")),
            (
                "TROUPE_DATA_DIR".to_owned(),
                folder.path().join("data").display().to_string(),
            ),
            ("DATABASE_URL".to_owned(), database.url().to_owned()),
            ("TROUPE_SECRET_KEY".to_owned(), "5e".repeat(32)),
            ("LIMIT_POSTS_PER_MINUTE".to_owned(), "0".to_owned()),
            ("LIMIT_LOGIN_FAILURES".to_owned(), "0".to_owned()),
            ("LIMIT_REGISTRATIONS_PER_HOUR".to_owned(), "0".to_owned()),
            ("LOG_FORMAT".to_owned(), "pretty".to_owned()),
            ("RUST_LOG".to_owned(), "info".to_owned()),
            ("PASSWORD_HASH_KIB".to_owned(), CHEAP_HASH_KIB.to_owned()),
        ];
        all.extend(
            env.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Server {
            folder,
            env: all,
            port,
            max_files: None,
            process: None,
            output: Output::default(),
            survives_file_limit: false,
        }
    }

    /// Configures a server as in the README: an empty folder, and no setting except the address.
    pub fn fresh() -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = lasting_port();
        Server {
            folder,
            env: vec![("TROUPE_BIND".to_owned(), format!("127.0.0.1:{port}"))],
            port,
            max_files: None,
            process: None,
            output: Output::default(),
            survives_file_limit: false,
        }
    }

    /// Starts the process and waits for the line with its address.
    pub async fn launch(&mut self) {
        let n_earlier_lines = self.output.lines.lock().len();
        self.spawn();
        let address = poll::until("the server logs its address", async || {
            if let Some(exit) = self.exited() {
                panic!(
                    "the server exited at its start: {exit}\n{}",
                    self.output.tail(40)
                );
            }
            let lines = self.output.lines.lock();
            lines[n_earlier_lines..]
                .iter()
                .find_map(|line| address_in(line))
        })
        .await;
        assert_eq!(
            address,
            self.url(),
            "the server listens on the configured address"
        );
    }

    /// Starts the process without waiting.
    pub fn spawn(&mut self) {
        assert!(self.process.is_none(), "the server is already running");
        fs::create_dir_all(self.folder.path()).expect("the folder can be created");
        let binary = env!("CARGO_BIN_EXE_troupe");
        let mut command = if self.survives_file_limit {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' XFSZ; exec \"$0\"", binary]);
            shell
        } else if let Some(n) = self.max_files {
            // prlimit execs the server, which keeps the process id.
            let mut limited = Command::new("/usr/bin/prlimit");
            limited.arg(format!("--nofile={n}:{n}")).arg(binary);
            limited
        } else {
            Command::new(binary)
        };
        command
            .env_clear()
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command
            .spawn()
            .expect("the binary under test can be started");
        self.output
            .follow(process.stdout.take().expect("the output is piped"));
        self.output
            .follow(process.stderr.take().expect("the output is piped"));
        self.process = Some(process);
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server is running").id()
    }

    /// Waits until `/readyz` answers 200.
    pub async fn wait_ready(&mut self) {
        let client = http_client();
        let url = format!("{}/readyz", self.url());
        poll::until("the server is ready", async || {
            if let Some(exit) = self.exited() {
                panic!(
                    "the server exited before it was ready: {exit}\n{}",
                    self.output.tail(40)
                );
            }
            client
                .get(&url)
                .send()
                .await
                .ok()
                .filter(|answer| answer.status() == 200)
                .map(|_| ())
        })
        .await;
    }

    /// Returns the base URL, which restarts do not change.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the working directory.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Changes a setting for the next start.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Returns all output so far.
    pub fn output(&self) -> String {
        self.output.tail(usize::MAX)
    }

    /// `kill -9`: no destructors, no drain.
    pub fn kill9(&mut self) {
        let mut process = self.process.take().expect("the server is running");
        process.kill().expect("the server can be killed");
        process.wait().expect("the server can be waited for");
    }

    /// Requests a graceful shutdown.
    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    /// Suspends the process.
    pub fn sigstop(&self) {
        self.signal("STOP");
    }

    /// Resumes the process.
    pub fn sigcont(&self) {
        self.signal("CONT");
    }

    /// Returns the resident memory in KiB.
    pub fn memory_kib(&self) -> u64 {
        let pid = self.process.as_ref().expect("the server is running").id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("/proc is readable");
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
        let number = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
        number.expect("VmRSS is a number")
    }

    /// Restarts the server such that [`Server::limit_files`] makes its writes fail.
    pub async fn restart_with_file_limit(&mut self) {
        self.kill9();
        self.survives_file_limit = true;
        self.restart().await;
    }

    /// Sets the maximum file size in bytes; larger writes fail with an I/O error.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let pid = self.process.as_ref().expect("the server is running").id();
        let soft = bytes.map_or("unlimited".to_owned(), |it| it.to_string());
        let status = Command::new("prlimit")
            .args([
                "--pid",
                &pid.to_string(),
                &format!("--fsize={soft}:unlimited"),
            ])
            .status();
        assert!(status.expect("prlimit can be started").success());
    }

    fn signal(&self, name: &str) {
        let pid = self.process.as_ref().expect("the server is running").id();
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{name} {pid}")])
            .status();
        assert!(
            status.expect("sh can be started").success(),
            "SIG{name} could not be sent"
        );
    }

    /// Returns the exit status if the process has exited.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.process
            .as_mut()
            .and_then(|process| process.try_wait().expect("the exit status is available"))
    }

    /// Waits until the process exits, after `sigterm`.
    pub async fn wait_exit(&mut self) -> ExitStatus {
        let exit = poll::until("the exit of the server", async || self.exited()).await;
        self.process = None;
        exit
    }

    /// Starts the process again with the same folder, port and settings.
    pub async fn restart(&mut self) {
        self.launch().await;
        self.wait_ready().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if thread::panicking() {
            eprintln!(
                "---- last output of the server on port {} ----\n{}\n----",
                self.port,
                self.output.tail(60)
            );
        }
    }
}

/// Returns the address in a line of the log, as text or as JSON.
fn address_in(line: &str) -> Option<String> {
    let from = line.find("listening on http://")? + "listening on ".len();
    let address: String = line[from..]
        .chars()
        .take_while(|sign| sign.is_ascii_graphic() && *sign != '"' && *sign != '\u{1b}')
        .collect();
    Some(address.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::address_in;

    #[test]
    fn the_address_is_found_in_text_and_in_json() {
        let wanted = Some("http://127.0.0.1:8080".to_owned());

        assert_eq!(
            address_in("INFO listening on http://127.0.0.1:8080"),
            wanted
        );
        assert_eq!(
            address_in("{\"message\":\"listening on http://127.0.0.1:8080\",\"n\":1}"),
            wanted
        );
        assert_eq!(address_in("INFO listening on \u{1b}[1mhttp"), None);
        assert_eq!(address_in("starting"), None);
    }
}
