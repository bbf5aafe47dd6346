//! Decodes an untrusted image within limits and re-encodes it as a WebP avatar in two sizes,
//! because only images encoded by this server are served. Also returns previews for imports,
//! thumbnails for lists, PNGs for exports, and a placeholder for a card without an avatar.

use std::io::{BufRead, Cursor, Seek};

use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

use crate::cards::card_error::CardError;
use crate::pictures::decoder;
use crate::pictures::decoder::{
    DecodeLimits, PictureError, encode, encode_jpeg, fit_within, is_transparent,
};

/// The path of the avatar among the assets of a character, in the size for exports.
pub const AVATAR_PATH: &str = "";

/// The maximum size of an image file, in bytes.
pub const MAX_BYTES: u64 = 20 * 1024 * 1024;
/// The media type of all stored avatars.
pub const MEDIA_TYPE: &str = "image/webp";
const LIMITS: DecodeLimits = DecodeLimits {
    max_side: 8_192,
    max_pixels: 10_000_000,
    max_memory: 40 * 1024 * 1024,
};
/// The maximum width and height for exports.
const LARGE: (u32, u32) = (1_536, 2_048);
/// The maximum width and height for display.
const SMALL: (u32, u32) = (512, 768);
const PREVIEW: (u32, u32) = (320, 480);
/// The width and height of a thumbnail, the largest first: a smaller one is used if the file would
/// be too large.
const THUMBNAIL_SIDES: [u32; 4] = [128, 96, 64, 48];
/// The maximum size of the file of a thumbnail, in bytes. Even without compression the smallest one
/// is smaller.
pub const THUMBNAIL_MAX_BYTES: usize = 15_000;
const THUMBNAIL_QUALITY: u8 = 80;

/// An avatar in two sizes, both WebP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvatarImage {
    pub large: Vec<u8>,
    pub small: Vec<u8>,
}

/// Decodes an image and encodes it in both sizes.
///
/// # Errors
/// Returns `NotACard` when the image is invalid, and `TooLarge` when a limit is exceeded.
pub fn re_encode(file: impl BufRead + Seek) -> Result<AvatarImage, CardError> {
    let image = decoder::upright_within(decode(file)?, LARGE);
    let small = encode(&fit_within(image.clone(), SMALL), ImageFormat::WebP)?;
    let large = encode(&image, ImageFormat::WebP)?;
    Ok(AvatarImage { large, small })
}

/// Returns a stored avatar, scaled down to be embedded in a document.
pub fn preview(small: &[u8]) -> Result<Vec<u8>, CardError> {
    let (image, _) = decode(Cursor::new(small))?;
    Ok(encode(&fit_within(image, PREVIEW), ImageFormat::WebP)?)
}

/// Returns the square in the middle of a stored avatar, for lists and messages, and its media type:
/// a JPEG, or a WebP if the avatar is partly transparent.
///
/// # Errors
/// Returns `NotACard` when the image is invalid.
pub fn thumbnail(small: &[u8]) -> Result<(Vec<u8>, &'static str), CardError> {
    let (image, _) = decode(Cursor::new(small))?;
    let is_transparent = is_transparent(&image);
    let shorter = image.width().min(image.height());
    let mut bytes = Vec::new();
    for side in THUMBNAIL_SIDES.map(|side| side.min(shorter)) {
        let square = image.resize_to_fill(side, side, FilterType::Triangle);
        bytes = match is_transparent {
            true => encode(&square, ImageFormat::WebP)?,
            false => encode_jpeg(&square, THUMBNAIL_QUALITY)?,
        };
        if bytes.len() <= THUMBNAIL_MAX_BYTES {
            break;
        }
    }
    let media_type = match is_transparent {
        true => MEDIA_TYPE,
        false => "image/jpeg",
    };
    Ok((bytes, media_type))
}

/// Returns a stored avatar as a PNG.
pub fn as_png(large: &[u8]) -> Result<Vec<u8>, CardError> {
    Ok(encode(&decode(Cursor::new(large))?.0, ImageFormat::Png)?)
}

