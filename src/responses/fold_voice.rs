//! Whose the items of a turn are: each tells in its `metadata` who says it. Pure.

use serde_json::Value;

/// Who speaks, where that is somebody, and since which item.
#[derive(Clone, Debug, Default)]
pub struct Voiced {
    speaker: Option<Value>,
    n_before: usize,
}

impl Voiced {
    /// Somebody speaks after so many items.
    pub fn now_is(&mut self, speaker: Value, n_before: usize) {
        *self = Self {
            speaker: Some(speaker),
            n_before,
        };
    }

    /// Whether somebody speaks.
    pub fn is_somebody(&self) -> bool {
        self.speaker.is_some()
    }

    /// The item with who says it; what is thought is nobody's.
    pub fn signed(&self, mut item: Value) -> Value {
        if let Some(speaker) = &self.speaker
            && item["type"] != "reasoning"
        {
            item["metadata"] = speaker.clone();
        }
        item
    }

    /// Those of the items that are by whoever speaks.
    pub fn own<'a>(&self, items: &'a [Value]) -> &'a [Value] {
        items.get(self.n_before..).unwrap_or_default()
    }

    /// Learns from an item that was told before who spoke then.
    pub fn take_back(&mut self, item: &Value, n_before: usize) {
        let speaker = item.get("metadata").filter(|it| it.is_object());
        if let Some(speaker) = speaker.filter(|it| self.speaker.as_ref() != Some(it)) {
            self.now_is(speaker.clone(), n_before);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;
    use crate::responses::document::Header;
    use crate::responses::fold::Event;
    use crate::responses::fold::Fold;
    use crate::responses::happening::Ending;
    use crate::responses::happening::Happening;
    use crate::responses::happening::How;
    use crate::responses::response::Status;
    use serde_json::Map;
    use serde_json::Value;
    use serde_json::json;

    fn header() -> Header {
        Header {
            id: "resp_1".to_owned(),
            created_at: Timestamp(0),
            echo: Map::new(),
        }
    }

    fn speaks(name: &str) -> Happening {
        Happening::Speaks(json!({ "speaker": name }))
    }

    fn said(text: &str) -> Happening {
        Happening::Said(text.to_owned())
    }

    fn completed() -> Happening {
        Happening::Ended(Ending {
            how: How::Completed,
            usage: None,
            at: Timestamp(1),
        })
    }

    fn apply(fold: &mut Fold, happenings: &[Happening]) -> Vec<Value> {
        let events = happenings.iter().flat_map(|it| fold.apply(it.clone()));
        let read = |it: Event| serde_json::from_str(&it.json).expect("an event is JSON");
        events.map(read).collect()
    }

    /// Who says what.
    fn lines(fold: &Fold) -> Vec<(Value, Value)> {
        let items = fold.items().iter();
        items
            .map(|it| {
                (
                    it["metadata"]["speaker"].clone(),
                    it["content"][0]["text"].clone(),
                )
            })
            .collect()
    }

    #[test]
    fn each_has_an_item_of_its_own_and_is_named_from_its_beginning() {
        let mut fold = Fold::new(header(), Status::InProgress);
        let all = [
            speaks("Ada"),
            said("One."),
            speaks("Bob"),
            said("Two."),
            completed(),
        ];

        let events = apply(&mut fold, &all);

        let line = |name: &str, text: &str| (json!(name), json!(text));
        assert_eq!(lines(&fold), [line("Ada", "One."), line("Bob", "Two.")]);
        let added = events
            .iter()
            .filter(|it| it["type"] == "response.output_item.added");
        let named: Vec<&Value> = added.map(|it| &it["item"]["metadata"]["speaker"]).collect();
        assert_eq!(named, [&json!("Ada"), &json!("Bob")]);
    }

    #[test]
    fn whoever_has_nothing_to_say_says_the_empty_text() {
        let mut fold = Fold::new(header(), Status::InProgress);
        let thought = Happening::Thought("Hm.".to_owned());

        apply(
            &mut fold,
            &[speaks("Ada"), speaks("Bob"), thought, completed()],
        );

        let [ada, reasoning, bob] = fold.items() else {
            panic!("{:?}", fold.items());
        };
        assert_eq!(ada["metadata"]["speaker"], "Ada");
        assert_eq!(reasoning.get("metadata"), None);
        assert_eq!(bob["metadata"]["speaker"], "Bob");
        assert_eq!(bob["content"][0]["text"], "");
    }

    #[test]
    fn whoever_takes_over_knows_who_spoke() {
        let mut first = Fold::new(header(), Status::InProgress);
        let told = apply(
            &mut first,
            &[speaks("Ada"), said("One."), speaks("Bob"), said("Tw")],
        );

        let mut second = Fold::replay(header(), Status::InProgress, &told);
        apply(&mut second, &[said("o."), completed()]);

        let line = |name: &str, text: &str| (json!(name), json!(text));
        assert_eq!(lines(&second), [line("Ada", "One."), line("Bob", "Two.")]);
    }
}
