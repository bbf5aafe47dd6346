//! Several people in one room: what one does is seen by the others, and everybody sees what is theirs
//! to do.

use serde_json::Value;
use serde_json::json;

use crate::house::House;
use crate::house::Room;
use crate::house::manual;
use crate::page::Page;
use crate::page::Screen;
use crate::support::person::Person;
use crate::support::person::expect;
use crate::support::person::id;
use crate::support::upstream::server::Upstream;

/// Ann's room with Mina and Rook in it, and Bob, who has a seat there too.
struct Company {
    house: House,
    room: Room,
    bob: Person,
    space: i64,
    /// Bob's membership.
    seat: i64,
}

impl Company {
    /// Bob sits there in this role.
    async fn with(role: &str) -> Company {
        let upstream = Upstream::start().await;
        let url = upstream.base_url();
        let env = [
            ("TROUPE_LLM_BASE_URL", url.as_str()),
            ("TROUPE_LLM_MODEL", "scripted"),
            ("TROUPE_OPEN_REGISTRATION", "true"),
        ];
        let house = House::with(upstream, &env).await;
        let room = house.room(manual(), &["Mina", "Rook"]).await;
        let bob = Person::register(&house.server.url(), "bob").await;
        let space = room.cast[0]["space_id"].as_i64().expect("a number");
        let user = expect(200, bob.get("/api/session").await)["user"]["id"].clone();
        let path = format!("/api/spaces/{space}/memberships");
        let body = json!({"user_id": user, "role": role});
        let seat = id(&expect(201, room.ann.post(&path, body).await));
        Company {
            house,
            room,
            bob,
            space,
            seat,
        }
    }

    /// Bob's browser, in the conversation.
    async fn bobs_page(&self) -> Page {
        page_of(&self.bob, &self.room.path()).await
    }

    /// Ann changes Bob's seat.
    async fn change_bob(&self, change: Value) {
        let path = format!("/api/memberships/{}", self.seat);
        expect(200, self.room.ann.patch(&path, change).await);
    }

    /// One more conversation of the space.
    async fn conversation(&self, title: &str) -> i64 {
        let path = format!("/api/spaces/{}/conversations", self.space);
        let body = json!({"title": title});
        id(&expect(201, self.room.ann.post(&path, body).await))
    }
}

/// A person's browser at an address.
async fn page_of(person: &Person, path: &str) -> Page {
    let page = Page::open(person.base(), Screen::Desktop).await;
    page.carry(person.cookie()).await;
    page.go(path).await;
    page.see("#rail").await;
    page
}

#[tokio::test]
async fn c44_who_becomes_a_guest_loses_the_buttons_at_once() {
    let company = Company::with("member").await;
    let page = company.bobs_page().await;
    page.see(".queue [aria-label='Let Mina speak']").await;
    page.see_text("#rail", "New conversation").await;

    company.change_bob(json!({"role": "guest"})).await;

    page.gone(".queue [aria-label='Let Mina speak']").await;
    page.gone(".place__add").await;
    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    page.click_text("[role=tab]", "Prompt").await;
    page.see_text("#panel", "Runs").await;
    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    page.click_text("[role=tab]", "Settings").await;
    page.see_text("#panel", "Only moderators").await;
    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    let refused = company.bob.generate(company.room.conversation, None).await;
    assert_eq!(refused.0, 403, "{}", refused.1);
}

/// Buttons that would be answered with 403.
const FORBIDDEN_TO_GUESTS: &str = "[...document.querySelectorAll('button')]
    .filter((it) => it.checkVisibility({ visibilityProperty: true }))
    .map((it) => it.getAttribute('aria-label') ?? it.innerText)
    .filter((it) => /^(Let |Anyone|New conversation|Invite|Add a character|Pause|Resume|Skip|Retry|Stop|Save|Show|Mute|Remove)/.test(it))";

#[tokio::test]
async fn c44_a_guest_stops_nobody_and_writes_their_own() {
    let company = Company::with("guest").await;
    company.house.upstream.say("One two three four five.");
    let gate = company.house.upstream.gate();
    let page = company.bobs_page().await;
    company
        .room
        .ann
        .generate(
            company.room.conversation,
            company.room.cast[0]["id"].as_i64(),
        )
        .await;
    gate.step();
    page.see(".message[data-state=streaming]").await;

    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    gate.open();
    page.answered_by("Mina").await;
    page.say("I only look").await;
    page.see_text(".message[data-state=final]", "I only look")
        .await;
}

#[tokio::test]
async fn c75_who_is_removed_is_told_and_has_a_way_on() {
    let company = Company::with("member").await;
    company.bob.create_space("Bob's Barn", manual()).await;
    let page = company.bobs_page().await;
    page.see_text("#rail", "Harbor Lights").await;

    let path = format!("/api/memberships/{}", company.seat);
    expect(204, company.room.ann.delete(&path).await);

    page.see_text("h1", "You were removed from Harbor Lights")
        .await;
    page.gone(".composer").await;
    page.truth(
        "the space has left the rail",
        "!document.querySelector('#rail').innerText.includes('Harbor Lights')",
    )
    .await;
    let space = format!("/api/spaces/{}", company.space);
    assert_eq!(company.bob.get(&space).await.0, 404);
    page.click_text(".hollow a", "Go to my conversations").await;
    page.see_text(".stage__space", "Bob's Barn").await;
    page.go(&company.room.path()).await;
    page.see_text("h1", "not here").await;
}

#[tokio::test]
async fn c75_a_removed_member_without_another_space_begins_anew() {
    let company = Company::with("member").await;
    let page = company.bobs_page().await;

    let path = format!("/api/memberships/{}", company.seat);
    expect(204, company.room.ann.delete(&path).await);
    page.click_text(".hollow a", "Go to my conversations").await;

    page.click_text(".hollow button", "New space").await;
    page.see("dialog").await;
}
