//! Tests of the language, English and Simplified Chinese: chosen before sign-in, in the settings,
//! and by the account.

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::support::http_client::{HttpClient, expect};
use crate::test_server::{SpaceFixture, TestServer, list, manual};

const CHINESE: &str = "[data-language=zh-CN]";
const ENGLISH: &str = "[data-language=en]";

/// Every visible or spoken text of the page with an English word, except texts and names of users
/// and models, and a few product names.
const ENGLISH_LEFT: &str = r#"(() => {
    const own = /\b(Troupe|AI|API|JSON|OpenAI|V[123]|v1|Token|HTTP|MCP|English|Ann|ann|Mina|Rook|Marlo|Wren|Harbor|Lights|The Lantern Inn|Demo|demo|scripted|environment|Ollama|YOUR_API_KEY|Responses|LM|Studio|llama|cpp|KoboldCpp|Ctrl|PNG|YAML|JSONL|CHARX|Backyard|SillyTavern|https?|\d+)\b/g
    const found = []
    const judge = (text, node) => {
        if (/[A-Za-z]{2,}/.test(text.replace(own, ""))) found.push(`${text.trim()} (${node.tagName}.${node.className})`)
    }
    const isSaid = (node) => node.closest("bdi, #announcer, .message__body, .card__detail, .block__text, .example__code, option, script, noscript, svg")
    for (const node of document.querySelectorAll("body *")) {
        if (isSaid(node)) continue
        for (const name of ["aria-label", "title", "placeholder", "alt"]) judge(node.getAttribute(name) ?? "", node)
        for (const child of node.childNodes) if (child.nodeType === Node.TEXT_NODE) judge(child.data, node)
    }
    judge(document.title, document.documentElement)
    return found
})()"#;

/// Elements that are wider than the screen, or cut off without an ellipsis.
const TOO_WIDE: &str = r#"[...document.querySelectorAll("body *")]
    .filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.closest(".visually-hidden, svg, [inert], .timeline__inner pre"))
    .filter((it) => it.getBoundingClientRect().right > innerWidth + 1 || (it.matches("button, a, h1, h2, label, p") && getComputedStyle(it).overflowX !== "hidden" && it.scrollWidth > it.clientWidth + 1 && it.clientWidth > 0))
    .map((it) => it.outerHTML.slice(0, 120))"#;

/// A space whose user Ann has selected Chinese.
async fn chinese_space(test_server: &TestServer, columns: Value, names: &[&str]) -> SpaceFixture {
    let test_space = test_server.create_space(columns, names).await;
    let body = json!({"locale": "zh-CN"});
    expect(200, test_space.ann.patch("/api/users/me", body).await);
    test_space
}

async fn locale_of(person: &HttpClient) -> Value {
    let session = expect(200, person.get("/api/session").await);
    session["user"]["locale"].clone()
}

/// Sets the languages that the browser requests.
async fn set_languages(page: &Page, languages: &str) {
    let agent = page.value("navigator.userAgent").await;
    let body = json!({"userAgent": agent, "acceptLanguage": languages});
    page.cdp("Network.setUserAgentOverride", body).await;
}

async fn speaks(page: &Page, tag: &str) {
    page.truth(
        &format!("the page speaks {tag}"),
        &format!(
            "document.documentElement.lang === '{tag}' && document.documentElement.dir === 'ltr'"
        ),
    )
    .await;
}

/// Waits for animations to end, then checks that nothing is too wide.
async fn fits(page: &Page, place: &str) {
    page.truth(
        "no animation is running",
        "document.getAnimations().every((it) => it.playState !== 'running')",
    )
    .await;
    assert_eq!(page.value(TOO_WIDE).await, json!([]), "{place}");
}

async fn is_all_chinese(page: &Page, place: &str) {
    assert_eq!(page.value(ENGLISH_LEFT).await, json!([]), "in {place}");
}

