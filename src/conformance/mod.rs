//! Runs vector files against the emulator, bit for bit.
//!
//! A vector file holds inputs and outputs of one dot product through a
//! tensor-core instruction, one output per column (GPU and instruction). Every
//! column is compared or reported as not covered with the reason; none is
//! skipped. The parameters come from the embedded profiles; where the file
//! states them too, a disagreement is an error. Format: `spec/vectors/README.md`.

mod column;
mod file;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::column::Plan;
use self::file::VectorFile;

/// What came out of a set of vector files.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// One report a file, in the order given; folders are sorted by name.
    pub files: Vec<FileReport>,
}

/// What came out of one vector file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// The name that its header gives.
    pub name: String,
    /// Who made the outputs, as the header says.
    pub producer: Option<String>,
    /// Records in the file.
    pub records: usize,
    /// One report a column; a column for two architectures gives two.
    pub columns: Vec<ColumnReport>,
}

/// What came out of one column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ColumnReport {
    /// Position in the record's `d` array.
    pub column: usize,
    /// Instruction, architecture or GPU, and shape, as the header gives them.
    pub label: String,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Result of one column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Every record was computed and compared.
    Compared {
        /// Profile that gave the parameters.
        profile: String,
        /// Outputs compared.
        cases: usize,
        /// Outputs that differ.
        differences: usize,
        /// The first of them.
        first: Option<Difference>,
    },
    /// Nothing was compared.
    NotCovered {
        /// Why.
        reason: String,
    },
}

/// One output that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// Index of the record.
    pub record: usize,
    /// How its inputs were drawn, where the file says.
    pub family: Option<String>,
    /// The file's pattern, hex.
    pub expected: String,
    /// The emulator's pattern, hex.
    pub computed: String,
}

/// Why a vector file could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConformanceError {
    /// The file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder has no `.bin` file in it.
    #[error("no vector file (*.bin) in {}", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not a vector file, or is cut short.
    #[error("{} is not a well-formed vector file: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The file states another parameter than the profile.
    #[error(
        "{}, column {column}: the file says {parameter} = {stated}, profile {profile} says {known}",
        path.display()
    )]
    Parameter {
        /// The file.
        path: PathBuf,
        /// The column's position.
        column: usize,
        /// The profile that was compared.
        profile: String,
        /// Name of the parameter in the file.
        parameter: &'static str,
        /// The file's value.
        stated: String,
        /// The profile's value.
        known: String,
    },
    /// An embedded profile is unusable.
    #[error(transparent)]
    Profile(#[from] crate::isa::profile::ProfileError),
}

/// Runs one vector file.
///
/// # Errors
/// [`ConformanceError`] if the file cannot be read, is malformed, or contradicts
/// a profile. Outputs that differ are a result, not an error.
pub fn run_file(path: &Path) -> Result<FileReport, ConformanceError> {
    let bytes = std::fs::read(path)
        .map_err(|source| ConformanceError::Io { path: path.to_owned(), source })?;
    run_bytes(path, &bytes)
}

/// Runs vector files; a folder stands for the `*.bin` files directly in it.
///
/// # Errors
/// As [`run_file`], and [`ConformanceError::Empty`] for a folder without any.
pub fn run_paths(paths: &[PathBuf]) -> Result<Report, ConformanceError> {
    let mut files = Vec::new();
    for path in paths {
        for file in expand(path)? {
            files.push(run_file(&file)?);
        }
    }
    Ok(Report { files })
}

/// Runs a vector file whose bytes are at hand; `path` only names it.
///
/// # Errors
/// As [`run_file`], except for reading.
pub fn run_bytes(path: &Path, bytes: &[u8]) -> Result<FileReport, ConformanceError> {
    let file = VectorFile::parse(bytes)
        .map_err(|problem| ConformanceError::Malformed { path: path.to_owned(), problem })?;
    let mut columns = Vec::new();
    for (column, description) in file.header.columns.iter().enumerate() {
        for plan in column::plan(path, &file.header, column, description)? {
            let outcome = match plan {
                Plan::Run { profile, computation } => {
                    compare(&file, column, profile, |record| computation.run(record))
                }
                Plan::NotCovered(reason) => Outcome::NotCovered { reason },
            };
            columns.push(ColumnReport { column, label: description.label(), outcome });
        }
    }
    Ok(FileReport {
        path: path.to_owned(),
        name: file.header.name.clone(),
        producer: file.header.producer.clone(),
        records: file.header.n,
        columns,
    })
}

impl Report {
    /// Outputs compared.
    pub fn cases(&self) -> usize {
        self.columns().map(|column| column.cases()).sum()
    }

    /// Outputs that differ.
    pub fn differences(&self) -> usize {
        self.columns().map(|column| column.differences()).sum()
    }

    /// Columns that were not compared.
    pub fn not_covered(&self) -> usize {
        self.columns().filter(|column| matches!(column.outcome, Outcome::NotCovered { .. })).count()
    }

    fn columns(&self) -> impl Iterator<Item = &ColumnReport> {
        self.files.iter().flat_map(|file| &file.columns)
    }
}

impl ColumnReport {
    /// Outputs compared.
    pub fn cases(&self) -> usize {
        match self.outcome {
            Outcome::Compared { cases, .. } => cases,
            Outcome::NotCovered { .. } => 0,
        }
    }

    /// Outputs that differ.
    pub fn differences(&self) -> usize {
        match self.outcome {
            Outcome::Compared { differences, .. } => differences,
            Outcome::NotCovered { .. } => 0,
        }
    }
}

fn compare(
    file: &VectorFile<'_>,
    column: usize,
    profile: String,
    compute: impl Fn(&file::Record<'_>) -> u64,
) -> Outcome {
    let (mut differences, mut first) = (0, None);
    for record in file.records() {
        let (expected, computed) = (record.output(column), compute(&record));
        if file.header.same(expected, computed) {
            continue;
        }
        differences += 1;
        if first.is_none() {
            let digits = 2 * file.header.d.size_bytes();
            first = Some(Difference {
                record: record.index,
                family: record.family().map(str::to_owned),
                expected: format!("{expected:0digits$x}"),
                computed: format!("{computed:0digits$x}"),
            });
        }
    }
    Outcome::Compared { profile, cases: file.header.n, differences, first }
}

fn expand(path: &Path) -> Result<Vec<PathBuf>, ConformanceError> {
    let io = |source| ConformanceError::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(io)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let file = entry.map_err(io)?.path();
        if file.extension().is_some_and(|extension| extension == "bin") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(ConformanceError::Empty { path: path.to_owned() });
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
