//! A browser with one open page, and the actions and queries that tests perform on it.
//!
//! **Invariant:** nothing waits for time. Every `see`, `gone` and `truth` waits for a fact in the
//! page and fails at a deadline.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use thirtyfour::{Key, TypingData, WebDriver, WebElement};

use crate::browser::Browser;
use crate::support::poll;

/// The deadline for a fact in the page.
const DEADLINE: Duration = Duration::from_secs(20);

/// The composer's text field.
pub const FIELD: &str = ".composer__field";

/// The kind of device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Viewport {
    /// 1280×800, with a mouse and a keyboard.
    Desktop,
    /// 390×844, with a touch screen.
    Phone,
}

/// A browser whose profile no other test has used.
pub struct Page {
    /// `None` only while this value is dropped.
    browser: Option<Browser>,
    base: String,
}

/// Whether no animation that ends moves the element `it` or what contains it.
const AT_REST: &str = "!document.getAnimations().some((a) => a.playState === 'running' && a.effect?.target?.contains(it) && a.effect.getComputedTiming().endTime !== Infinity)";

/// The address, the size, and the text of the page with the content of its fields.
const SHOWN_TEXT: &str = "[location.pathname, `${innerWidth}x${innerHeight}`, ...[...document.querySelectorAll('textarea, input')].map((it) => `${it.name}: ${it.value}`), document.body.innerText].join('\\n')";

impl Page {
    /// Opens an empty page of a fresh browser.
    pub async fn open(base: &str, screen: Viewport) -> Page {
        let page = Page {
            browser: Some(Browser::take().await),
            base: base.to_owned(),
        };
        page.set_viewport(screen).await;
        page
    }

