//! A browser with one open page, and the actions and queries that tests perform on it.
//!
//! **Invariant:** nothing waits for time. Every `see`, `gone` and `truth` waits for a fact in the
//! page and fails at a deadline.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{
    ChromeCapabilities, ChromiumLikeCapabilities, DesiredCapabilities, Key, TypingData, WebDriver,
    WebElement,
};

use crate::support::http_client::http_client;
use crate::support::poll;

/// A fact that has not come by then will not come.
const DEADLINE: Duration = Duration::from_secs(20);

/// Where one types.
pub const FIELD: &str = ".composer__field";

/// What one holds in one's hands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Viewport {
    /// 1280×800, a pointer and a keyboard.
    Desktop,
    /// 390×844, fingers.
    Phone,
}

/// A browser; it ends with this value, also when the test panics.
pub struct Page {
    driver: WebDriver,
    /// chromedriver, the leader of a process group that holds its browsers.
    chromedriver: Child,
    base: String,
    _profile: TempDir,
}

/// Whether no animation that ends moves the element `it` or what contains it.
const AT_REST: &str = "!document.getAnimations().some((a) => a.playState === 'running' && a.effect?.target?.contains(it) && a.effect.getComputedTiming().endTime !== Infinity)";

impl Page {
    /// Opens an empty page of a fresh browser.
    pub async fn open(base: &str, screen: Viewport) -> Page {
        let profile = tempfile::tempdir().expect("a temporary folder can be made");
        let (chromedriver, address) = start_chromedriver().await;
        let driver = WebDriver::builder(address.as_str(), capabilities(&profile))
            .client(http_client())
            .await
            .unwrap_or_else(|error| panic!("chromedriver opens no browser: {error}"));
        let page = Page {
            driver,
            chromedriver,
            base: base.to_owned(),
            _profile: profile,
        };
        page.set_viewport(screen).await;
        page
    }

    async fn set_viewport(&self, screen: Viewport) {
        match screen {
            Viewport::Desktop => self.resize(1280, 800, false).await,
            Viewport::Phone => {
                self.resize(390, 844, true).await;
                self.cdp(
                    "Emulation.setTouchEmulationEnabled",
                    json!({"enabled": true}),
                )
                .await;
            }
        }
    }

