//! Starts the processes of a measurement, measures the machine (its speed, and whether it had other
//! load), and computes medians.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

const RELAY_TO: &str = "BENCH_RELAY_TO";
/// Ticks of the kernel's clock per second on Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// The number of cores that other processes may use in a valid round.
const MAX_OTHER_CORES: f64 = 0.25;

/// Copies bytes forever if this process is the bare relay; otherwise returns `false`.
pub async fn relay_if_selected() -> bool {
    let Ok(address) = std::env::var(RELAY_TO) else {
        return false;
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on http://{}", listener.local_addr().unwrap());
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut upstream = TcpStream::connect(&address).await.unwrap();
        client.set_nodelay(true).unwrap();
        upstream.set_nodelay(true).unwrap();
        tokio::spawn(
            async move { tokio::io::copy_bidirectional(&mut client, &mut upstream).await },
        );
    }
}

/// A server process: the real binary, the bare relay, the pass-through or the bare writes.
pub struct Process {
    child: Child,
    folder: Option<TempDir>,
    pub url: String,
    /// The time from its start until it was ready.
    pub ready_after: Duration,
}

impl Process {
    /// Starts the real binary in this folder, which may contain a database. `BENCH_SERVER` is the
    /// path of another build to measure.
    pub fn server(folder: TempDir, slice_ms: &str, base_url: &str) -> Process {
        Process::server_with(folder, slice_ms, base_url, &[])
    }

    /// Like `server`, with additional environment variables.
    pub fn server_with(
        folder: TempDir,
        slice_ms: &str,
        base_url: &str,
        env: &[(&str, &str)],
    ) -> Process {
        let built = env!("CARGO_BIN_EXE_troupe").to_owned();
        let program = std::env::var("BENCH_SERVER").unwrap_or(built);
        let mut command = on_the_first_core(Path::new(&program));
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

    /// Starts this program as the relay to a model.
    pub fn relay(base_url: &str) -> Process {
        let host = base_url.trim_start_matches("http://");
        Process::start_self(RELAY_TO, host.trim_end_matches("/v1"))
    }

    /// Starts this program with an environment variable that selects its role.
    pub fn start_self(name: &str, value: &str) -> Process {
        let mut command = on_the_first_core(&std::env::current_exe().unwrap());
        command.env(name, value);
        Process::start(command)
    }

    fn start(mut command: Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            let url = &line[line.find("http://")?..];
            url.split_whitespace().next().map(str::to_owned)
        });
        // The later output is read and dropped, because a full pipe would block the process.
        thread::spawn(move || lines.for_each(drop));
        Process {
            child,
            folder: None,
            url: url.unwrap(),
            ready_after: Duration::ZERO,
        }
    }

    /// Shuts the process down and returns its folder.
    pub fn stop(mut self) -> TempDir {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
        self.folder.take().unwrap()
    }

    /// The resident memory of the process.
    pub fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
        let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024.0
    }

    /// The processor time that the process has used so far, in steps of 10 ms. Includes threads that
    /// have ended.
    pub fn cpu_time(&self) -> CpuTime {
        let seconds = ticks_used_by(self.child.id()) / TICKS_PER_SECOND;
        CpuTime((seconds * 1e9) as u64)
    }
}

/// Processor time.
#[derive(Default)]
pub struct CpuTime(u64);

impl CpuTime {
    /// The processor time of the running children of a process, such as the connections of
    /// PostgreSQL.
    pub fn of_children(parent: u32) -> CpuTime {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        let children = pids.filter(|it| parent_of(*it) == Some(parent));
        CpuTime(children.map(cpu_ns_of).sum())
    }

    /// Returns the difference in milliseconds.
    pub fn ms_since(&self, before: &CpuTime) -> f64 {
        self.0.saturating_sub(before.0) as f64 / 1e6
    }
}

/// Returns the parent of a running process.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name ends with the last bracket.
    let after_name = stat.rsplit(')').next()?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// The processor time of the living threads of a process, in nanoseconds; 0 after its end.
fn cpu_ns_of(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let of_task = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.filter_map(of_task).sum()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command without our environment, pinned to the first core if `bin/bench` pins this process to
/// another one.
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

/// Prints the durations of a fixed amount of work and of a write with `fsync`.
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

/// Returns the median of these figures, which must not be empty.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The processor use of other processes in each round.
pub struct LoadMeter {
    ours: Vec<u32>,
    started: (Instant, f64),
    other_cores: Vec<f64>,
}

impl LoadMeter {
    /// Excludes these processes and this one from the measurement.
    pub fn new<const N: usize>(ours: [&Process; N]) -> LoadMeter {
        let ours = ours.map(|it| it.child.id()).into_iter();
        LoadMeter {
            ours: ours.chain([std::process::id()]).collect(),
            started: (Instant::now(), 0.0),
            other_cores: Vec::new(),
        }
    }

    pub fn begin(&mut self) {
        self.started = (Instant::now(), self.other_seconds());
    }

    pub fn end(&mut self) {
        let (at, before) = self.started;
        let cores = (self.other_seconds() - before) / at.elapsed().as_secs_f64();
        self.other_cores.push(cores.max(0.0));
    }

    /// Whether the results are valid: most rounds were without much other load.
    pub fn verdict(mut self) -> String {
        self.other_cores.sort_by(f64::total_cmp);
        let n_rounds = self.other_cores.len();
        let n_valid = self
            .other_cores
            .partition_point(|it| *it <= MAX_OTHER_CORES);
        let verdict = if n_valid * 2 > n_rounds {
            "valid"
        } else {
            "not valid"
        };
        let median = self.other_cores[n_rounds / 2];
        format!(
            "{verdict}: {n_valid} of {n_rounds} rounds without other load, other processes used {median:.2} cores (median)"
        )
    }

    /// The processor time that other processes have used so far, in seconds.
    fn other_seconds(&self) -> f64 {
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
    // The program name ends with the last bracket and may itself contain brackets and spaces.
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
