//! Lists the assets that a V3 card refers to (where each is stored, which is the main icon), and
//! changes their URIs for a new avatar or an export.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Both spellings are in use; the specification has the first.
const IN_ARCHIVE: [&str; 2] = ["embeded://", "embedded://"];
const IN_PNG: &str = "__asset:";
/// Refers to the image that contains the card.
const DEFAULT: &str = "ccdefault:";

/// Where an asset is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssetLocation {
    /// In the same file, under this path.
    InFile(String),
    /// In the card, as base64.
    Inline(Vec<u8>),
    /// On another server. It is never fetched.
    Remote,
    /// The image that contains the card.
    Default,
}

/// Returns the location of every asset of a card, in order.
pub fn locations(document: &Value) -> Vec<AssetLocation> {
    assets(document).iter().map(location_of).collect()
}

/// Returns the distinct paths of the assets that should be in the file.
pub fn embedded_paths(document: &Value) -> Vec<String> {
    let mut seen = HashSet::new();
    let inside = assets(document).iter().filter_map(embedded_path);
    let new = inside.filter(|it| seen.insert(*it));
    new.map(str::to_owned).collect()
}

/// Returns the location of the main icon: the icon named `main`, else the first.
pub fn main_icon(document: &Value) -> Option<AssetLocation> {
    let icons = assets(document).iter();
    let mut icons = icons.filter(|it| it["type"] == "icon");
    let main = icons.clone().find(|it| it["name"] == "main");
    main.or_else(|| icons.next()).map(location_of)
}

/// Returns the document with the default image as its main icon, and the previous location. Returns
/// `None` if the icon is missing or not stored with the card. The entry is kept, because otherwise
/// another icon would become the main one.
pub fn without_main_icon(document: &Value) -> Option<(Value, AssetLocation)> {
    let location = main_icon(document)?;
    if !matches!(
        location,
        AssetLocation::InFile(_) | AssetLocation::Inline(_)
    ) {
        return None;
    }
    let mut document = document.clone();
    let assets = document.pointer_mut("/data/assets")?.as_array_mut()?;
    let is_icon = |it: &Value| it["type"] == "icon";
    let main = assets
        .iter()
        .position(|it| is_icon(it) && it["name"] == "main");
    let main = main.or_else(|| assets.iter().position(is_icon))?;
    assets[main]["uri"] = Value::from(DEFAULT);
    Some((document, location))
}

/// Returns the document with the URIs of its embedded assets as an archive or a PNG requires them.
/// `has` returns whether the asset with a path exists; the URIs of others are unchanged.
pub fn with_container_uris(
    document: &Value,
    has: impl Fn(&str) -> bool,
    in_archive: bool,
) -> Value {
    let mut document = document.clone();
    let prefix = if in_archive { IN_ARCHIVE[0] } else { IN_PNG };
    let assets = document.pointer_mut("/data/assets");
    let assets = assets.and_then(Value::as_array_mut).into_iter().flatten();
    for asset in assets {
        match location_of(asset) {
            AssetLocation::InFile(path) if has(&path) => {
                let is_right = asset["uri"].as_str().is_some_and(|it| {
                    let is_archive = IN_ARCHIVE.iter().any(|prefix| it.starts_with(prefix));
                    is_archive == in_archive
                });
                if !is_right {
                    asset["uri"] = Value::from(format!("{prefix}{path}"));
                }
            }
            _ => {}
        }
    }
    document
}

fn assets(document: &Value) -> &[Value] {
    let assets = document.pointer("/data/assets").and_then(Value::as_array);
    assets.map_or(&[], Vec::as_slice)
}

fn location_of(asset: &Value) -> AssetLocation {
    let uri = asset.get("uri").and_then(Value::as_str).unwrap_or_default();
    if let Some(path) = embedded_path(asset) {
        return AssetLocation::InFile(path.to_owned());
    }
    let written = uri
        .strip_prefix("data:")
        .and_then(|it| it.split_once(";base64,"));
    match written.and_then(|(_, it)| STANDARD.decode(it).ok()) {
        Some(bytes) => AssetLocation::Inline(bytes),
        None if uri.contains("://") => AssetLocation::Remote,
        None => AssetLocation::Default,
    }
}

/// Returns the path of an asset in the same file. An empty path is ignored.
fn embedded_path(asset: &Value) -> Option<&str> {
    let uri = asset.get("uri")?.as_str()?;
    let inside = IN_ARCHIVE.iter().find_map(|it| uri.strip_prefix(it));
    let inside = inside.or_else(|| uri.strip_prefix(IN_PNG));
    inside.filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{AssetLocation, locations, main_icon, with_container_uris, without_main_icon};

    #[test]
    fn an_asset_is_found_by_its_uri() {
        let card = json!({"data": {"assets": [
            {"type": "icon", "uri": "embeded://a/1.png", "name": "other"},
            {"type": "icon", "uri": "data:image/png;base64,AQID", "name": "main"},
            {"type": "emotion", "uri": "__asset:2"},
            {"type": "background", "uri": "https://example.org/x.png"},
            {"type": "icon", "uri": "ccdefault:"}, 7,
        ]}});

        let locations = locations(&card);

        assert_eq!(locations[0], AssetLocation::InFile("a/1.png".into()));
        assert_eq!(locations[2], AssetLocation::InFile("2".into()));
        assert_eq!(locations[3], AssetLocation::Remote);
        assert_eq!(
            locations[4..],
            [AssetLocation::Default, AssetLocation::Default]
        );
        assert_eq!(main_icon(&card), Some(AssetLocation::Inline(vec![1, 2, 3])));
        assert_eq!(main_icon(&json!({})), None);
    }

    #[test]
    fn a_removed_main_icon_is_not_replaced() {
        let card = json!({"data": {"assets": [
            {"type": "emotion", "uri": "embeded://sad.png", "name": "sad"},
            {"type": "icon", "uri": "embeded://old.png", "name": "old"},
            {"type": "icon", "uri": "embeded://now.png", "name": "main", "ext": "png"},
        ]}});

        let (without, location) = without_main_icon(&card).expect("it has one");

        assert_eq!(location, AssetLocation::InFile("now.png".into()));
        assert_eq!(main_icon(&without), Some(AssetLocation::Default));
        assert_eq!(super::embedded_paths(&without), ["sad.png", "old.png"]);
        assert_eq!(
            without_main_icon(&without),
            None,
            "there is no main icon left"
        );
    }

    #[test]
    fn asset_uris_follow_the_container_if_the_asset_exists() {
        let card = json!({"data": {"assets": [
            {"uri": "embedded://a"}, {"uri": "__asset:b"}, {"uri": "__asset:gone"},
        ]}});

        let charx = with_container_uris(&card, |it| it != "gone", true);
        let png = with_container_uris(&card, |it| it != "gone", false);

        let uris = |it: &serde_json::Value| {
            it["data"]["assets"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["uri"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            uris(&charx),
            ["embedded://a", "embeded://b", "__asset:gone"]
        );
        assert_eq!(uris(&png), ["__asset:a", "__asset:b", "__asset:gone"]);
    }
}
