//! Headless Chromium browsers for the tests of this process. A start of Chromium costs more than
//! most tests do, so a test that ends leaves its browser, emptied, to a later test.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use thirtyfour::error::WebDriverResult;
use thirtyfour::{ChromeCapabilities, ChromiumLikeCapabilities, DesiredCapabilities, WebDriver};
use tokio::runtime::Builder;

use crate::support::http_client::{http_client, http_client_builder};
use crate::support::poll;

/// The browsers that no test uses at the moment.
static IDLE: Mutex<Vec<Browser>> = Mutex::new(Vec::new());

/// Chromium without the parts that draw a desktop window. Its pages are laid out and painted by the
/// same engine, with less processor time for a test.
const HEADLESS_SHELL: &str = "/usr/lib/chromium/chromium-headless-shell";

/// Runs chromedriver until standard input closes, which also happens when this process is killed;
/// then kills it with its browser, and deletes the folder in which it created the profile.
const SUPERVISOR: &str = r#"
set -m
TMPDIR="$2" CHROME_LOG_FILE="$2/log" chromedriver --port="$1" >/dev/null 2>&1 &
read -r _
kill -KILL -- "-$!"
wait
rm -rf "$2"
"#;

/// A Chromium with one window.
pub struct Browser {
    pub driver: WebDriver,
    /// The shell that runs [`SUPERVISOR`]; it holds the other end of its standard input.
    _supervisor: Child,
}

impl Browser {
    /// Returns a browser with an empty page and an empty profile.
    pub async fn take() -> Browser {
        let idle = lock_idle().pop();
        match idle {
            Some(browser) => browser,
            None => Browser::start().await,
        }
    }

    /// Closes the page, which showed content of `origin`, and returns the browser to the pool.
    pub fn release(self, origin: &str) {
        let origin = origin.to_owned();
        // The test and its runtime may end before the page is closed.
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("build a runtime");
            if runtime.block_on(self.clear(&origin)).is_ok() {
                lock_idle().push(self);
            }
        });
    }

    async fn start() -> Browser {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let (supervisor, address) = start_chromedriver(&folder.keep()).await;
        // Each test has its own runtime, and a pooled connection ends with its runtime.
        let client = http_client_builder().pool_max_idle_per_host(0).build();
        let driver = WebDriver::builder(address.as_str(), capabilities())
            .client(client.expect("build a client with its own root certificates"))
            .await
            .unwrap_or_else(|error| panic!("chromedriver did not open a browser: {error}"));
        Browser {
            driver,
            _supervisor: supervisor,
        }
    }

    /// Replaces the window, which drops all emulation, and deletes what pages have stored.
    async fn clear(&self, origin: &str) -> WebDriverResult<()> {
        let used = self.driver.windows().await?;
        let fresh = self.driver.new_window().await?;
        for window in used {
            self.driver.switch_to_window(window).await?;
            self.driver.close_window().await?;
        }
        self.driver.switch_to_window(fresh).await?;
        let cdp = self.driver.cdp();
        cdp.send_raw("Network.clearBrowserCookies", json!({}))
            .await?;
        cdp.send_raw("Network.clearBrowserCache", json!({})).await?;
        let stored = json!({"origin": origin, "storageTypes": "all"});
        cdp.send_raw("Storage.clearDataForOrigin", stored).await?;
        Ok(())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The session ends with its browser, which the supervisor kills.
        let _ = self.driver.clone().leak();
    }
}

fn lock_idle() -> MutexGuard<'static, Vec<Browser>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// chromedriver creates the profile itself, in its `TMPDIR`: with `--user-data-dir` the headless
/// shell opens no window, and chromedriver waits for one until it times out.
fn capabilities() -> ChromeCapabilities {
    let mut wanted = DesiredCapabilities::chrome();
    wanted
        .set_binary(HEADLESS_SHELL)
        .expect("a path is valid text");
    let arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        "--hide-scrollbars",
        "--lang=en-US",
        // The viewport: the headless shell draws no toolbar.
        "--window-size=1280,757",
    ];
    for argument in arguments {
        wanted.add_arg(argument).expect("an argument is valid text");
    }
    wanted
}

async fn start_chromedriver(folder: &Path) -> (Child, String) {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port();
    let supervisor = Command::new("bash")
        .args(["-c", SUPERVISOR, "bash", &port.to_string()])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash is on the PATH");
    let address = format!("http://127.0.0.1:{port}");
    let client = http_client();
    poll::until("chromedriver listens", async || {
        let status = client.get(format!("{address}/status")).send().await.ok()?;
        status.status().is_success().then_some(())
    })
    .await;
    (supervisor, address)
}