/// Returns a placeholder PNG for a card without an avatar: two colors derived from the name.
pub fn plain_png(name: &str) -> Result<Vec<u8>, CardError> {
    let seed = name.bytes().fold(17_u32, |sum, it| {
        sum.wrapping_mul(31).wrapping_add(it.into())
    });
    let [_, red, green, blue] = seed.to_be_bytes().map(|it| 64 + it / 2);
    let (width, height) = (400, 600);
    let shade = |part: u8, y: u32| (u32::from(part) * (height * 2 - y) / (height * 2)) as u8;
    let image = RgbImage::from_fn(width, height, |_, y| {
        Rgb([shade(red, y), shade(green, y), shade(blue, y)])
    });
    Ok(encode(&image.into(), ImageFormat::Png)?)
}

fn decode(file: impl BufRead + Seek) -> Result<(DynamicImage, Orientation), CardError> {
    Ok(decoder::decode(file, LIMITS)?)
}

impl From<PictureError> for CardError {
    fn from(error: PictureError) -> Self {
        match error {
            PictureError::TooLarge => Self::TooLarge(
                "The picture has more than 10 million pixels, or needs more than 40 MiB of memory."
                    .into(),
            ),
            error => Self::reason(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Cursor, DynamicImage, ImageFormat, THUMBNAIL_MAX_BYTES, as_png, decode, encode, plain_png,
        preview, re_encode, thumbnail,
    };

    fn png(width: u32, height: u32) -> Vec<u8> {
        encode(&DynamicImage::new_rgba8(width, height), ImageFormat::Png).expect("a PNG")
    }

    fn size(bytes: &[u8]) -> (u32, u32) {
        let (image, _) = decode(Cursor::new(bytes)).expect("a picture");
        (image.width(), image.height())
    }

    #[test]
    fn a_picture_is_re_encoded_in_two_sizes_and_not_enlarged() {
        let wide = re_encode(Cursor::new(png(1_000, 500))).expect("a picture");
        let small = re_encode(Cursor::new(png(30, 40))).expect("a picture");

        assert_eq!(
            (size(&wide.large), size(&wide.small)),
            ((1_000, 500), (512, 256))
        );
        assert_eq!(
            (size(&small.large), size(&small.small)),
            ((30, 40), (30, 40))
        );
        assert_eq!(size(&preview(&wide.small).expect("a preview")), (320, 160));
        assert_eq!(size(&as_png(&wide.large).expect("a PNG")), (1_000, 500));
    }

    #[test]
    fn an_invalid_or_too_large_image_is_refused() {
        let mut enormous = png(1, 1);
        // The width and height in the header: the decoder reads them before it checks the checksum.
        enormous[16..24].copy_from_slice(&[0, 0, 0x4E, 0x20, 0, 0, 0x4E, 0x20]);
        let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>";
        let cut = &png(300, 300)[..80];

        for bytes in [&enormous[..], svg, cut, b"", b"GIF89a"] {
            assert!(
                re_encode(Cursor::new(bytes)).is_err(),
                "{} bytes",
                bytes.len()
            );
        }
    }

    /// An image that cannot be compressed well, opaque or with transparent pixels.
    fn noise(width: u32, height: u32, is_opaque: bool) -> Vec<u8> {
        let mut state = 1_u32;
        let image = image::RgbaImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [red, green, blue, alpha] = state.to_be_bytes();
            image::Rgba([red, green, blue, if is_opaque { u8::MAX } else { alpha }])
        });
        encode(&image.into(), ImageFormat::WebP).expect("a WebP")
    }

    #[test]
    fn a_thumbnail_is_a_square_of_at_most_15_kb() {
        // How well noise is compressed depends on the version of the encoder.
        for (avatar, sides, media_type) in [
            (noise(512, 768, true), 128..=128, "image/jpeg"),
            (noise(512, 300, false), 48..=64, "image/webp"),
            (png(300, 512), 128..=128, "image/webp"),
            (png(30, 40), 30..=30, "image/webp"),
        ] {
            let (drawn, kind) = thumbnail(&avatar).expect("a thumbnail");

            let (width, height) = size(&drawn);
            assert_eq!((width, kind), (height, media_type));
            assert!(sides.contains(&width), "{width} pixels");
            assert!(drawn.len() <= THUMBNAIL_MAX_BYTES, "{} bytes", drawn.len());
        }
    }

    #[test]
    fn default_pictures_of_two_names_differ() {
        assert_ne!(
            plain_png("Ada").expect("a PNG"),
            plain_png("Bob").expect("a PNG")
        );
    }
}
