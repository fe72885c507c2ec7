//! One weight file or many with an index: which file has which tensor.

use std::collections::BTreeMap;

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use super::{Place, map};
use crate::model::files::{Folder, ModelFile};
use crate::model::{ModelError, json};

/// The weight files of a folder and the tensors in them.
pub(super) struct Shards {
    pub(super) index: Option<ModelFile>,
    pub(super) files: Vec<ModelFile>,
    pub(super) tensors: BTreeMap<String, Place>,
}

/// Maps the weight files. Two sets of weights are refused: which one counts
/// differs between readers.
///
/// # Errors
/// [`ModelError`], naming the file or tensor.
pub(super) fn open(folder: &Folder) -> Result<Shards, ModelError> {
    let path = || folder.path().to_path_buf();
    match (folder.exists(SINGLE), folder.exists(INDEX)) {
        (true, true) => Err(ModelError::TwoWeightSets { folder: path() }),
        (false, false) => Err(ModelError::MissingWeights { folder: path() }),
        (true, false) => {
            let files = vec![map(folder.open_file(SINGLE)?)?];
            let tensors = read_header(&files[0], 0)?;
            Ok(Shards { index: None, files, tensors })
        }
        (false, true) => open_indexed(folder),
    }
}

fn open_indexed(folder: &Folder) -> Result<Shards, ModelError> {
    let index = folder.read(INDEX)?;
    let placed = read_index(index.bytes())?;
    let mut names: Vec<&String> = placed.values().collect();
    names.sort();
    names.dedup();

    let mut files = Vec::new();
    let mut tensors = BTreeMap::new();
    for shard in names {
        if !folder.exists(shard) {
            return Err(ModelError::MissingShard {
                shard: shard.clone(),
                tensors: placed.values().filter(|v| *v == shard).count(),
                folder: folder.path().to_path_buf(),
            });
        }
        let file = map(folder.open_file(shard)?)?;
        for (tensor, place) in read_header(&file, files.len())? {
            // A tensor in two shards fails here too: the index names only one.
            if placed.get(&tensor) != Some(shard) {
                let expected = placed.get(&tensor).map_or("in no file", String::as_str).to_owned();
                return Err(ModelError::IndexDisagrees { tensor, expected, found: shard.clone() });
            }
            tensors.insert(tensor, place);
        }
        files.push(file);
    }
    for (tensor, shard) in &placed {
        if !tensors.contains_key(tensor) {
            return Err(ModelError::IndexDisagrees {
                tensor: tensor.clone(),
                expected: shard.clone(),
                found: "no file".into(),
            });
        }
    }
    Ok(Shards { index: Some(index), files, tensors })
}

/// Reads the index into tensor → file, refusing any file not of the folder.
fn read_index(bytes: &[u8]) -> Result<BTreeMap<String, String>, ModelError> {
    let fields = json::object(INDEX, bytes)?;
    let invalid = |field: &str, value: &Value, expected: &str| ModelError::InvalidField {
        file: INDEX.into(),
        field: field.into(),
        value: value.to_string(),
        expected: expected.into(),
    };
    // `metadata` holds sizes for progress bars; other keys are not looked at by
    // any reader known to us, so they are refused.
    for (field, value) in &fields {
        if field != "metadata" && field != "weight_map" {
            return Err(ModelError::UnknownField {
                file: INDEX.into(),
                field: field.clone(),
                value: value.to_string(),
            });
        }
    }
    let Some(weight_map) = fields.get("weight_map") else {
        return Err(ModelError::MissingField { file: INDEX.into(), field: "weight_map".into() });
    };
    let Some(entries) = weight_map.as_object() else {
        return Err(invalid("weight_map", weight_map, "an object"));
    };
    let mut placed = BTreeMap::new();
    for (tensor, value) in entries {
        let Some(shard) = value.as_str() else {
            return Err(invalid(&format!("weight_map.{tensor}"), value, "a file name"));
        };
        if !is_plain_name(shard) {
            let (tensor, shard) = (tensor.clone(), shard.to_owned());
            return Err(ModelError::EscapingShard { tensor, shard });
        }
        placed.insert(tensor.clone(), shard.to_owned());
    }
    Ok(placed)
}

/// True for a file name that cannot leave its folder on any system.
fn is_plain_name(shard: &str) -> bool {
    shard.ends_with(".safetensors")
        && !shard.starts_with('.')
        && !shard.contains(['/', '\\', ':', '\0'])
}

/// Reads the header of one file into tensor → place.
///
/// The length is checked before anything is allocated, then repeated names
/// (which the crate accepts), then everything the crate checks: offsets cover
/// the file from end to end without overlap and agree with shapes.
fn read_header(file: &ModelFile, shard: usize) -> Result<BTreeMap<String, Place>, ModelError> {
    let refused = |reason: String| ModelError::Safetensors { file: file.name().into(), reason };
    let bytes = file.bytes();
    let Some((prefix, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(refused(format!("{} bytes, less than the header's length", bytes.len())));
    };
    let length = u64::from_le_bytes(*prefix);
    if length > MAX_HEADER_BYTES {
        return Err(refused(format!("header of {length} bytes, more than {MAX_HEADER_BYTES}")));
    }
    let length = length as usize;
    let Some(header) = rest.get(..length) else {
        return Err(refused(format!("header of {length} bytes in a file of {}", bytes.len())));
    };
    json::refuse_repeated_keys(header).map_err(|reason| refused(format!("header: {reason}")))?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| refused(e.to_string()))?;

    let data_start = 8 + length;
    // Sorted first, so that of two bad tensors always the same one is named.
    let infos: BTreeMap<_, _> = metadata.tensors().into_iter().collect();
    let mut tensors = BTreeMap::new();
    for (name, info) in infos {
        if info.dtype != Dtype::BF16 {
            return Err(ModelError::TensorType {
                tensor: name,
                found: format!("{:?}", info.dtype),
            });
        }
        let (start, end) = info.data_offsets;
        let bytes = data_start + start..data_start + end;
        tensors.insert(name, Place { shard, shape: info.shape.clone(), bytes });
    }
    Ok(tensors)
}

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Header cap of the safetensors format (`format` section of its README).
const MAX_HEADER_BYTES: u64 = 100_000_000;
