//! An evening of group play: three people use every kind of message and turn, through a crash of the
//! server. After each scene the three timelines must equal the database.

use serde_json::json;
use thirtyfour::Key;

use crate::evening::{Evening, GREETINGS};
use crate::page::FIELD;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::expect;
use crate::support::pictures::png;

const EDITOR: &str = ".message__edit textarea";
const OWN_TURN: &str = ".queue__box[data-turn=own][data-state=waiting]";
/// Whispered by Ann to Bob, and by Cleo to Mina.
const SECRETS: [&str; 2] = ["The cellar is open.", "Where is the key?"];

const ANN: usize = 0;
const BOB: usize = 1;
const CLEO: usize = 2;

/// Greetings, lines in turn, and a persona.
async fn introductions(evening: &mut Evening) {
    evening.pages[ANN]
        .click(".swipes [aria-label='Next swipe']")
        .await;
    evening.pages[CLEO].see_text(".message", GREETINGS[1]).await;
    evening.until_all_see(0).await;
    assert_eq!(evening.space.texts().await, [GREETINGS[1]]);
    evening.say(ANN, "Good evening.", 1).await;
    evening.say(BOB, "Is there a room?", 1).await;
    evening.say(CLEO, "The rain is cold.", 1).await;

    let persona = json!({"name": "Captain", "description": "Commands a ship."});
    expect(201, evening.bob.post("/api/personas", persona).await);
    evening.pages[BOB].reload().await;
    evening.pages[BOB].see(".composer__persona").await;
    evening.say(BOB, "=captain Ahoy, landlord!", 1).await;
    let author = ".message--own:not(:has(~ .message--own)) .message__author";
    evening.pages[BOB].see_text(author, "Captain").await;
}

/// Edits and swipes of earlier messages, and a continued reply.
async fn changes(evening: &mut Evening) {
    evening.press_tool(BOB, "Is there a room?", "Edit").await;
    evening.pages[BOB]
        .rewrite(EDITOR, "Is there a room for two?")
        .await;
    evening.pages[BOB]
        .write(EDITOR, Key::Control + Key::Enter)
        .await;
    evening.pages[CLEO]
        .see_text(".message", "a room for two?")
        .await;
    evening.reply_to(
        "Good evening.",
        ResponseScript::say("Good evening to you all."),
    );
    evening
        .press_tool(ANN, "Reply number 1 ", "Regenerate")
        .await;
    evening.pages[ANN]
        .click_text("dialog button", "In place")
        .await;
    evening.pages[CLEO]
        .see_text(".message", "Good evening to you all.")
        .await;
    evening.until_all_see(0).await;
    let swipe = "[aria-label='Previous swipe']";
    evening.pages[ANN]
        .click(&format!(".message[data-seq='3'] {swipe}"))
        .await;
    evening.pages[CLEO]
        .see_text(".message", "Reply number 1 ")
        .await;
    evening.pages[ANN]
        .click(&format!(".message[data-seq='1'] {swipe}"))
        .await;
    evening.pages[CLEO].see_text(".message", GREETINGS[0]).await;
    evening.until_all_see(0).await;

    let cut = ResponseScript::stream().role().text("Once upon");
    evening.reply_to("Tell me a story.", cut.finish("length").done());
    evening.reply_to("Tell me a story.", ResponseScript::say(" the sea."));
    evening.say(ANN, "Tell me a story.", 1).await;
    evening.press_tool(ANN, "Once upon", "Continue").await;
    evening.pages[CLEO]
        .see_text(".message", "Once upon the sea.")
        .await;
    evening.until_all_see(0).await;
}

/// Whispers between people, and to a character, who whispers back.
async fn whispers(evening: &mut Evening) {
    let ann = &evening.pages[ANN];
    ann.click(".composer__whisper").await;
    ann.click_text(".recipients__row", "bob").await;
    ann.click_text("dialog button", "Done").await;
    evening.say(ANN, SECRETS[0], 0).await;
    evening.press_tool(BOB, SECRETS[0], "Reply").await;
    evening.say(BOB, "I will be there.", 0).await;
    evening.keep_pictures("whispers").await;
    for person in [ANN, BOB] {
        evening.pages[person].click("[data-act=everyone]").await;
    }
    evening
        .say(CLEO, &format!("/w Mina {}", SECRETS[1]), 1)
        .await;
    let [ann, bob, cleo] = &evening.pages;
    for (page, secret) in [(cleo, SECRETS[0]), (ann, SECRETS[1]), (bob, SECRETS[1])] {
        let has_it = format!(
            "document.documentElement.outerHTML.includes({})",
            json!(secret)
        );
        assert_eq!(page.value(&has_it).await, json!(false), "{secret}");
    }
}

