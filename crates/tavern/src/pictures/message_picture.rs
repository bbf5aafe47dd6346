//! Re-encodes a picture for a message in two sizes, without its metadata and turned upright: as a JPEG,
//! or as a PNG if it is partly transparent, because every model API and server accepts both.

use std::io::{BufRead, Seek};

use image::{DynamicImage, ImageFormat};

use crate::pictures::decoder;
use crate::pictures::decoder::{DecodeLimits, PictureError};

/// The maximum number of pixels of a file.
pub const MAX_PIXELS: u64 = 50_000_000;
/// The longest side of the full size, in pixels.
pub const FULL_SIDE: u32 = 2_048;
/// The longest side of the thumbnail, in pixels.
pub const THUMBNAIL_SIDE: u32 = 640;
/// High enough that compression artifacts are not visible even in the small text of a screenshot.
const FULL_QUALITY: u8 = 88;
const THUMBNAIL_QUALITY: u8 = 80;
const LIMITS: DecodeLimits = DecodeLimits {
    max_side: 65_535,
    max_pixels: MAX_PIXELS,
    // 50 megapixels with four channels.
    max_memory: 200 * 1024 * 1024,
};

/// A picture that this server has encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePicture {
    pub full: Vec<u8>,
    pub thumbnail: Vec<u8>,
    /// The size of `full`, in pixels.
    pub width: u32,
    pub height: u32,
    /// `image/jpeg` or `image/png`.
    pub media_type: &'static str,
}

/// Decodes a file and encodes it in both sizes. Smaller pictures are not enlarged.
///
/// # Errors
/// Returns `TooLarge` for more than 50 megapixels or 200 MiB of pixels, else the reason why the file is
/// no picture.
pub fn redraw(file: impl BufRead + Seek) -> Result<MessagePicture, PictureError> {
    let decoded = decoder::decode(file, LIMITS)?;
    let full = decoder::upright_within(decoded, (FULL_SIDE, FULL_SIDE));
    let (width, height) = (full.width(), full.height());
    let is_transparent = decoder::is_transparent(&full);
    let draw = |image: &DynamicImage, quality| match is_transparent {
        true => decoder::encode(image, ImageFormat::Png),
        false => decoder::encode_jpeg(image, quality),
    };
    let drawn = draw(&full, FULL_QUALITY)?;
    let small = decoder::fit_within(full, (THUMBNAIL_SIDE, THUMBNAIL_SIDE));
    Ok(MessagePicture {
        full: drawn,
        thumbnail: draw(&small, THUMBNAIL_QUALITY)?,
        width,
        height,
        media_type: match is_transparent {
            true => "image/png",
            false => "image/jpeg",
        },
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, ImageFormat, RgbImage};

    use super::{LIMITS, MessagePicture, PictureError, redraw};
    use crate::pictures::decoder;

    fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        decoder::encode(image, format).expect("a file")
    }

    fn drawn(bytes: &[u8]) -> Result<MessagePicture, PictureError> {
        redraw(Cursor::new(bytes))
    }

    fn size(bytes: &[u8]) -> (u32, u32) {
        let (image, _) = decoder::decode(Cursor::new(bytes), LIMITS).expect("a picture");
        (image.width(), image.height())
    }

    /// A JPEG whose pixels are stored rotated, with an EXIF block that states the rotation, and a comment.
    fn sideways(width: u32, height: u32) -> Vec<u8> {
        let plain = decoder::encode_jpeg(&DynamicImage::new_rgb8(width, height), 90);
        let plain = plain.expect("a JPEG");
        let exif = [
            &b"Exif\0\0MM\0*\0\0\0\x08\0\x01"[..],
            // Orientation, a short, one value: 6 (rotate by 90 degrees).
            &b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"[..],
        ]
        .concat();
        let segment = |kind: u8, data: &[u8]| {
            let length = u16::try_from(data.len() + 2).expect("short");
            [&[0xFF, kind][..], &length.to_be_bytes(), data].concat()
        };
        let exif = segment(0xE1, &exif);
        let comment = segment(0xFE, b"taken at home");
        [&plain[..2], &exif, &comment, &plain[2..]].concat()
    }

    #[test]
    fn a_picture_is_redrawn_in_two_sizes_and_not_enlarged() {
        let wide = DynamicImage::new_rgb8(4_096, 1_024);
        let wide = drawn(&file(&wide, ImageFormat::Png)).expect("a picture");
        let small = drawn(&file(&DynamicImage::new_rgb8(30, 40), ImageFormat::Gif));
        let small = small.expect("a picture");

        assert_eq!(size(&wide.full), (2_048, 512));
        assert_eq!((wide.width, wide.height), (2_048, 512));
        assert_eq!(size(&wide.thumbnail), (640, 160));
        assert_eq!(wide.media_type, "image/jpeg");
        assert_eq!(
            (size(&small.full), size(&small.thumbnail)),
            ((30, 40), (30, 40))
        );
    }

    #[test]
    fn a_photograph_is_turned_upright_and_loses_its_metadata() {
        let original = sideways(400, 300);
        assert!(contains(&original, b"taken at home") && contains(&original, b"Exif"));

        let upright = drawn(&original).expect("a picture");

        assert_eq!((upright.width, upright.height), (300, 400));
        for bytes in [&upright.full, &upright.thumbnail] {
            assert!(!contains(bytes, b"taken at home") && !contains(bytes, b"Exif"));
        }
    }

    #[test]
    fn a_transparent_picture_stays_transparent() {
        let clear = DynamicImage::new_rgba8(700, 20);
        let drawn = drawn(&file(&clear, ImageFormat::WebP)).expect("a picture");

        assert_eq!(drawn.media_type, "image/png");
        let (image, _) = decoder::decode(Cursor::new(&drawn.thumbnail), LIMITS).expect("a picture");
        assert!(decoder::is_transparent(&image));
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>";
        let cut = &file(&DynamicImage::new_rgb8(300, 300), ImageFormat::Png)[..80];

        assert_eq!(drawn(svg), Err(PictureError::UnknownFormat));
        assert_eq!(drawn(b""), Err(PictureError::UnknownFormat));
        assert_eq!(drawn(cut), Err(PictureError::Unreadable));
    }

    #[test]
    fn more_than_fifty_megapixels_are_refused_before_they_are_decoded() {
        let mut enormous = file(&DynamicImage::new_rgb8(1, 1), ImageFormat::Png);
        let side = |pixels: u32| pixels.to_be_bytes();
        enormous[16..24].copy_from_slice(&[side(8_000), side(6_376)].concat());
        let checksum = crc32(&enormous[12..29]);
        enormous[29..33].copy_from_slice(&checksum.to_be_bytes());

        assert_eq!(drawn(&enormous), Err(PictureError::TooLarge));
    }

    #[test]
    fn data_after_a_picture_is_not_kept() {
        let picture = DynamicImage::from(RgbImage::new(8, 8));
        let polyglot = [
            file(&picture, ImageFormat::Png),
            b"<script>alert(1)</script>".to_vec(),
        ]
        .concat();

        let drawn = drawn(&polyglot).expect("a picture");

        assert!(!contains(&drawn.full, b"<script>"));
        assert!(!contains(&drawn.thumbnail, b"<script>"));
    }

    fn crc32(bytes: &[u8]) -> u32 {
        let step = |sum: u32| (sum >> 1) ^ (0xEDB8_8320 * (sum & 1));
        let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum))
        });
        !sum
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|it| it == part)
    }
}
