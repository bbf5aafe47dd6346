//! Measures the first screen on a phone with a slow connection: 390×844, 150 ms, 1.6 Mbit/s, in
//! headless Chromium against the real binary. Prints requests, bytes, first contentful paint and
//! layout shifts of a first and of a second visit, with their goals. Needs
//! `chromium-headless-shell` and `chromedriver`. With `BENCH_DETAILS` set, it lists every request.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/browser/browser.rs"]
mod browser;
#[path = "stream_delay/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "../tests/browser/page.rs"]
#[allow(dead_code)]
mod page;
#[path = "../tests/browser/page_load.rs"]
mod page_load;
#[path = "../tests/browser/support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;
#[path = "../tests/browser/test_server.rs"]
#[allow(dead_code)]
mod test_server;

use crate::page_load::{PageLoad, create_conversation, slow_phone, visit};
use crate::support::fake_provider::server::FakeProvider;
use crate::test_server::TestServer;

const VISITS: usize = 5;

#[tokio::main]
async fn main() {
    let test_server = TestServer::with(FakeProvider::start().await, &[]).await;
    let fixture = create_conversation(&test_server).await;
    let [mut cold, mut warm] = [Vec::new(), Vec::new()];
    for _ in 0..VISITS {
        // Each is an empty browser.
        let page = slow_phone(&fixture).await;
        cold.push(visit(&page, &fixture).await);
        warm.push(visit(&page, &fixture).await);
    }
    if std::env::var_os("BENCH_DETAILS").is_some() {
        for load in [&cold[0], &warm[0]] {
            println!("{:#?}", load.names);
        }
    }
    println!("\nfirst screen, phone on slow 4G, {VISITS} visits          worst   goal");
    let worst =
        |loads: &[PageLoad], of: fn(&PageLoad) -> f64| loads.iter().map(of).fold(0.0, f64::max);
    let requests = |it: &PageLoad| it.requests as f64;
    let files = |it: &PageLoad| it.files as f64;
    let bytes = |it: &PageLoad| it.bytes as f64 / 1_000.0;
    let shifts = |it: &PageLoad| it.shifts;
    let thumbnail = |it: &PageLoad| {
        it.thumbnails
            .iter()
            .max()
            .map_or(0.0, |it| *it as f64 / 1_000.0)
    };
    for (what, value, goal) in [
        ("first visit: requests", worst(&cold, requests), 15.0),
        ("first visit: kB", worst(&cold, bytes), 200.0),
        (
            "first visit: first contentful paint, ms (median)",
            median_paint(&cold),
            1_500.0,
        ),
        ("first visit: layout shift", worst(&cold, shifts), 0.1),
        (
            "first visit: largest thumbnail, kB",
            worst(&cold, thumbnail),
            15.0,
        ),
        (
            "next visit: requests for files of the page",
            worst(&warm, files),
            3.0,
        ),
        ("next visit: all requests", worst(&warm, requests), 15.0),
        ("next visit: kB", worst(&warm, bytes), 200.0),
        (
            "next visit: first contentful paint, ms (median)",
            median_paint(&warm),
            1_500.0,
        ),
        ("next visit: layout shift", worst(&warm, shifts), 0.1),
    ] {
        let verdict = if value <= goal { "met" } else { "missed" };
        println!("{what:<50} {value:>9.2} {goal:>6}   {verdict}");
    }
}

fn median_paint(loads: &[PageLoad]) -> f64 {
    machine::median(loads.iter().map(|it| it.first_paint_ms))
}
