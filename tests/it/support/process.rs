//! A server process: its environment, its signals and its exit.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::{fs, thread};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::support::backends::TestDatabase;
use crate::support::http_client::http_client;
use crate::support::poll;
use crate::support::ports::lasting_port;

/// One server of a test. It keeps its folder, its port and its settings through restarts.
pub struct Server {
    /// Where it works and keeps its data; removed at the end.
    folder: TempDir,
    env: Vec<(String, String)>,
    port: u16,
    /// How many files it may have open; `None`: as many as this test.
    pub max_files: Option<usize>,
    process: Option<Child>,
    output: Output,
    /// Whether a write beyond the limit of file sizes is an error and not the end of the process.
    survives_file_limit: bool,
}

/// What the process has said so far, over all its lives.
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

    /// Everything but the start: for tests of the start itself.
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

    /// As the README starts it: in an empty folder, with no setting but where to listen.
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
        let said_before = self.output.lines.lock().len();
        self.spawn();
        let address = poll::until("the server says where it listens", async || {
            if let Some(exit) = self.exited() {
                panic!(
                    "the server ended at its start: {exit}\n{}",
                    self.output.tail(40)
                );
            }
            let said = self.output.lines.lock();
            said[said_before..].iter().find_map(|line| address_in(line))
        })
        .await;
        assert_eq!(address, self.url(), "it listens where it was told to");
    }

    /// Starts the process and waits for nothing.
    pub fn spawn(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        fs::create_dir_all(self.folder.path()).expect("the folder of the server is ours");
        let binary = env!("CARGO_BIN_EXE_troupe");
        let mut command = if self.survives_file_limit {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' XFSZ; exec \"$0\"", binary]);
            shell
        } else if let Some(n) = self.max_files {
            // It replaces itself by the server, which keeps its id.
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
            .follow(process.stdout.take().expect("its output is ours"));
        self.output
            .follow(process.stderr.take().expect("its output is ours"));
        self.process = Some(process);
    }

    /// The id of the process that runs.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    /// Waits until `/readyz` answers 200.
    pub async fn wait_ready(&mut self) {
        let client = http_client();
        let url = format!("{}/readyz", self.url());
        poll::until("the server is ready", async || {
            if let Some(exit) = self.exited() {
                panic!(
                    "the server ended before it was ready: {exit}\n{}",
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

    /// Where it listens, also through restarts.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its working folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A setting for the next start.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Everything it said so far.
    pub fn output(&self) -> String {
        self.output.tail(usize::MAX)
    }

    /// `kill -9`: no destructor, no drain, no last word.
    pub fn kill9(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().expect("our own child can be killed");
        process.wait().expect("our own child can be waited for");
    }

    /// Asks it to drain and leave.
    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    /// Stops its clock: it neither runs nor dies.
    pub fn sigstop(&self) {
        self.signal("STOP");
    }

    /// Lets it go on where it stood.
    pub fn sigcont(&self) {
        self.signal("CONT");
    }

    /// How much memory it has now, as the system counts it, in KiB.
    pub fn memory_kib(&self) -> u64 {
        let pid = self.process.as_ref().expect("it runs").id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs on Linux");
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
        let number = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
        number.expect("the system tells a number")
    }

    /// Starts it so that [`Server::limit_files`] makes its writes fail.
    pub async fn restart_with_file_limit(&mut self) {
        self.kill9();
        self.survives_file_limit = true;
        self.restart().await;
    }

    /// The size to which files may grow, in bytes; larger writes fail with an I/O error.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let pid = self.process.as_ref().expect("it runs").id();
        let soft = bytes.map_or("unlimited".to_owned(), |it| it.to_string());
        let status = Command::new("prlimit")
            .args([
                "--pid",
                &pid.to_string(),
                &format!("--fsize={soft}:unlimited"),
            ])
            .status();
        assert!(status.expect("prlimit is there").success());
    }

    fn signal(&self, name: &str) {
        let pid = self.process.as_ref().expect("it runs").id();
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{name} {pid}")])
            .status();
        assert!(
            status.expect("sh is there").success(),
            "SIG{name} reaches the server"
        );
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.process
            .as_mut()
            .and_then(|process| process.try_wait().expect("our own child can be asked"))
    }

    /// Waits for its own end, after `sigterm`.
    pub async fn wait_exit(&mut self) -> ExitStatus {
        let exit = poll::until("the server leaves", async || self.exited()).await;
        self.process = None;
        exit
    }

    /// Starts it again: same folder, same port, same settings.
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
                "---- the server on port {} said last ----\n{}\n----",
                self.port,
                self.output.tail(60)
            );
        }
    }
}

/// The address in a line of the log, as text or as JSON.
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
