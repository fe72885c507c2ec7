//! Sets of kernel sources that were measured to compute the recipes.
//!
//! A transcript states which sources ran. Each set in `kernels/measured.json`
//! was compared with the emulator on hardware; when a kernel changes, a new set
//! is measured and added, and transcripts of the old one remain decidable.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::data::KERNEL_SETS;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelSet {
    #[serde(rename = "evidence")]
    _evidence: String,
    nvrtc_options: Vec<String>,
    /// SHA-256 in hex, by file name.
    kernels: BTreeMap<String, String>,
}

/// Says whether these sources, compiled with these options, were measured, else
/// how they differ from the set measured last.
///
/// # Errors
/// A sentence.
pub fn measured<'a>(
    kernels: impl Iterator<Item = (&'a str, String)>,
    nvrtc_options: &[String],
) -> Result<(), String> {
    let sets: Vec<KernelSet> = serde_json::from_str(KERNEL_SETS)
        .map_err(|error| format!("kernels/measured.json: {error}"))?;
    let stated: BTreeMap<String, String> =
        kernels.map(|(name, digest)| (name.to_owned(), digest)).collect();
    let fits = |set: &KernelSet| set.kernels == stated && set.nvrtc_options == nvrtc_options;
    if sets.iter().any(fits) {
        return Ok(());
    }
    let Some(last) = sets.last() else { return Err("no kernels were measured".into()) };
    for (name, digest) in &last.kernels {
        match stated.get(name) {
            Some(found) if found == digest => {}
            Some(found) => {
                return Err(format!("kernel {name} has digest {found}, {digest} was measured"));
            }
            None => return Err(format!("kernel {name} is not listed")),
        }
    }
    match stated.keys().find(|name| !last.kernels.contains_key(*name)) {
        Some(name) => Err(format!("kernel {name} was never measured")),
        None => Err(format!(
            "kernels were compiled with {nvrtc_options:?}, measured with {:?}",
            last.nvrtc_options
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{NVRTC_OPTIONS, kernel_digests};

    fn own() -> Vec<(&'static str, String)> {
        kernel_digests().map(|(name, digest)| (name, digest.to_string())).collect()
    }

    fn options() -> Vec<String> {
        NVRTC_OPTIONS.iter().map(|&option| option.to_owned()).collect()
    }

    #[test]
    fn the_kernels_of_this_program_were_measured() {
        assert_eq!(measured(own().into_iter(), &options()), Ok(()));
    }

    #[test]
    fn another_source_or_option_was_not() {
        let mut other = own();
        other[1].1 = "00".repeat(32);
        let refusal = measured(other.into_iter(), &options()).unwrap_err();
        assert!(refusal.contains("attention.cu"), "{refusal}");
        let mut fast = options();
        fast.push("--use_fast_math".into());
        let refusal = measured(own().into_iter(), &fast).unwrap_err();
        assert!(refusal.contains("--use_fast_math"), "{refusal}");
        let refusal = measured(own().into_iter().skip(1), &options()).unwrap_err();
        assert!(refusal.contains("argmax.cu is not listed"), "{refusal}");
        let extra = own().into_iter().chain([("new.cu", String::new())]);
        assert!(measured(extra, &options()).unwrap_err().contains("new.cu was never measured"));
    }
}
