//! A text that patterns search.

use std::cell::OnceCell;

/// A text in the two forms that patterns read.
#[derive(Debug)]
pub struct PatternText {
    /// The UTF-16 code units, for patterns without the flags `u` and `v`.
    units: Vec<u16>,
    code_points: OnceCell<Vec<u32>>,
}

impl PatternText {
    /// Creates the text.
    pub fn new(text: &str) -> Self {
        let units = match text.is_ascii() {
            true => text.bytes().map(u16::from).collect(),
            false => text.encode_utf16().collect(),
        };
        Self {
            units,
            code_points: OnceCell::new(),
        }
    }

    /// Returns the UTF-16 code units.
    pub fn units(&self) -> &[u16] {
        &self.units
    }

    /// Returns the code points.
    pub fn code_points(&self) -> &[u32] {
        self.code_points.get_or_init(|| {
            let chars = char::decode_utf16(self.units.iter().copied());
            chars
                .map(|it| it.map_or_else(|it| it.unpaired_surrogate().into(), u32::from))
                .collect()
        })
    }
}