#[tokio::test]
async fn a_language_change_applies_at_once_and_loses_nothing() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("Good evening.").await;
    let page = test_space.page().await;
    speaks(&page, "en").await;
    page.see_text(".divider", "Today").await;
    page.write(FIELD, "half a thou").await;

    page.click(".sidebar__me").await;
    page.click_text("[role=menuitem]", "Profile").await;
    page.click(CHINESE).await;
    page.see_text(".settings__title", "语言").await;
    speaks(&page, "zh-CN").await;
    page.run("history.back()").await;

    page.see_text(".divider", "今天").await;
    page.truth(
        "the draft is kept",
        &format!("document.querySelector('{FIELD}').value === 'half a thou'"),
    )
    .await;
    let title = "document.querySelector('.message__time').title";
    page.truth(
        "times are Chinese",
        &format!(r"/^\d{{4}}年\d+月\d+日星期/.test({title})"),
    )
    .await;
    page.truth("the title is Chinese", "document.title.includes('主线 · ')")
        .await;
    assert_eq!(locale_of(&test_space.ann).await, json!("zh-CN"));
    page.reload().await;
    page.see_text(".divider", "今天").await;
}

#[tokio::test]
async fn the_account_language_applies_on_another_device() {
    let test_server = TestServer::open().await;
    let test_space = chinese_space(&test_server, manual(), &["Mina"]).await;

    let other_device = test_space.page().await;

    speaks(&other_device, "zh-CN").await;
    other_device.see_text(".queue", "轮到你了").await;
    let fetched = "performance.getEntriesByType('resource').some((it) => it.name.endsWith('-strings-zh-CN.js'))";
    assert_eq!(other_device.value(fetched).await, json!(true));
    expect(
        200,
        test_space
            .ann
            .patch("/api/users/me", json!({"locale": "en"}))
            .await,
    );
    other_device.reload().await;
    other_device.see_text(".queue", "Your turn").await;
    speaks(&other_device, "en").await;
    assert_eq!(other_device.value(fetched).await, json!(false));
}

#[tokio::test]
async fn the_first_account_gets_the_language_of_its_browser() {
    let test_server = TestServer::demo().await;
    let page = test_server.visitor().await;
    set_languages(&page, "zh-CN,zh,en").await;

    page.go("/").await;
    page.see_text("h1", "欢迎来到 Troupe").await;
    speaks(&page, "zh-CN").await;
    is_all_chinese(&page, "set-up").await;
    page.write("[name=display_name]", "小安").await;
    page.rewrite("[name=username]", "a").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;
    page.see_text(".field__error", "用户名需为 2 到 32 个")
        .await;
    page.rewrite("[name=username]", "ann").await;
    page.click("button[type=submit]").await;
    page.see(".message").await;

    speaks(&page, "zh-CN").await;
    let ann = HttpClient::sign_in(&test_server.server.url(), "ann").await;
    assert_eq!(locale_of(&ann).await, json!("zh-CN"));
}

#[tokio::test]
async fn a_language_change_on_the_sign_in_page_keeps_typed_text() {
    let test_server = TestServer::open().await;
    let ann = HttpClient::set_up(&test_server.server.url(), "ann").await;
    let page = test_server.visitor().await;
    page.go("/").await;
    page.see_text("h1", "Welcome back").await;
    page.write("[name=username]", "ann").await;

    page.click(CHINESE).await;
    page.see_text("h1", "欢迎回来").await;
    speaks(&page, "zh-CN").await;
    is_all_chinese(&page, "sign-in").await;
    assert_eq!(page.focus().await, "choice");
    let username = "document.querySelector('[name=username]').value";
    assert_eq!(page.value(username).await, json!("ann"));
    page.reload().await;
    page.see_text("h1", "欢迎回来").await;
    page.click(ENGLISH).await;
    page.see_text("h1", "Welcome back").await;
    page.click(CHINESE).await;
    page.see_text("h1", "欢迎回来").await;
    page.write("[name=username]", "ann").await;
    page.write("[name=password]", "not my password").await;
    page.write("[name=password]", Key::Enter).await;
    page.see_text("[role=alert]", "用户名或密码错误").await;
    page.write("[name=password]", "correct horse battery").await;
    page.write("[name=password]", Key::Enter).await;
    page.see(".message").await;

    page.truth(
        "the account has the language too",
        "fetch('/api/session').then((it) => it.json()).then(({ user }) => user.locale === 'zh-CN')",
    )
    .await;
    assert_eq!(locale_of(&ann).await, json!("zh-CN"));
}

