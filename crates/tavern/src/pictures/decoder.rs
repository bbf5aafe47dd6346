//! Decodes an untrusted PNG, JPEG, WebP or GIF within limits, scales it down and encodes it anew. Of an
//! animation only the first picture is decoded.

use std::io::{BufRead, Cursor, Seek};

use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

/// What a picture may need.
#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    pub max_side: u32,
    pub max_pixels: u64,
    /// The maximum memory of the decoder, in bytes.
    pub max_memory: u64,
}

/// Why a picture was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    #[error("The image is not a PNG, JPEG, WebP or GIF.")]
    UnknownFormat,
    #[error("The picture cannot be read.")]
    Unreadable,
    #[error("The picture has more pixels, or needs more memory, than is allowed.")]
    TooLarge,
}

/// Returns the pixels as stored in the file, and the orientation to apply.
///
/// # Errors
/// Returns `UnknownFormat` or `Unreadable` when the file is invalid, and `TooLarge` when a limit is
/// exceeded; the limits are checked before pixels are decoded.
pub fn decode(
    file: impl BufRead + Seek,
    limits: DecodeLimits,
) -> Result<(DynamicImage, Orientation), PictureError> {
    let mut reader = ImageReader::new(file)
        .with_guessed_format()
        .map_err(|_| PictureError::Unreadable)?;
    match reader.format() {
        Some(ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP | ImageFormat::Gif) => {}
        _ => return Err(PictureError::UnknownFormat),
    }
    let mut own = Limits::default();
    own.max_image_width = Some(limits.max_side);
    own.max_image_height = Some(limits.max_side);
    own.max_alloc = Some(limits.max_memory);
    reader.limits(own);
    let mut decoder = reader.into_decoder().map_err(from_image_error)?;
    let (width, height) = decoder.dimensions();
    let n_pixels = u64::from(width) * u64::from(height);
    if n_pixels > limits.max_pixels || decoder.total_bytes() > limits.max_memory {
        return Err(PictureError::TooLarge);
    }
    let orientation = decoder.orientation().map_err(from_image_error)?;
    let image = DynamicImage::from_decoder(decoder).map_err(from_image_error)?;
    Ok((image, orientation))
}

/// Returns the picture scaled down to this size and turned upright. Turning needs the memory of the
/// picture again, so it is scaled down first.
pub fn upright_within(
    (image, orientation): (DynamicImage, Orientation),
    (width, height): (u32, u32),
) -> DynamicImage {
    let size = match is_rotated_sideways(orientation) {
        true => (height, width),
        false => (width, height),
    };
    let mut image = fit_within(image, size);
    image.apply_orientation(orientation);
    image
}

fn is_rotated_sideways(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

/// Scales a picture down to this size; a smaller one is unchanged.
pub fn fit_within(image: DynamicImage, (width, height): (u32, u32)) -> DynamicImage {
    match image.width() > width || image.height() > height {
        true => image.thumbnail(width, height),
        false => image,
    }
}

/// Returns whether any pixel is not opaque.
pub fn is_transparent(image: &DynamicImage) -> bool {
    image.color().has_alpha() && image.to_rgba8().pixels().any(|it| it.0[3] < u8::MAX)
}

/// Encodes a picture without loss, with 8 bits per channel.
///
/// # Errors
/// Returns `Unreadable` when the format cannot hold the picture.
pub fn encode(image: &DynamicImage, format: ImageFormat) -> Result<Vec<u8>, PictureError> {
    let plain = match image.color().has_alpha() {
        true => DynamicImage::from(image.to_rgba8()),
        false => DynamicImage::from(image.to_rgb8()),
    };
    let mut bytes = Vec::new();
    plain
        .write_to(Cursor::new(&mut bytes), format)
        .map_err(|_| PictureError::Unreadable)?;
    Ok(bytes)
}

/// Encodes a picture as a JPEG.
///
/// # Errors
/// Returns `Unreadable` when a JPEG cannot hold the picture.
pub fn encode_jpeg(image: &DynamicImage, quality: u8) -> Result<Vec<u8>, PictureError> {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
    let encoded = image.to_rgb8().write_with_encoder(encoder);
    encoded.map_err(|_| PictureError::Unreadable)?;
    Ok(bytes)
}

fn from_image_error(error: image::ImageError) -> PictureError {
    match error {
        image::ImageError::Limits(_) => PictureError::TooLarge,
        _ => PictureError::Unreadable,
    }
}
