//! Measures what a phone with a slow connection loads until a conversation is usable: requests,
//! bytes, first paint and layout shifts. Used by a test and by `benches/first_paint.rs`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::support::file_uploads::bring;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

/// Slow 4G, as browsers emulate it.
const LATENCY_MS: u32 = 150;
const BYTES_PER_SECOND: u32 = 1_600_000 / 8;
/// The characters, each with a picture and a greeting.
const NAMES: [&str; 3] = ["Mina", "Jonas", "Ada"];
const N_MESSAGES: usize = 27;

/// Sums the layout shifts of the page from its start.
const WATCH_SHIFTS: &str = "window.shifts = 0; \
    new PerformanceObserver((list) => list.getEntries().forEach((it) => { if (!it.hadRecentInput) window.shifts += it.value })) \
    .observe({ type: 'layout-shift', buffered: true })";

/// Whether the newest messages and the thumbnails of the characters are shown, and nothing has been
/// loaded for a second.
const IS_COMPLETE: &str = "document.querySelectorAll('.message').length >= 20 \
    && [...document.querySelectorAll('.message .avatar__image')].some((it) => it.naturalWidth > 0) \
    && performance.now() - Math.max(...performance.getEntriesByType('resource').map((it) => it.responseEnd)) > 1000";

/// What was loaded until a pause of 1.5 s, from the entries of the browser. The socket has none. The
/// page loads what the first screen does not show after a pause of two seconds.
const LOADED: &str = "const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    entries.sort((one, other) => one.startTime - other.startTime)
    const endBefore = (index) => Math.max(0, ...entries.slice(0, index).map((it) => it.responseEnd))
    const pause = entries.findIndex((it, index) => it.startTime - endBefore(index) > 1500)
    const all = pause < 0 ? entries : entries.slice(0, pause)
    const isApi = (it) => new URL(it.name).pathname.startsWith('/api/')
    const sent = all.filter((it) => it.transferSize > 0)
    return {
        requests: sent.length + 1,
        files: sent.filter((it) => !isApi(it)).length,
        bytes: sent.reduce((sum, it) => sum + it.transferSize, 0),
        thumbnails: sent.filter((it) => it.name.includes('/avatar')).map((it) => it.encodedBodySize),
        first_paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1,
        shifts: window.shifts,
        names: all.map((it) => `${it.transferSize} ${Math.round(it.responseEnd)} ms ${it.name}`),
    }";

/// What one visit of the conversation loaded.
#[derive(Debug)]
pub struct PageLoad {
    /// All requests, with the socket.
    pub requests: u64,
    /// The requests for files of the client.
    pub files: u64,
    /// The bytes of all responses, with their headers.
    pub bytes: u64,
    /// The bytes of each thumbnail.
    pub thumbnails: Vec<u64>,
    /// The first contentful paint, in ms.
    pub first_paint_ms: f64,
    /// The cumulative layout shift.
    pub shifts: f64,
    /// Each request with its bytes and the time of its end.
    pub names: Vec<String>,
}

/// Creates a conversation with three characters, whose pictures are large, and thirty messages.
pub async fn create_conversation(test_server: &TestServer) -> SpaceFixture {
    let fixture = test_server.create_space(manual(), &[]).await;
    let space = expect(200, fixture.ann.get("/api/spaces").await);
    let space = space["data"]
        .as_array()
        .and_then(|all| {
            all.iter()
                .find(|it| it["root_conversation_id"] == fixture.conversation)
        })
        .expect("the space of the conversation");
    for (number, name) in NAMES.into_iter().enumerate() {
        let file = card_with_picture(name, number);
        let import = "/api/characters/import";
        let made = expect(201, bring(&fixture.ann, import, "card.png", &file).await);
        fixture.ann.add_character(space, &made["character"]).await;
    }
    for number in 0..N_MESSAGES {
        fixture
            .post(&format!(
                "Message {number} of a long evening at the harbor."
            ))
            .await;
    }
    fixture
}

/// Opens an empty phone with a slow connection, signed in as Ann.
pub async fn slow_phone(fixture: &SpaceFixture) -> Page {
    let page = Page::open(fixture.ann.base(), Viewport::Phone).await;
    page.set_cookie(fixture.ann.cookie()).await;
    page.cdp("Network.enable", json!({})).await;
    let conditions = json!({
        "offline": false,
        "latency": LATENCY_MS,
        "downloadThroughput": BYTES_PER_SECOND,
        "uploadThroughput": BYTES_PER_SECOND,
    });
    page.cdp("Network.emulateNetworkConditions", conditions)
        .await;
    page.cdp(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": WATCH_SHIFTS}),
    )
    .await;
    page
}

/// Opens the conversation and returns what was loaded until it was complete.
pub async fn visit(page: &Page, fixture: &SpaceFixture) -> PageLoad {
    page.go(&fixture.path()).await;
    page.truth("the conversation is complete", IS_COMPLETE)
        .await;
    let found = page.run(LOADED).await;
    let count = |name: &str| found[name].as_u64().expect("a count");
    let list = |name: &str| found[name].as_array().cloned().expect("a list");
    PageLoad {
        requests: count("requests"),
        files: count("files"),
        bytes: count("bytes"),
        thumbnails: list("thumbnails")
            .iter()
            .filter_map(Value::as_u64)
            .collect(),
        first_paint_ms: found["first_paint"].as_f64().expect("a time"),
        shifts: found["shifts"].as_f64().expect("a sum"),
        names: list("names")
            .iter()
            .map(|it| it.as_str().unwrap_or_default().to_owned())
            .collect(),
    }
}

/// A card in a picture of the size that people share.
fn card_with_picture(name: &str, number: usize) -> Vec<u8> {
    let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": name, "description": "Keeps the harbor.", "personality": "", "scenario": "",
        "first_mes": "Good evening. The lamps are lit.", "mes_example": "", "creator_notes": "",
        "system_prompt": "", "post_history_instructions": "", "alternate_greetings": [], "tags": [],
        "creator": "", "character_version": "", "extensions": {},
    }});
    let (width, height) = (600_u32, 900_u32);
    // Waves with a little noise are about as hard to compress as a painting.
    let mut noise = 1_u32;
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let grain = f64::from(noise >> 29);
            for channel in 0..3_u32 {
                let scale = 40.0 + f64::from(channel * 17) + number as f64 * 9.0;
                let wave = (f64::from(x) / scale).sin() + (f64::from(y) / (scale + 30.0)).cos();
                pixels.push((120.0 + 50.0 * wave + grain) as u8);
            }
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let text = BASE64_STANDARD.encode(card.to_string());
    encoder
        .add_text_chunk("chara".to_owned(), text)
        .expect("add the card");
    let mut writer = encoder.write_header().expect("write the header");
    writer.write_image_data(&pixels).expect("write the pixels");
    writer.finish().expect("finish the file");
    bytes
}