/// Turns of people: Bob posts on his turn, and Cleo skips hers on the phone.
async fn turns(evening: &mut Evening) {
    evening.pages[CLEO].click("[data-act=everyone]").await;
    let turns = json!({"humans_take_turns": true, "replies_per_turn": "activated", "human_turn_timeout_s": 600});
    evening.configure(turns).await;
    evening.say(ANN, "Who comes with me?", 2).await;
    evening.pages[BOB].see(OWN_TURN).await;
    evening.pages[ANN]
        .see_text(".queue__text", "Waiting for bob")
        .await;
    evening.keep_pictures("turns").await;
    evening.say(BOB, "I take the lantern.", 0).await;
    evening.pages[CLEO].see(OWN_TURN).await;
    evening.pages[CLEO].click(".queue [data-act=skip]").await;
    evening.pages[CLEO]
        .see(".queue__box[data-state=idle]")
        .await;
    evening
        .configure(json!({"humans_take_turns": false, "replies_per_turn": "one"}))
        .await;
}

/// The director chooses Rook, and the preview shows who would speak next.
async fn director(evening: &mut Evening) {
    evening.configure(json!({"reply_order": "director"})).await;
    let gate = HoldPoint::closed();
    evening.reply_to(
        "Where to now?",
        ResponseScript::say("Follow me.").held_at(&gate),
    );
    evening.pages[CLEO].write(FIELD, "Where to now?").await;
    evening.pages[CLEO].click("[aria-label=Send]").await;
    evening.pages[ANN]
        .see_text(".queue__text", "Rook is writing")
        .await;
    evening.pages[ANN].click(".queue [data-act=because]").await;
    evening.pages[ANN]
        .see_text(".toast", "He knows the way.")
        .await;
    gate.open();
    evening.until_all_see(2).await;

    evening.configure(json!({"reply_order": "list"})).await;
    evening.pages[ANN].click("[data-act=odds]").await;
    evening.pages[ANN].see_text(".odds__share", "100%").await;
    evening.keep_pictures("director").await;
    evening.pages[ANN].press(Key::Escape).await;
    evening.pages[ANN].gone(".odds__share").await;
}

/// Replies, reactions, `@`, lines out of character, bookmarks and slow mode.
async fn marks(evening: &mut Evening) {
    evening
        .press_tool(CLEO, "I take the lantern.", "Reply")
        .await;
    evening.say(CLEO, "And I take the rope.", 1).await;
    evening.pages[BOB]
        .see_text(".message__quote-link", "I take the lantern.")
        .await;
    evening
        .press_tool(CLEO, "Once upon the sea.", "Add reaction")
        .await;
    evening.pages[CLEO]
        .write(".emoji-picker input", "rocket")
        .await;
    evening.pages[CLEO]
        .click_text(".emoji-grid__choice", "🚀")
        .await;
    evening.pages[BOB].see_text(".reactions__chip", "🚀").await;
    evening.configure(json!({"reply_order": "natural"})).await;
    evening.pages[ANN]
        .write(FIELD, "What do you think, @Ro")
        .await;
    evening.pages[ANN]
        .click_text(".completions:not([hidden]) .completions__option", "Rook")
        .await;
    evening.pages[ANN].click("[aria-label=Send]").await;
    evening.until_all_see(2).await;
    assert_eq!(
        evening.pages[ANN]
            .texts(".message__author")
            .await
            .last()
            .map(String::as_str),
        Some("Rook")
    );
    evening.configure(json!({"reply_order": "list"})).await;
    evening.say(BOB, "((Back in five minutes.))", 0).await;
    evening.pages[CLEO]
        .see_text(".message--ooc", "Back in five minutes.")
        .await;
    evening.press_tool(ANN, "Follow me.", "Bookmark").await;
    evening.pages[ANN]
        .click(".main__head [aria-haspopup=menu]")
        .await;
    evening.pages[ANN]
        .click_text(".menu__item", "Bookmarks")
        .await;
    evening.pages[ANN]
        .click_text(".bookmarks__message", "Follow me.")
        .await;
    evening.pages[ANN]
        .see_text(".message--found", "Follow me.")
        .await;

    evening.configure(json!({"slow_mode_s": 600})).await;
    evening.pages[BOB]
        .see_text(".composer__slow", "Slow mode")
        .await;
    evening.configure(json!({"slow_mode_s": 0})).await;
    evening.pages[BOB].gone(".composer__slow").await;
    evening.say(BOB, "Here I am again.", 1).await;
}

