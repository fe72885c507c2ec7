//! Whether the model is the one stated, found out while it is computed with.
//!
//! Digesting the weights takes seconds that the re-execution can use. So cheap
//! checks come first (names, lengths, digests of small files); if they pass, the
//! files are digested beside the re-execution. A report never shows what was
//! computed with another model: with wrong digests there is only the refusal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::environment::Refusal;
use super::report::Verdict;
use crate::model::{Content, Kind, Manifest, ModelError};
use crate::num::sha256;
use crate::transcript::capture;
use crate::transcript::statement::ModelManifest;

/// Runs `compute` beside the digesting of the model's files. Its argument becomes
/// true when the result will be thrown away.
pub(super) fn beside<T>(
    content: &Content,
    stated: &ModelManifest,
    compute: impl FnOnce(&AtomicBool) -> T,
) -> Result<(Manifest, T), Refusal> {
    let refuted = AtomicBool::new(false);
    if !may_be(content, stated) {
        let manifest = identify(content, stated)?;
        return Ok((manifest, compute(&refuted)));
    }
    thread::scope(|scope| {
        let digesting = scope.spawn(|| {
            let found = identify(content, stated);
            refuted.store(found.is_err(), Ordering::Relaxed);
            found
        });
        let computed = compute(&refuted);
        match digesting.join() {
            Ok(found) => Ok((found?, computed)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Why a folder is not the model stated, if it cannot even be read.
pub(super) fn unreadable(error: &ModelError) -> Refusal {
    Refusal {
        leads_to: match error.kind() {
            Kind::Malformed => Verdict::Malformed,
            Kind::Incomplete => Verdict::Incomplete,
        },
        detail: error.to_string(),
    }
}

/// What a report says beside a result that rests on remembered digests; empty if
/// there are none.
fn remembered(manifest: &Manifest) -> String {
    match (manifest.from_cache(), manifest.files().len()) {
        (0, _) => String::new(),
        (some, all) => {
            format!("; {some} of {all} file digests came from the cache and were not recomputed")
        }
    }
}

/// The sentence of a model that is the one stated, with what a reader of its folder
/// would not expect.
pub(super) fn detail(content: &Content, stated: &ModelManifest, manifest: &Manifest) -> String {
    let (folder, files) = (content.folder().display(), manifest.files().len());
    let remembered = remembered(manifest);
    let warnings: String =
        content.warnings().iter().map(|warning| format!("; {warning}")).collect();
    format!("{folder}: {files} files match the manifest {}{remembered}{warnings}", stated.digest)
}

/// Whether the files have the stated names and lengths, and the small ones the
/// stated digests.
pub(super) fn may_be(content: &Content, stated: &ModelManifest) -> bool {
    let same = |file: &crate::model::files::ModelFile| {
        stated.file(file.name()).is_some_and(|stated| {
            stated.len_bytes == file.bytes().len() as u64
                && (file.is_mapped() || stated.sha256 == sha256(&[file.bytes()]))
        })
    };
    content.files().count() == stated.files.len() && content.files().all(same)
}

/// Digests the model's files and requires them to be those stated.
fn identify(content: &Content, stated: &ModelManifest) -> Result<Manifest, Refusal> {
    // In threads of their own: a file of gigabytes would keep one of those that
    // compute for seconds.
    let threads = rayon::current_num_threads().min(stated.files.len()).max(1);
    let digested = match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(|| content.digest()),
        Err(_) => content.digest(),
    };
    let manifest = digested.map_err(|error| unreadable(&error))?;
    let found = capture::manifest_of(content.name(), &manifest);
    let differences = stated.differences(&found);
    if differences.is_empty() {
        return Ok(manifest);
    }
    let (folder, remembered) = (content.folder().display(), remembered(&manifest));
    Err(Refusal {
        leads_to: Verdict::Incomplete,
        detail: format!("{folder}: {}{remembered}", differences.join("; ")),
    })
}
