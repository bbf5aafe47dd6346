//! Refuses the binary files of Risu by what they are, before an import reads them as something else.

use std::io::{Read, Seek};

use tavern::documents::risu_binary;
use tavern::documents::risu_binary::RisuBinary;

use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::upload::{MemoryUpload, TempFileUpload};

/// Refuses a file in memory if it is one of them.
///
/// # Errors
/// Returns 422 `risu_module` or `risu_preset`.
pub fn refuse_in_memory(file: &MemoryUpload) -> ApiResult<()> {
    let head = &file.bytes[..file.bytes.len().min(risu_binary::HEAD_BYTES)];
    refuse(&file.name, head, file.bytes.len() as u64)
}

/// Refuses a file on disk if it is one of them, and leaves it at its start. Blocks.
///
/// # Errors
/// Returns 422 `risu_module` or `risu_preset`, and 500 when the file cannot be read.
pub fn refuse_on_disk(file: &mut TempFileUpload) -> ApiResult<()> {
    let mut head = Vec::new();
    let mut beginning = (&mut file.file).take(risu_binary::HEAD_BYTES as u64);
    let read = beginning.read_to_end(&mut head);
    read.and_then(|_| file.file.rewind())
        .map_err(ApiError::internal)?;
    refuse(&file.name, &head, file.n_bytes)
}

fn refuse(name: &str, head: &[u8], n_bytes: u64) -> ApiResult<()> {
    match risu_binary::detect(name, head, n_bytes) {
        None => Ok(()),
        Some(it @ RisuBinary::Module) => Err(ApiError::new(422, "risu_module", it.refusal())),
        Some(it @ RisuBinary::Preset) => Err(ApiError::new(422, "risu_preset", it.refusal())),
    }
}