#[tokio::test]
async fn no_text_is_left_in_english() {
    let test_server = TestServer::open().await;
    let test_space = chinese_space(&test_server, list(), &["Mina", "Rook"]).await;
    let page = test_space.page().await;
    page.send_message("你好").await;
    page.answered_by("Mina").await;

    is_all_chinese(&page, "the room").await;
    page.click("#panel-tab-cast").await;
    page.click(".member__button").await;
    page.see_text(".member__details", "发言频率").await;
    is_all_chinese(&page, "the cast").await;
    page.click("#panel-tab-runs").await;
    page.click(".run summary").await;
    page.see_text(".run__facts", "角色阵容顺序中的下一个").await;
    is_all_chinese(&page, "the runs").await;
    page.click_text("#panel button", "查看").await;
    page.see_text("dialog", "主要提示词").await;
    is_all_chinese(&page, "the prompt").await;
    page.press(Key::Escape).await;
    page.click("#panel-tab-settings").await;
    page.see_text("#panel", "群聊发言顺序").await;
    is_all_chinese(&page, "the settings of the space").await;
    for (opener, place) in [
        ("#sidebar .icon-button[aria-label='新建空间']", "新建空间"),
        ("#sidebar .sidebar-item__add", "新建对话"),
    ] {
        page.click(opener).await;
        page.see_text("dialog h2", place).await;
        is_all_chinese(&page, place).await;
        page.press(Key::Escape).await;
        page.gone("dialog").await;
    }
    page.click("#panel-tab-cast").await;
    page.click("#panel [aria-label='添加角色']").await;
    for way in ["导入角色卡", "我的角色", "编写"] {
        page.click_text("dialog .choice", way).await;
        is_all_chinese(&page, way).await;
    }
    page.press(Key::Escape).await;
    page.click(".main__head [aria-haspopup=menu]").await;
    page.see("[role=menu]").await;
    is_all_chinese(&page, "the menu").await;
    page.press(Key::Escape).await;
    for part in ["profile", "keys", "models"] {
        page.go(&format!("/settings/{part}")).await;
        page.see(".settings__card").await;
        page.see("#sidebar .sidebar__me").await;
        is_all_chinese(&page, part).await;
    }
    page.click_text(".settings button", "连接模型").await;
    page.see("dialog [name=base_url]").await;
    is_all_chinese(&page, "connect a model").await;
}

#[tokio::test]
async fn chinese_fits_on_a_phone() {
    let test_server = TestServer::open().await;
    let test_space = chinese_space(&test_server, list(), &["Mina", "Rook"]).await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.see_text(".queue", "轮到你了").await;

    fits(&page, "the room").await;
    page.click(".main__head [aria-controls=panel]").await;
    for tab in ["runs", "settings", "cast"] {
        page.click(&format!("#panel-tab-{tab}")).await;
        fits(&page, tab).await;
    }
    for part in ["profile", "keys", "models"] {
        page.go(&format!("/settings/{part}")).await;
        page.see(".settings__card").await;
        fits(&page, part).await;
    }
}

#[tokio::test]
async fn the_enter_that_selects_an_ime_candidate_sends_nothing() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.see(FIELD).await;

    compose(&page, "ni hao").await;
    enter(&page).await;
    page.cdp("Input.insertText", json!({"text": "你好"})).await;
    page.truth(
        "the field contains the selected text",
        &format!("document.querySelector('{FIELD}').value === '你好'"),
    )
    .await;
    assert_eq!(test_space.texts().await, Vec::<String>::new());
    enter(&page).await;
    page.see_text(".message[data-state=final]", "你好").await;
    page.press(Key::Up).await;
    page.see(".message__edit textarea").await;
    compose(&page, "a").await;
    enter(&page).await;
    page.cdp("Input.insertText", json!({"text": "啊"})).await;

    page.truth(
        "the message is still being edited",
        "document.querySelector('.message__edit textarea').value === '你好啊'",
    )
    .await;
    assert_eq!(test_space.texts().await, ["你好"]);
}

/// Begins an IME composition with these letters.
async fn compose(page: &Page, letters: &str) {
    let n = letters.len();
    let composition = json!({"text": letters, "selectionStart": n, "selectionEnd": n});
    page.cdp("Input.imeSetComposition", composition).await;
}

async fn enter(page: &Page) {
    for kind in ["rawKeyDown", "keyUp"] {
        let key =
            json!({"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13});
        page.cdp("Input.dispatchKeyEvent", key).await;
    }
}

/// Safari ends the composition before it reports the key that ended it, and marks the key instead.
#[tokio::test]
async fn an_enter_that_safari_marks_as_part_of_a_composition_sends_nothing() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.write(FIELD, "你好").await;

    let was_taken = page
        .value(&format!(
            "!document.querySelector('{FIELD}').dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }}))"
        ))
        .await;

    assert_eq!(was_taken, json!(false));
    assert_eq!(page.n(".message").await, 0);
}
