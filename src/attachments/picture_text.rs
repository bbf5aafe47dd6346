//! The text that stands for a picture where the picture itself is not shown: in quotations, and in
//! prompts for models that do not accept pictures.

use crate::attachments::attachment::Model;

/// Returns `[Picture: description]`, or the file name and the size of a picture without a description.
/// It has one line.
pub fn of(picture: &Model) -> String {
    let alt = one_line(&picture.alt);
    if !alt.is_empty() {
        return format!("[Picture: {alt}]");
    }
    let size = format!("{}×{}", picture.width, picture.height);
    let name = one_line(picture.file_name.as_deref().unwrap_or_default());
    match name.is_empty() {
        true => format!("[Picture: {size}]"),
        false => format!("[Picture: {name}, {size}]"),
    }
}

/// Returns a text with the texts of pictures after it, each on its own line.
pub fn after<'a>(mut text: String, pictures: impl IntoIterator<Item = &'a str>) -> String {
    for picture in pictures {
        // A prefix with the author's name needs no line of its own.
        if !text.is_empty() && !text.ends_with([' ', '\n']) {
            text.push('\n');
        }
        text.push_str(picture);
    }
    text
}

/// Returns the texts of several pictures, each on its own line.
pub fn of_all<'a>(pictures: impl IntoIterator<Item = &'a Model>) -> String {
    let texts: Vec<String> = pictures.into_iter().map(of).collect();
    texts.join("\n")
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use base::ids::{AssetId, AttachmentId, UserId};

    use super::{Model, of, of_all};

    fn picture(file_name: Option<&str>, alt: &str) -> Model {
        Model {
            id: AttachmentId(1),
            owner_id: UserId(1),
            message_id: None,
            position: 0,
            asset_id: AssetId(1),
            thumbnail_asset_id: AssetId(2),
            file_name: file_name.map(str::to_owned),
            alt: alt.to_owned(),
            width: 640,
            height: 480,
            media_type: "image/png".to_owned(),
            bytes: 1,
            created_at: Timestamp(0),
            hidden_at: None,
        }
    }

    #[test]
    fn a_picture_is_named_by_its_description_else_by_its_file() {
        let (cat, file, none) = (
            picture(Some("cat.png"), " a grey\ncat "),
            picture(Some("cat.png"), " \n"),
            picture(None, ""),
        );

        assert_eq!(of(&cat), "[Picture: a grey cat]");
        assert_eq!(of(&file), "[Picture: cat.png, 640×480]");
        assert_eq!(
            of_all([&cat, &none]),
            "[Picture: a grey cat]\n[Picture: 640×480]"
        );
    }
}
