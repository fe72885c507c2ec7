//! From a column's description to the computation that must reproduce it.

use std::path::Path;

use super::ConformanceError;
use super::file::{Column, ElementFormat, Header, Record};
use crate::isa::mma::{
    Format, MmaProfile, Operands, Rounding, ScaleFormat, Scales, block_scale, chain, emulated_fp8,
    fma_chain,
};
use crate::isa::profile::Profile;

/// What to do with a column.
pub(super) enum Plan {
    /// Compute every record with the parameters of this profile.
    Run { profile: String, computation: Computation },
    /// Nothing, for this reason.
    NotCovered(String),
}

/// One output's computation.
pub(super) enum Computation {
    Chain {
        profile: MmaProfile,
        operands: Operands,
        block: usize,
    },
    Emulated {
        half: MmaProfile,
        operands: Operands,
    },
    BlockScale {
        profile: MmaProfile,
        operands: Operands,
        group: usize,
        format: ScaleFormat,
        shared_by: usize,
    },
    FmaChain,
}

impl Computation {
    pub(super) fn run(&self, record: &Record<'_>) -> u64 {
        let narrow =
            |words: Vec<u64>| words.into_iter().map(|word| word as u32).collect::<Vec<_>>();
        let (a, b, c) = (narrow(record.a()), narrow(record.b()), record.c() as u32);
        u64::from(match self {
            Self::Chain { profile, operands, block } => {
                chain(profile, *operands, *block, &a, &b, c)
            }
            Self::Emulated { half, operands } => emulated_fp8(half, *operands, &a, &b, c),
            Self::BlockScale { profile, operands, group, format, shared_by } => {
                let (sa, sb) = record.scales();
                let (sa, sb) = (narrow(sa), narrow(sb));
                let scales = Scales { format: *format, shared_by: *shared_by, a: &sa, b: &sb };
                block_scale(profile, *operands, *group, scales, (&a, &b), c)
            }
            Self::FmaChain => return fma_chain(&record.a(), &record.b(), record.c()),
        })
    }
}

/// How an instruction's text in a header is to be read.
enum Kind {
    /// One instruction.
    Single,
    /// The instruction applied until K is used up.
    Chained,
    /// Two binary16 instructions and an addition.
    Emulated,
}

/// Instruction texts, by their beginning, and what they name. WMMA compiles to
/// HMMA, the instruction behind `mma.sync`.
const TEXTS: [(&str, &str, Kind); 9] = [
    ("mma.sync (emulated by two HMMA + add)", "mma.sync", Kind::Emulated),
    ("mma.sync m16n8k32 compiled to two HMMA + add", "mma.sync", Kind::Emulated),
    ("mma.sync m16n8k32 (QMMA)", "mma.sync", Kind::Single),
    ("mma.sync chain (C=+0, k ascending, 16 at a time)", "mma.sync", Kind::Chained),
    ("WMMA API (HMMA)", "mma.sync", Kind::Single),
    ("wgmma (QGMMA), C=0", "wgmma", Kind::Single),
    ("mma.sync.block_scale", "mma.sync.block_scale", Kind::Single),
    ("tcgen05.mma.block_scale", "tcgen05.mma.block_scale", Kind::Single),
    ("", "", Kind::Single), // the text is the name
];

/// Plans a column: one plan for each architecture that it names.
///
/// # Errors
/// [`ConformanceError::Parameter`] if the header contradicts the profile.
pub(super) fn plan(
    path: &Path,
    header: &Header,
    index: usize,
    column: &Column,
) -> Result<Vec<Plan>, ConformanceError> {
    let mut plans = Vec::new();
    for arch in column.arch.split(", ") {
        // "sm_100" tells the data-centre part from RTX Blackwell, which has its
        // own name here.
        let arch = arch.strip_suffix(" sm_100").unwrap_or(arch);
        let Some(profile) = find_profile(arch, column.gpu.as_deref())? else {
            let gpu = column.gpu.as_deref().unwrap_or("any GPU");
            plans.push(Plan::NotCovered(format!("no profile for {arch}, {gpu}")));
            continue;
        };
        let (computation, known) = match resolve(&profile, header, column) {
            Ok(found) => found,
            Err(reason) => {
                plans.push(Plan::NotCovered(reason));
                continue;
            }
        };
        if let Some((parameter, stated, known)) = known.contradiction(column) {
            return Err(ConformanceError::Parameter {
                path: path.to_owned(),
                column: index,
                profile: profile.id,
                parameter,
                stated,
                known,
            });
        }
        plans.push(Plan::Run { profile: profile.id, computation });
    }
    Ok(plans)
}

/// Finds the profile of an architecture, and of a GPU where one is named.
/// Profiles of one architecture agree (a test says so), so without a GPU the
/// newest stands for all.
fn find_profile(arch: &str, gpu: Option<&str>) -> Result<Option<Profile>, ConformanceError> {
    let mut found = None;
    for id in Profile::ids() {
        let profile = Profile::by_id(id)?;
        let names_gpu = gpu.is_none_or(|gpu| profile.gpus.iter().any(|known| known == gpu));
        if profile.arch == arch && names_gpu {
            found = Some(profile);
        }
    }
    Ok(found)
}

