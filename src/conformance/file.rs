//! The vector file format: one JSON header line, then fixed-size records.

use serde::Deserialize;

use crate::isa::mma::{Format, ScaleFormat};

/// A parsed vector file: header checked, records still bytes.
pub(super) struct VectorFile<'b> {
    pub(super) header: Header,
    layout: Layout,
    body: &'b [u8],
}

/// The header line. Keys that are not listed are refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) producer: Option<String>,
    pub(super) a: ElementFormat,
    pub(super) b: ElementFormat,
    pub(super) c: ElementFormat,
    pub(super) d: ElementFormat,
    pub(super) k: usize,
    pub(super) n: usize,
    record_bytes: usize,
    fields: Vec<(String, Width, usize)>,
    #[serde(default)]
    families: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) scale_type: Option<ScaleFormat>,
    pub(super) scale_block: Option<usize>,
}

/// Format of an operand or output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ElementFormat {
    /// One that block FMAs know.
    Tensor(Format),
    /// binary64.
    Binary64(Binary64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub(super) enum Binary64 {
    #[serde(rename = "f64")]
    F64,
}

/// One output of a record: where it comes from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) instr: String,
    pub(super) arch: String,
    pub(super) gpu: Option<String>,
    pub(super) shape: String,
    /// Products per block.
    #[serde(rename = "L")]
    pub(super) block: Option<usize>,
    /// Fraction bits kept in alignment.
    #[serde(rename = "F")]
    pub(super) fraction_bits: Option<i32>,
    /// Final conversion.
    pub(super) rho: Option<String>,
    /// Exponent floor.
    pub(super) e_zero: Option<i32>,
    /// Products per exactly summed group.
    #[serde(rename = "G")]
    pub(super) group: Option<usize>,
    /// Order of an emulated instruction, prose.
    #[serde(rename = "order")]
    _order: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Width {
    U8,
    U16,
    U32,
    U64,
}

#[derive(Clone, Copy)]
struct Slot {
    offset: usize,
    width: Width,
    count: usize,
}

struct Layout {
    family: Option<Slot>,
    a: Slot,
    b: Slot,
    c: Option<Slot>,
    scales: Option<(Slot, Slot)>,
    d: Slot,
}

/// One record.
pub(super) struct Record<'f> {
    pub(super) index: usize,
    bytes: &'f [u8],
    file: &'f VectorFile<'f>,
}

/// Longest header line that is read; the longest known is 3 KiB.
const MAX_HEADER_BYTES: usize = 1 << 20;

impl<'b> VectorFile<'b> {
    /// Parses and checks a file; the error says what is wrong with it.
    pub(super) fn parse(bytes: &'b [u8]) -> Result<Self, String> {
        let line = bytes.iter().take(MAX_HEADER_BYTES).position(|&byte| byte == b'\n');
        let (line, body) = match line {
            Some(end) => (&bytes[..end], &bytes[end + 1..]),
            None => return Err("there is no header line".to_owned()),
        };
        let header: Header =
            serde_json::from_slice(line).map_err(|error| format!("header: {error}"))?;
        let layout = header.layout()?;
        let expected = header
            .n
            .checked_mul(header.record_bytes)
            .ok_or_else(|| format!("{} records of {} bytes", header.n, header.record_bytes))?;
        if header.n == 0 {
            return Err("it has no records".to_owned());
        }
        if body.len() != expected {
            return Err(format!(
                "{} records of {} bytes are {expected} bytes, the file has {}",
                header.n,
                header.record_bytes,
                body.len()
            ));
        }
        let file = Self { header, layout, body };
        if let Some(slot) = file.layout.family {
            for record in file.records() {
                let family = record.word(slot, 0);
                if family >= file.header.families.len() as u64 {
                    return Err(format!("record {} is of unnamed family {family}", record.index));
                }
            }
        }
        Ok(file)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.body.chunks_exact(self.header.record_bytes).enumerate().map(|(index, bytes)| Record {
            index,
            bytes,
            file: self,
        })
    }
}

impl Header {
    /// True if two outputs are the same: bits, except that binary64 NaNs compare
    /// by class (their pattern is open, see [`crate::isa::mma::fma_chain`]).
    pub(super) fn same(&self, x: u64, y: u64) -> bool {
        match self.d {
            ElementFormat::Tensor(_) => x == y,
            ElementFormat::Binary64(_) => {
                x == y || (f64::from_bits(x).is_nan() && f64::from_bits(y).is_nan())
            }
        }
    }

