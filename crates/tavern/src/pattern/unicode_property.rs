//! Looks up Unicode properties by the names that ECMAScript accepts in `\p{…}`.

use icu_properties::props::{GeneralCategory, GeneralCategoryGroup, Script};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData, PropertyParser};

use crate::pattern::char_set::CharSet;

/// The greatest code point.
pub const MAX_CODE_POINT: u32 = 0x10_ffff;
/// Properties that some strings of several characters have.
const STRING_PROPERTIES: [&str; 7] = [
    "Basic_Emoji",
    "Emoji_Keycap_Sequence",
    "RGI_Modifier_Sequence",
    "RGI_Flag_Sequence",
    "RGI_Emoji_Tag_Sequence",
    "RGI_Emoji_ZWJ_Sequence",
    "RGI_Emoji",
];

/// Returns the code points with a property: `name=value`, or a name alone. Returns `None` if
/// ECMAScript has no such property. Names are case-sensitive.
pub fn code_points(property: &str) -> Option<CharSet> {
    match property.split_once('=') {
        Some(("General_Category" | "gc", value)) => general_category(value),
        Some(("Script" | "sc", value)) => {
            let script = PropertyParser::<Script>::new().get_strict(value)?;
            let map = CodePointMapData::<Script>::new();
            Some(from_ranges(map.iter_ranges_for_value(script)))
        }
        Some(("Script_Extensions" | "scx", value)) => {
            let script = PropertyParser::<Script>::new().get_strict(value)?;
            let map = ScriptWithExtensions::new();
            Some(from_ranges(map.get_script_extensions_ranges(script)))
        }
        Some(_) => None,
        None => general_category(property).or_else(|| binary_property(property)),
    }
}

/// Returns whether ECMAScript has a property of strings with this name.
pub fn is_string_property(name: &str) -> bool {
    STRING_PROPERTIES.contains(&name)
}

fn general_category(value: &str) -> Option<CharSet> {
    let group = PropertyParser::<GeneralCategoryGroup>::new().get_strict(value)?;
    let map = CodePointMapData::<GeneralCategory>::new();
    Some(from_ranges(map.iter_ranges_for_group(group)))
}

fn binary_property(name: &str) -> Option<CharSet> {
    match name {
        "Any" => Some(CharSet::from_ranges([(0, MAX_CODE_POINT)])),
        "ASCII" => Some(CharSet::from_ranges([(0, 0x7f)])),
        "Assigned" => Some(general_category("Cn")?.complement(MAX_CODE_POINT)),
        _ => {
            let set = CodePointSetData::new_for_ecma262(name.as_bytes())?;
            Some(from_ranges(set.iter_ranges()))
        }
    }
}

fn from_ranges(ranges: impl Iterator<Item = std::ops::RangeInclusive<u32>>) -> CharSet {
    CharSet::from_ranges(ranges.map(|it| (*it.start(), *it.end())))
}