    /// The size of the window, and whether it is a phone's.
    pub async fn resize(&self, width: u32, height: u32, is_mobile: bool) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_mobile});
        self.cdp("Emulation.setDeviceMetricsOverride", metrics)
            .await;
    }

    /// Brings a session along: `troupe_session=…`.
    pub async fn set_cookie(&self, cookie: &str) {
        let (name, value) = cookie.split_once('=').expect("a cookie has a name");
        let cookie = json!({"name": name, "value": value, "url": self.base, "httpOnly": true});
        self.cdp("Network.setCookie", cookie).await;
    }

    // Going

    pub async fn go(&self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.driver
            .goto(&url)
            .await
            .unwrap_or_else(|error| panic!("{url} does not open: {error}"));
    }

    pub async fn reload(&self) {
        self.driver
            .refresh()
            .await
            .expect("the page can be reloaded");
    }

    /// Cuts the browser off from the network, or brings it back.
    pub async fn offline(&self, is_offline: bool) {
        self.cdp("Network.enable", json!({})).await;
        let conditions = json!({"offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.cdp("Network.emulateNetworkConditions", conditions)
            .await;
    }

    // Seeing

    /// Waits until it is there and visible.
    pub async fn see(&self, css: &str) -> WebElement {
        self.see_text(css, "").await
    }

    /// Waits until one of them is visible and says this.
    pub async fn see_text(&self, css: &str, text: &str) -> WebElement {
        let what = format!("{css} that says {text:?}");
        poll::until_within(DEADLINE, &what, async || self.find(css, text).await).await
    }

    // Looks once, and in one step: what is found cannot have been replaced in between.
    async fn find(&self, css: &str, text: &str) -> Option<WebElement> {
        self.find_where(css, text, "true").await
    }

    // `condition` is an expression about the element `it`.
    async fn find_where(&self, css: &str, text: &str, condition: &str) -> Option<WebElement> {
        let script = format!(
            "return [...document.querySelectorAll({})].find((it) => it.checkVisibility({{ visibilityProperty: true }}) && it.innerText.includes({}) && {condition}) ?? null",
            json!(css),
            json!(text)
        );
        let found = self.driver.execute(script, Vec::new()).await.ok()?;
        found.element().ok()
    }

    /// Waits until there is none that can be seen.
    pub async fn gone(&self, css: &str) {
        let is_gone = format!(
            "[...document.querySelectorAll({})].every((it) => !it.checkVisibility({{ visibilityProperty: true }}))",
            json!(css)
        );
        self.truth(&format!("{css} is gone"), &is_gone).await;
    }

    /// Waits until an expression in the page is true.
    pub async fn truth(&self, what: &str, expression: &str) {
        poll::until_within(DEADLINE, what, async || {
            let found = self.try_value(expression).await;
            (found == Some(Value::Bool(true))).then_some(())
        })
        .await;
    }

    /// How many there are.
    pub async fn n(&self, css: &str) -> u64 {
        let expression = format!("document.querySelectorAll({}).length", json!(css));
        self.value(&expression)
            .await
            .as_u64()
            .expect("a length is a number")
    }

    /// What they say, in order.
    pub async fn texts(&self, css: &str) -> Vec<String> {
        let expression = format!(
            "[...document.querySelectorAll({})].map((it) => it.innerText)",
            json!(css)
        );
        let texts = self.value(&expression).await;
        let texts = texts.as_array().expect("a list of texts");
        texts
            .iter()
            .map(|it| it.as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The value of an expression in the page.
    pub async fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}")).await
    }

    /// Runs a script in the page.
    pub async fn run(&self, script: &str) -> Value {
        let ret = self.driver.execute(script, Vec::new()).await;
        ret.unwrap_or_else(|error| panic!("{script}: {error}"))
            .json()
            .clone()
    }

    // While a page is being replaced, a script has nowhere to run.
    async fn try_value(&self, expression: &str) -> Option<Value> {
        let script = format!("return {expression}");
        let ret = self.driver.execute(script, Vec::new()).await.ok()?;
        Some(ret.json().clone())
    }

    // Doing

    pub async fn click(&self, css: &str) {
        self.click_text(css, "").await;
    }

    /// Clicks the element with this text as soon as it exists, is enabled, not covered and does not
    /// move: a click on a drawer that still slides would hit another element.
    pub async fn click_text(&self, css: &str, text: &str) {
        let what = format!("{css} that says {text:?} and can be clicked");
        poll::until_within(DEADLINE, &what, async || {
            let node = self.find_where(css, text, AT_REST).await?;
            let is_enabled = node.is_enabled().await.unwrap_or(false);
            (is_enabled && node.click().await.is_ok()).then_some(())
        })
        .await;
    }

    /// Writes into a field, after what stands there.
    pub async fn write(&self, css: &str, keys: impl Into<TypingData>) {
        let field = self.see(css).await;
        field
            .send_keys(keys)
            .await
            .unwrap_or_else(|error| panic!("{css} takes no text: {error}"));
    }

    /// Empties a field and writes into it.
    pub async fn rewrite(&self, css: &str, text: &str) {
        let field = self.see(css).await;
        field.clear().await.expect("a field can be emptied");
        field.send_keys(text).await.expect("a field takes text");
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: impl Into<TypingData>) {
        let keys: TypingData = keys.into();
        let focused = self.driver.active_element().await;
        let focused = focused.expect("something has the focus");
        focused.send_keys(keys).await.expect("it takes keys");
    }

    /// Writes a message and sends it.
    pub async fn send_message(&self, text: &str) {
        self.write(FIELD, text).await;
        self.write(FIELD, Key::Enter).await;
    }

    /// Drops a file in the middle of the page.
    pub async fn drop_file(&self, name: &str, bytes: &[u8]) {
        let script = format!(
            "const transfer = new DataTransfer()
             transfer.items.add(new File([Uint8Array.from(atob({}), (it) => it.charCodeAt(0))], {}))
             const target = document.elementFromPoint(innerWidth / 2, innerHeight / 2)
             for (const type of ['dragenter', 'dragover', 'drop'])
               target.dispatchEvent(new DragEvent(type, {{ bubbles: true, cancelable: true, dataTransfer: transfer }}))",
            json!(BASE64_STANDARD.encode(bytes)),
            json!(name)
        );
        self.run(&script).await;
    }

    pub async fn cdp(&self, method: &str, params: Value) -> Value {
        let answer = self.driver.cdp().send_raw(method, params).await;
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// What the page looks like, as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        let picture = self.driver.screenshot_as_png().await;
        picture.expect("the page can be shot")
    }

    // DatabaseFacts that many tests ask for

    /// Waits until the newest message is this one's, and finished. Gives its text.
    pub async fn answered_by(&self, name: &str) -> String {
        let last = "[...document.querySelectorAll('.message')].at(-1)";
        let author = "[...document.querySelectorAll('.message__author')].at(-1)?.innerText";
        let is_done = format!(
            "{last}?.dataset.state === 'final' && {author} === {} && !{last}.classList.contains('message--own')",
            json!(name)
        );
        self.truth(&format!("{name} has answered"), &is_done).await;
        let text = self
            .value(&format!("{last}.querySelector('.message__body').innerText"))
            .await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// What has the focus, as the page would describe it.
    pub async fn focus(&self) -> String {
        let name = "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.dataset.act ?? document.activeElement.className)";
        let name = self.value(name).await;
        name.as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // The browsers are children of chromedriver: the whole group goes.
        let group = format!("kill -KILL -{}", self.chromedriver.id());
        let _ = Command::new("sh").args(["-c", &group]).status();
        let _ = self.chromedriver.wait();
        // No session exists that could be closed.
        let _ = self.driver.clone().leak();
    }
}

fn capabilities(profile: &TempDir) -> ChromeCapabilities {
    let mut wanted = DesiredCapabilities::chrome();
    let folder = format!("--user-data-dir={}", profile.path().display());
    let arguments = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        "--hide-scrollbars",
        "--lang=en-US",
        "--window-size=1280,900",
        folder.as_str(),
    ];
    for argument in arguments {
        wanted.add_arg(argument).expect("an argument is text");
    }
    wanted
}

async fn start_chromedriver() -> (Child, String) {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port();
    let child = Command::new("chromedriver")
        .arg(format!("--port={port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("chromedriver is on the PATH");
    let address = format!("http://127.0.0.1:{port}");
    let client = http_client();
    poll::until("chromedriver listens", async || {
        let status = client.get(format!("{address}/status")).send().await.ok()?;
        status.status().is_success().then_some(())
    })
    .await;
    (child, address)
}