/// Finds the computation in a profile, or says why there is none.
fn resolve(
    profile: &Profile,
    header: &Header,
    column: &Column,
) -> Result<(Computation, Known), String> {
    let (name, kind) = TEXTS
        .iter()
        .find(|(text, ..)| column.instr.starts_with(text))
        .map(|(text, name, kind)| (if text.is_empty() { &column.instr[..] } else { name }, kind))
        .ok_or_else(|| format!("instruction {} is not understood", column.instr))?;
    let k = instruction_k(&column.shape)
        .ok_or_else(|| format!("no K in the shape {}", column.shape))?;
    let fits = match kind {
        Kind::Single | Kind::Emulated => header.k == k,
        Kind::Chained => header.k.is_multiple_of(k),
    };
    if !fits {
        return Err(format!("K is {}, the instruction's {k}", header.k));
    }
    let named = |names: &[String]| names.iter().any(|known| known == name);
    let has_k = |ks: &[u16]| ks.iter().any(|&known| usize::from(known) == k);
    let none = || {
        format!(
            "profile {} has no {} of {} x {} + {} -> {}, k {k}",
            profile.id,
            column.instr,
            header.a.name(),
            header.b.name(),
            header.c.name(),
            header.d.name()
        )
    };

    use ElementFormat::{Binary64, Tensor};
    let (Tensor(a), Tensor(b), Tensor(c), Tensor(d)) = (header.a, header.b, header.c, header.d)
    else {
        let all_binary64 = [header.a, header.b, header.c, header.d]
            .iter()
            .all(|format| matches!(format, Binary64(_)));
        let chain = profile.fp64.as_ref();
        return match chain.filter(|chain| named(&chain.names) && has_k(&chain.k)) {
            Some(_) if all_binary64 => Ok((Computation::FmaChain, Known::binary64())),
            Some(_) | None => Err(none()),
        };
    };
    let operands = Operands { a, b, c };

    if let (Some(format), Some(shared_by)) = (header.scale_type, header.scale_block) {
        let entry = profile.block_scale.values().find(|entry| {
            named(&entry.names)
                && usize::from(entry.k) == k
                && entry.a.contains(&a)
                && entry.b.contains(&b)
                && entry
                    .scales
                    .iter()
                    .any(|&(known, shared)| known == format && usize::from(shared) == shared_by)
        });
        let entry = entry.filter(|_| c == Format::F32 && d == Format::F32).ok_or_else(none)?;
        let group = usize::from(entry.group);
        let known = Known::new(&entry.profile, k, group);
        let profile = entry.profile;
        return Ok((
            Computation::BlockScale { profile, operands, group, format, shared_by },
            known,
        ));
    }

    if let Kind::Emulated = kind {
        let entry = profile.emulated.values().find(|entry| {
            named(&entry.names)
                && usize::from(entry.k) == k
                && entry.a.contains(&a)
                && entry.b.contains(&b)
                && entry.cd == c
                && entry.cd == d
        });
        let half = entry.and_then(|entry| profile.mma(&entry.through)).ok_or_else(none)?;
        let known = Known::new(half, usize::from(half.n_fma), 1);
        return Ok((Computation::Emulated { half: *half, operands }, known));
    }

    let entry = profile.mma.values().find(|entry| {
        named(&entry.names)
            && has_k(&entry.k)
            && entry.a.contains(&a)
            && entry.b.contains(&b)
            && entry.c.contains(&c)
            && entry.d == d
    });
    let profile = entry.ok_or_else(none)?.profile;
    let block = k.min(usize::from(profile.n_fma));
    Ok((Computation::Chain { profile, operands, block }, Known::new(&profile, block, 1)))
}

/// Returns the K of a PTX shape such as `m16n8k16.f32` or `k8`.
fn instruction_k(shape: &str) -> Option<usize> {
    let shape = shape.split('.').next()?;
    shape[shape.find('k')? + 1..].parse().ok()
}

/// Parameters as the profile knows them, in the words of the file format.
struct Known {
    block: usize,
    fraction_bits: Option<i32>,
    rho: &'static str,
    e_zero: Option<i32>,
    group: usize,
}

impl Known {
    fn new(profile: &MmaProfile, block: usize, group: usize) -> Self {
        Self {
            block,
            fraction_bits: Some(23 + i32::from(profile.neab)),
            rho: match profile.rounding {
                Rounding::TowardZeroF32 => "RZ-FP32",
                Rounding::TowardZeroE8m13 => "RZ-E8M13",
                Rounding::NearestF16 => "RNE-FP16",
            },
            e_zero: Some(i32::from(profile.min_alignment_exponent)),
            group,
        }
    }

    fn binary64() -> Self {
        let rho = "RNE-FP64 (fma chain)";
        Self { block: 1, fraction_bits: None, rho, e_zero: None, group: 1 }
    }

    /// Returns the first parameter that the file states and that differs.
    fn contradiction(&self, column: &Column) -> Option<(&'static str, String, String)> {
        fn differs<T: PartialEq + std::fmt::Display>(
            name: &'static str,
            stated: Option<T>,
            known: Option<T>,
        ) -> Option<(&'static str, String, String)> {
            let stated = stated?;
            let same = known.as_ref() == Some(&stated);
            let known = known.map_or("none".to_owned(), |known| known.to_string());
            (!same).then(|| (name, stated.to_string(), known))
        }
        differs("L", column.block, Some(self.block))
            .or_else(|| differs("F", column.fraction_bits, self.fraction_bits))
            .or_else(|| differs("rho", column.rho.as_deref(), Some(self.rho)))
            .or_else(|| differs("e_zero", column.e_zero, self.e_zero))
            .or_else(|| differs("G", column.group, Some(self.group)))
    }
}