    fn driver(&self) -> &WebDriver {
        &self
            .browser
            .as_ref()
            .expect("the page is not dropped yet")
            .driver
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

    /// Sets the size of the window, and whether it is that of a phone.
    pub async fn resize(&self, width: u32, height: u32, is_mobile: bool) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_mobile});
        self.cdp("Emulation.setDeviceMetricsOverride", metrics)
            .await;
    }

    /// Sets a session cookie: `troupe_session=…`.
    pub async fn set_cookie(&self, cookie: &str) {
        let (name, value) = cookie
            .split_once('=')
            .expect("a cookie has a name and a value");
        let cookie = json!({"name": name, "value": value, "url": self.base, "httpOnly": true});
        self.cdp("Network.setCookie", cookie).await;
    }

    // Navigation

    pub async fn go(&self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.driver()
            .goto(&url)
            .await
            .unwrap_or_else(|error| panic!("{url} did not open: {error}"));
    }

    pub async fn reload(&self) {
        self.driver().refresh().await.expect("reload the page");
    }

    /// Disconnects the browser from the network, or connects it again.
    pub async fn offline(&self, is_offline: bool) {
        self.cdp("Network.enable", json!({})).await;
        let conditions = json!({"offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.cdp("Network.emulateNetworkConditions", conditions)
            .await;
    }

    // Queries

    /// Waits until an element is present and visible.
    pub async fn see(&self, css: &str) -> WebElement {
        self.see_text(css, "").await
    }

    /// Waits until a matching element with this text is visible.
    pub async fn see_text(&self, css: &str, text: &str) -> WebElement {
        let what = format!("{css} that says {text:?}");
        self.wait(&what, async || self.find(css, text).await).await
    }

    /// Polls until `probe` returns a value. At the deadline, panics with what the page shows.
    async fn wait<T>(&self, what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
        if let Some(found) = poll::find_within(DEADLINE, probe).await {
            return found;
        }
        let shown = self.try_value(SHOWN_TEXT).await.unwrap_or_default();
        let shown = shown
            .as_str()
            .unwrap_or("nothing: the browser does not answer");
        panic!("timed out after {DEADLINE:?}: {what}. The page shows:\n{shown}");
    }

    // Searches once, in one script, so that the element cannot be replaced in between.
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
        let found = self.driver().execute(script, Vec::new()).await.ok()?;
        found.element().ok()
    }

    /// Waits until no matching element is visible.
    pub async fn gone(&self, css: &str) {
        let is_gone = format!(
            "[...document.querySelectorAll({})].every((it) => !it.checkVisibility({{ visibilityProperty: true }}))",
            json!(css)
        );
        self.truth(&format!("{css} is gone"), &is_gone).await;
    }

    /// Waits until an expression in the page is true.
    pub async fn truth(&self, what: &str, expression: &str) {
        self.wait(what, async || {
            let found = self.try_value(expression).await;
            (found == Some(Value::Bool(true))).then_some(())
        })
        .await;
    }

    /// Returns the number of matching elements.
    pub async fn n(&self, css: &str) -> u64 {
        let expression = format!("document.querySelectorAll({}).length", json!(css));
        self.value(&expression)
            .await
            .as_u64()
            .expect("a length is a number")
    }

    /// Returns the texts of the matching elements, in order.
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

    /// Returns the value of an expression in the page.
    pub async fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}")).await
    }

    /// Runs a script in the page.
    pub async fn run(&self, script: &str) -> Value {
        let ret = self.driver().execute(script, Vec::new()).await;
        ret.unwrap_or_else(|error| panic!("{script}: {error}"))
            .json()
            .clone()
    }

    // A script fails while the page is being replaced.
    async fn try_value(&self, expression: &str) -> Option<Value> {
        let script = format!("return {expression}");
        let ret = self.driver().execute(script, Vec::new()).await.ok()?;
        Some(ret.json().clone())
    }

    // Actions

    pub async fn click(&self, css: &str) {
        self.click_text(css, "").await;
    }

    /// Clicks the element with this text as soon as it exists, is enabled, not covered and does not
    /// move: a click on a sliding drawer would hit another element.
    pub async fn click_text(&self, css: &str, text: &str) {
        let what = format!("{css} that says {text:?} and can be clicked");
        self.wait(&what, async || {
            let node = self.find_where(css, text, AT_REST).await?;
            let is_enabled = node.is_enabled().await.unwrap_or(false);
            (is_enabled && node.click().await.is_ok()).then_some(())
        })
        .await;
    }

    /// Types into a field, after its present text.
    pub async fn write(&self, css: &str, keys: impl Into<TypingData>) {
        let field = self.see(css).await;
        field
            .send_keys(keys)
            .await
            .unwrap_or_else(|error| panic!("cannot type into {css}: {error}"));
    }

    /// Clears a field and types into it.
    pub async fn rewrite(&self, css: &str, text: &str) {
        let field = self.see(css).await;
        field.clear().await.expect("clear the field");
        field.send_keys(text).await.expect("type into the field");
    }

    /// Presses keys in the focused element.
    pub async fn press(&self, keys: impl Into<TypingData>) {
        let keys: TypingData = keys.into();
        let focused = self.driver().active_element().await;
        let focused = focused.expect("an element has the focus");
        focused
            .send_keys(keys)
            .await
            .expect("send keys to the focused element");
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

    /// Pastes a file into the field of the composer.
    pub async fn paste_file(&self, name: &str, media_type: &str, bytes: &[u8]) {
        let script = format!(
            "const transfer = new DataTransfer()
             const bytes = Uint8Array.from(atob({}), (it) => it.charCodeAt(0))
             transfer.items.add(new File([bytes], {}, {{ type: {} }}))
             document.querySelector('{FIELD}').dispatchEvent(
               new ClipboardEvent('paste', {{ bubbles: true, cancelable: true, clipboardData: transfer }}))",
            json!(BASE64_STANDARD.encode(bytes)),
            json!(name),
            json!(media_type)
        );
        self.run(&script).await;
    }

    pub async fn cdp(&self, method: &str, params: Value) -> Value {
        let answer = self.driver().cdp().send_raw(method, params).await;
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Returns a screenshot as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        let picture = self.driver().screenshot_as_png().await;
        picture.expect("take a screenshot")
    }

    // Queries of many tests

    /// Waits until the newest message is finished and its author has this name; returns its text.
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

    /// Returns the accessible name of the focused element.
    pub async fn focus(&self) -> String {
        let name = "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.dataset.act ?? document.activeElement.className)";
        let name = self.value(name).await;
        name.as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let browser = self.browser.take();
        // A browser in an unknown state ends with its test.
        if let Some(browser) = browser
            && !std::thread::panicking()
        {
            browser.release(&self.base);
        }
    }
}
