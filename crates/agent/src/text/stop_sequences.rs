//! Ends a text before the first of several stop sequences while it streams.
//!
//! **Invariant:** the result does not depend on how the text was split into chunks: an end of the
//! text that may begin a stop sequence is held back until the next chunk decides.

/// The stop sequences of one text, and its end that is held back.
#[derive(Debug, Clone, Default)]
pub struct StopSequences {
    /// None is empty.
    stops: Vec<String>,
    held: String,
    is_reached: bool,
}

impl StopSequences {
    /// Creates the state of a text that ends before any of these; empty ones are ignored.
    pub fn new(stops: &[String]) -> Self {
        Self {
            stops: stops.iter().filter(|it| !it.is_empty()).cloned().collect(),
            ..Self::default()
        }
    }

    /// Adds the next chunk and returns the text that is certainly before every stop sequence.
    pub fn push(&mut self, chunk: &str) -> String {
        if self.is_reached {
            return String::new();
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(chunk);
        if let Some(at) = self.stops.iter().filter_map(|it| text.find(it)).min() {
            self.is_reached = true;
            text.truncate(at);
            return text;
        }
        self.held = text.split_off(text.len() - self.n_undecided_bytes(&text));
        text
    }

    /// Ends the text and returns what was held back.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Returns whether a stop sequence ended the text.
    pub fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// Returns the length of the longest end of the text that begins a stop sequence.
    fn n_undecided_bytes(&self, text: &str) -> usize {
        let longest = |stop: &String| {
            let starts = stop.char_indices().map(|(at, _)| at).rev();
            let mut starts = starts.filter(|it| *it > 0);
            starts.find(|it| text.ends_with(&stop[..*it])).unwrap_or(0)
        };
        self.stops.iter().map(longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::StopSequences;

    fn cut(stops: &[&str], chunks: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|it| (*it).to_owned()).collect();
        let mut state = StopSequences::new(&stops);
        let mut text: String = chunks.iter().map(|it| state.push(it)).collect();
        text.push_str(&state.finish());
        (text, state.is_reached())
    }

    #[test]
    fn a_text_ends_before_the_first_stop_sequence_however_it_is_split() {
        let text = "One, two, END three";
        for size in 1..text.len() {
            let chunks: Vec<&str> = (0..text.len())
                .step_by(size)
                .map(|at| &text[at..(at + size).min(text.len())])
                .collect();

            assert_eq!(
                cut(&["END", " three"], &chunks),
                ("One, two, ".to_owned(), true)
            );
        }
    }

    #[test]
    fn the_beginning_of_a_stop_sequence_is_text_if_it_does_not_continue() {
        assert_eq!(
            cut(&["END"], &["a EN", "TER"]),
            ("a ENTER".to_owned(), false)
        );
        assert_eq!(cut(&["END"], &["a EN"]), ("a EN".to_owned(), false));
        assert_eq!(cut(&["ÄÖ"], &["a Ä", "Ä", "Ö"]), ("a Ä".to_owned(), true));
    }

    #[test]
    fn without_stop_sequences_nothing_is_held_back() {
        let mut state = StopSequences::new(&[String::new()]);

        assert_eq!(state.push("text"), "text");
    }
}