/// A picture from the phone, and a message in the language of its reader.
async fn pictures_and_languages(evening: &mut Evening) {
    let cleo = &evening.pages[CLEO];
    cleo.paste_file("map.png", "image/png", &png(640, 320, 1))
        .await;
    cleo.see(".composer__picture[data-state=ready]").await;
    cleo.write(".composer__picture-alt", "A map of the coast")
        .await;
    evening.say(CLEO, "I drew this.", 1).await;
    for page in &evening.pages {
        page.see("img.message__picture-image[alt='A map of the coast']")
            .await;
    }

    evening.translator.reply_with("Wohin jetzt?");
    let provider =
        json!({"name": "Translator", "base_url": evening.translator.base_url(), "model": "m"});
    let provider = expect(
        201,
        evening.space.ann.post("/api/providers", provider).await,
    );
    evening
        .configure(json!({"translation_provider_id": provider["id"]}))
        .await;
    let german = json!({"settings": {"language": "de"}});
    expect(200, evening.bob.patch("/api/users/me", german).await);
    evening.pages[BOB].reload().await;
    evening.press_tool(BOB, "Where to now?", "Translate").await;
    evening.pages[BOB]
        .see_text(".message__body[lang=de]", "Wohin jetzt?")
        .await;
    evening.keep_pictures("languages").await;
    evening.pages[BOB]
        .click_text(".message__foot button", "Show original")
        .await;
    evening.until_all_see(0).await;
}

/// The server is killed while a reply is streamed and Ann has an unsent draft.
async fn crash(evening: &mut Evening) {
    const LINE: &str = "Did you hear that?";
    evening.pages[ANN].write(FIELD, "Not sent yet").await;
    evening.reply_to(
        LINE,
        ResponseScript::stream().role().words("A sound of ").hang(),
    );
    evening.pages[CLEO].write(FIELD, LINE).await;
    evening.pages[CLEO].click("[aria-label=Send]").await;
    for page in &evening.pages {
        page.see_text(".message[data-state=streaming]", "A sound")
            .await;
    }
    evening.test_server.server.kill9();
    for page in &evening.pages {
        page.see_text(".banner", "Reconnecting").await;
    }
    evening.test_server.server.restart().await;
    evening.until_all_see(2).await;
    let draft = format!("document.querySelector('{FIELD}').value");
    assert_eq!(
        evening.pages[ANN].value(&draft).await,
        json!("Not sent yet")
    );
    evening.pages[ANN].write(FIELD, Key::Control + "a").await;
    evening.pages[ANN].write(FIELD, Key::Delete).await;
}

#[tokio::test]
async fn an_evening_of_every_kind_of_play_is_stored_and_shown_to_each_audience() {
    let mut evening = Evening::begin().await;
    evening.until_all_see(0).await;
    introductions(&mut evening).await;
    changes(&mut evening).await;
    whispers(&mut evening).await;
    turns(&mut evening).await;
    director(&mut evening).await;
    marks(&mut evening).await;
    pictures_and_languages(&mut evening).await;
    crash(&mut evening).await;
    while evening.n_messages < 60 {
        let person = evening.n_messages / 2 % 3;
        evening.say(person, "The night goes by.", 1).await;
    }

    evening.keep_pictures("end").await;
    for page in &evening.pages {
        page.reload().await;
        let first = "(document.querySelector('.timeline').scrollTop = 0, document.querySelector(`.message[data-seq='1']`) !== null)";
        page.truth("the older messages are loaded", first).await;
    }
    evening.until_all_see(0).await;
}
