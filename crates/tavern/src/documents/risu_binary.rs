//! Recognizes the binary files of Risu: modules (`.risum`) and presets (`.risup`, `.risupreset`). Their
//! content is compressed or encrypted in formats of Risu's own and is not read.

/// The number of bytes from the beginning of a file that [`detect`] needs at most.
pub const HEAD_BYTES: usize = 1024;

/// The first bytes of a module; the length of its first part follows, in four bytes.
const MODULE_SIGNATURE: [u8; 2] = [111, 0];

/// A kind of binary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RisuBinary {
    Module,
    Preset,
}

impl RisuBinary {
    /// Returns the sentence that refuses such a file.
    pub fn refusal(self) -> &'static str {
        match self {
            Self::Module => {
                "This is a module of Risu (.risum), a binary file whose content is not read. A \
                 module inside a CHARX card is kept with the card."
            }
            Self::Preset => {
                "This is a preset of Risu (.risup), a binary file whose content is not read."
            }
        }
    }
}

/// Returns the kind of a file of `n_bytes` that begins with `head`, if it is one of Risu's. A preset has no
/// signature: its name decides, unless the content is text.
pub fn detect(file_name: &str, head: &[u8], n_bytes: u64) -> Option<RisuBinary> {
    if is_module(head, n_bytes) {
        return Some(RisuBinary::Module);
    }
    let ending = file_name.rsplit_once('.')?.1.to_ascii_lowercase();
    let kind = match ending.as_str() {
        "risum" => RisuBinary::Module,
        "risup" | "risupreset" => RisuBinary::Preset,
        _ => return None,
    };
    (!is_text(head)).then_some(kind)
}

/// Returns whether the first part of a module fits into the file. Text in UTF-16 may begin with the same
/// two bytes, but no file has the length that follows.
fn is_module(head: &[u8], n_bytes: u64) -> bool {
    let Some(rest) = head.strip_prefix(&MODULE_SIGNATURE) else {
        return false;
    };
    let length = rest.first_chunk().map(|it| u32::from_le_bytes(*it));
    length.is_some_and(|it| u64::from(it) <= n_bytes)
}

fn is_text(head: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        // The head may end within a character.
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::{RisuBinary, detect};

    #[test]
    fn a_module_is_recognized_by_its_content_whatever_its_name() {
        let module = [111, 0, 3, 0, 0, 0, 200, 201, 202, 0];

        for name in ["a.risum", "a.json", ""] {
            assert_eq!(
                detect(name, &module, 10),
                Some(RisuBinary::Module),
                "{name}"
            );
        }
        let in_utf16 = [111, 0, 110, 0, 99, 0, 101, 0];
        assert_eq!(detect("a.txt", &in_utf16, 8), None);
    }

    #[test]
    fn a_preset_is_recognized_by_its_name_and_content() {
        let packed = [0x1F, 0x8B, 200, 0];

        assert_eq!(detect("A.RISUP", &packed, 4), Some(RisuBinary::Preset));
        assert_eq!(detect("a.risupreset", &packed, 4), Some(RisuBinary::Preset));
        assert_eq!(detect("a.json", &packed, 4), None);
        for text in ["{}", "", "name: é"] {
            let head = text.as_bytes();
            assert_eq!(detect("a.risup", head, 8), None, "{text}");
        }
        assert_eq!(detect("a.risup", &"é".as_bytes()[..1], 8), None);
    }
}
