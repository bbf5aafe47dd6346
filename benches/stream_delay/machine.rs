//! Starts the processes of a measurement, and measures the machine: its speed, and whether it had
//! other load.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

const RELAY_TO: &str = "BENCH_RELAY_TO";
/// Ticks of the kernel's clock in a second, on every Linux that we meet.
const TICKS_PER_SECOND: f64 = 100.0;
/// Cores that others may use in a round that counts as quiet.
const TOLERATED: f64 = 0.25;

/// Relays for ever, if this process is to be the bare relay: it copies bytes and does no more.
pub async fn relays() -> bool {
    let Ok(address) = std::env::var(RELAY_TO) else {
        return false;
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on http://{}", listener.local_addr().unwrap());
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(&address).await.unwrap();
        near.set_nodelay(true).unwrap();
        far.set_nodelay(true).unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
    }
}

/// A process that listens: the real binary, or the bare relay.
pub struct Process {
    child: Child,
    folder: Option<TempDir>,
    pub url: String,
    /// From its start until it answered.
    pub ready_after: Duration,
}

impl Process {
    /// The real binary in a folder of its own, which may hold a database already.
    pub fn server(folder: TempDir, slice_ms: &str, base_url: &str) -> Process {
        Process::server_with(folder, slice_ms, base_url, &[])
    }

    /// The same with more of the environment.
    pub fn server_with(
        folder: TempDir,
        slice_ms: &str,
        base_url: &str,
        env: &[(&str, &str)],
    ) -> Process {
        let mut command = on_the_first_core(Path::new(env!("CARGO_BIN_EXE_troupe")));
        command
            .envs(env.iter().copied())
            .env("TROUPE_BIND", "127.0.0.1:0")
            .env("TROUPE_LLM_BASE_URL", base_url)
            .env("TROUPE_LLM_MODEL", "scripted")
            .env("LIMIT_POSTS_PER_MINUTE", "0")
            .env("RESPONSES_RATE_PER_MINUTE", "0")
            .env("STREAM_SLICE_MS", slice_ms)
            .current_dir(folder.path());
        let began = Instant::now();
        let mut server = Process::start(command);
        while !is_ready(&server.url) {
            thread::sleep(Duration::from_millis(1));
        }
        server.ready_after = began.elapsed();
        server.folder = Some(folder);
        server
    }

    /// This program again, as the relay to a model.
    pub fn relay(base_url: &str) -> Process {
        let host = base_url.trim_start_matches("http://");
        Process::again(RELAY_TO, host.trim_end_matches("/v1"))
    }

    /// Starts this program again, with an argument that selects its part.
    pub fn again(name: &str, value: &str) -> Process {
        let mut command = on_the_first_core(&std::env::current_exe().unwrap());
        command.env(name, value);
        Process::start(command)
    }

    fn start(mut command: Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            let said = &line[line.find("http://")?..];
            said.split_whitespace().next().map(str::to_owned)
        });
        // What it says later is read and dropped, or it would wait for us one day.
        thread::spawn(move || lines.for_each(drop));
        Process {
            child,
            folder: None,
            url: url.unwrap(),
            ready_after: Duration::ZERO,
        }
    }

    /// Has it end in good order; answers its folder.
    pub fn send_away(mut self) -> TempDir {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
        self.folder.take().unwrap()
    }

    /// What of it is in memory.
    pub fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
        let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program with no settings of ours; on the first core, when `bin/bench` keeps this one off it.
fn on_the_first_core(program: &Path) -> Command {
    let is_pinned = std::env::var("BENCH_PINNED").is_ok();
    let mut command = Command::new(if is_pinned {
        Path::new("taskset")
    } else {
        program
    });
    command.env_clear();
    if is_pinned {
        command.args(["-c", "0"]).arg(program);
    }
    command
}

fn is_ready(url: &str) -> bool {
    let Ok(mut socket) = std::net::TcpStream::connect(url.trim_start_matches("http://")) else {
        return false;
    };
    let request = b"GET /readyz HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n";
    let mut answer = String::new();
    socket.write_all(request).is_ok()
        && socket.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

/// Prints how long fixed work lasts, and a write that reaches the disk.
pub fn calibrate() {
    let began = Instant::now();
    let mut number: u64 = 1;
    for _ in 0..20_000_000 {
        number = black_box(number.wrapping_mul(6_364_136_223_846_793_005) ^ (number >> 7));
    }
    let work = began.elapsed();
    let mut file = tempfile::tempfile().unwrap();
    let sync = |_| {
        let began = Instant::now();
        file.write_all(&[0; 4096]).unwrap();
        file.sync_all().unwrap();
        began.elapsed()
    };
    let mut syncs: Vec<Duration> = (0..31).map(sync).collect();
    syncs.sort();
    println!(
        "calibration: fixed work {work:.0?}, fsync {:.2?} (median)",
        syncs[15]
    );
}

/// Who else used the processors, round by round.
pub struct Quiet {
    ours: Vec<u32>,
    begun: (Instant, f64),
    foreign: Vec<f64>,
}

impl Quiet {
    /// Nothing is counted yet; these processes, and this one, are not foreign.
    pub fn new<const N: usize>(ours: [&Process; N]) -> Quiet {
        let ours = ours.map(|it| it.child.id()).into_iter();
        Quiet {
            ours: ours.chain([std::process::id()]).collect(),
            begun: (Instant::now(), 0.0),
            foreign: Vec::new(),
        }
    }

    pub fn begin(&mut self) {
        self.begun = (Instant::now(), self.foreign_seconds());
    }

    pub fn end(&mut self) {
        let (at, before) = self.begun;
        let cores = (self.foreign_seconds() - before) / at.elapsed().as_secs_f64();
        self.foreign.push(cores.max(0.0));
    }

    /// Whether the figures may be believed: most rounds were quiet.
    pub fn verdict(mut self) -> String {
        self.foreign.sort_by(f64::total_cmp);
        let n_rounds = self.foreign.len();
        let n_quiet = self.foreign.partition_point(|it| *it <= TOLERATED);
        let word = if n_quiet * 2 > n_rounds {
            "valid"
        } else {
            "no verdict"
        };
        let median = self.foreign[n_rounds / 2];
        format!(
            "{word}: {n_quiet} of {n_rounds} rounds were quiet, others used {median:.2} cores (median)"
        )
    }

    /// Seconds of processor time that others have used so far.
    fn foreign_seconds(&self) -> f64 {
        let all = fs::read_to_string("/proc/stat").unwrap();
        let fields: Vec<&str> = all.lines().next().unwrap().split_whitespace().collect();
        // user, nice, system, irq, softirq, steal: not idle, and not waiting for a disk.
        let busy = [1, 2, 3, 6, 7, 8].map(|at| fields[at].parse::<f64>().unwrap());
        let own: f64 = self.ours.iter().map(|pid| ticks_used_by(*pid)).sum();
        (busy.iter().sum::<f64>() - own) / TICKS_PER_SECOND
    }
}

fn ticks_used_by(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name of the program ends with the last bracket; it may hold anything.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    [11, 12]
        .map(|at| fields[at].parse::<f64>().unwrap())
        .iter()
        .sum()
}