    fn layout(&self) -> Result<Layout, String> {
        let mut offset = 0usize;
        let mut slots = std::collections::BTreeMap::new();
        for (name, width, count) in &self.fields {
            let slot = Slot { offset, width: *width, count: *count };
            offset = width
                .bytes()
                .checked_mul(*count)
                .and_then(|bytes| offset.checked_add(bytes))
                .ok_or_else(|| format!("field {name} is too long"))?;
            if slots.insert(name.as_str(), slot).is_some() {
                return Err(format!("field {name} occurs twice"));
            }
        }
        if offset != self.record_bytes {
            return Err(format!(
                "fields take {offset} bytes, record_bytes is {}",
                self.record_bytes
            ));
        }
        if self.k == 0 || self.columns.is_empty() {
            return Err(format!("k is {}, columns are {}", self.k, self.columns.len()));
        }
        let mut take = |name: &str, width: Width, count: usize| match slots.remove(name) {
            Some(slot) if slot.width == width && slot.count == count => Ok(Some(slot)),
            Some(slot) => Err(format!(
                "field {name} is {} of {} bytes, expected {count} of {}",
                slot.count,
                slot.width.bytes(),
                width.bytes()
            )),
            None => Ok(None),
        };
        let missing = |name: &str| format!("field {name} is missing");
        let family = take("fam", Width::U8, 1)?;
        let a = take("a", self.a.width(), self.k)?.ok_or_else(|| missing("a"))?;
        let b = take("b", self.b.width(), self.k)?.ok_or_else(|| missing("b"))?;
        let c = take("c", self.c.width(), 1)?;
        let d = take("d", self.d.width(), self.columns.len())?.ok_or_else(|| missing("d"))?;
        let scales = match (self.scale_type, self.scale_block) {
            (None, None) => None,
            (Some(_), Some(block)) if block > 0 && self.k.is_multiple_of(block) => {
                let count = self.k / block;
                let sa = take("sa", Width::U8, count)?.ok_or_else(|| missing("sa"))?;
                Some((sa, take("sb", Width::U8, count)?.ok_or_else(|| missing("sb"))?))
            }
            (Some(_), Some(block)) => return Err(format!("scale_block is {block}, k {}", self.k)),
            (None, Some(_)) | (Some(_), None) => {
                return Err("scale_type and scale_block come together".to_owned());
            }
        };
        if let Some(name) = slots.keys().next() {
            return Err(format!("field {name} is not understood"));
        }
        Ok(Layout { family, a, b, c, scales, d })
    }
}

impl ElementFormat {
    fn width(self) -> Width {
        match self {
            Self::Tensor(Format::F32 | Format::Tf32) => Width::U32,
            Self::Tensor(Format::F16 | Format::Bf16) => Width::U16,
            Self::Tensor(
                Format::E5m2 | Format::E4m3 | Format::E3m2 | Format::E2m3 | Format::E2m1,
            ) => Width::U8,
            Self::Binary64(_) => Width::U64,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tensor(format) => format.name(),
            Self::Binary64(_) => "f64",
        }
    }

    pub(super) fn size_bytes(self) -> usize {
        self.width().bytes()
    }
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
            Self::U64 => 8,
        }
    }
}

impl Column {
    /// Instruction, GPU or architecture, and shape in one line.
    pub(super) fn label(&self) -> String {
        let gpu = self.gpu.as_ref().unwrap_or(&self.arch);
        format!("{} | {gpu} | {}", self.instr, self.shape)
    }
}

impl<'f> Record<'f> {
    /// Codes of A.
    pub(super) fn a(&self) -> Vec<u64> {
        self.words(self.file.layout.a)
    }

    /// Codes of B.
    pub(super) fn b(&self) -> Vec<u64> {
        self.words(self.file.layout.b)
    }

    /// The accumulator that goes in; `+0` where the file has none.
    pub(super) fn c(&self) -> u64 {
        self.file.layout.c.map_or(0, |slot| self.word(slot, 0))
    }

    /// Scale codes of A and B.
    pub(super) fn scales(&self) -> (Vec<u64>, Vec<u64>) {
        self.file
            .layout
            .scales
            .map_or((Vec::new(), Vec::new()), |(a, b)| (self.words(a), self.words(b)))
    }

    /// The output of a column.
    pub(super) fn output(&self, column: usize) -> u64 {
        self.word(self.file.layout.d, column)
    }

    /// How the inputs were drawn.
    pub(super) fn family(&self) -> Option<&'f str> {
        let index = self.word(self.file.layout.family?, 0);
        self.file.header.families.get(index as usize).map(String::as_str)
    }

    fn words(&self, slot: Slot) -> Vec<u64> {
        (0..slot.count).map(|index| self.word(slot, index)).collect()
    }

    fn word(&self, slot: Slot, index: usize) -> u64 {
        let start = slot.offset + index * slot.width.bytes();
        let bytes = &self.bytes[start..start + slot.width.bytes()];
        bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte))
    }
}
