//! Attention of one layer: a prompt's rows together, and one row of a decode step.

use std::hint::black_box;

use serde::Serialize;

use super::rounds::{Budget, Checked, Figures, alternate};
use super::{BenchError, SCALAR, bf16, one_thread, operands};
use crate::engine::heads::Attention;
use crate::isa::mma::Simd;
use crate::num::Bf16;
use crate::recipe::RecipeError;
use crate::recipe::attention::HeadRows;
use crate::recipe::attention::flash2::flash2_row;
use crate::recipe::gemm::Walk;

/// What to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttentionRequest {
    /// Id of the profile.
    pub profile: String,
    /// Context lengths (tokens).
    pub lengths: Vec<usize>,
    /// The heads of a layer.
    pub heads: Heads,
    /// The form of the lanes.
    pub simd: Simd,
    /// Rounds for each length.
    pub budget: Budget,
}

/// Heads of a layer, each of 128 elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Heads {
    /// Query heads (count).
    pub query: usize,
    /// Key and value heads (count); divides the query heads.
    pub key_value: usize,
}

/// All lengths measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AttentionReport {
    /// The profile's id.
    pub profile: String,
    /// The heads of a layer.
    pub heads: Heads,
    /// The form of the lanes.
    pub simd: &'static str,
    /// Two entries a length: all rows of a prompt, and the last row alone.
    pub lengths: Vec<LengthReport>,
}

/// Rows of one layer at one length.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LengthReport {
    /// Keys that the last row sees (tokens).
    pub length: usize,
    /// Rows computed together: all, or the last one.
    pub rows: usize,
    /// Multiply-adds with the keys that rows see (count); tiles have some more.
    pub multiply_adds: u64,
    /// Heads of rows compared with the scalar text, 128 outputs each (count).
    pub compared_with_scalar_text: usize,
    /// Rounds (count).
    pub rounds: usize,
    /// One core, seconds for the layer.
    pub one_core_seconds: Figures,
    /// One core, 10^9 multiply-adds a second.
    pub one_core_gmac_per_s: Figures,
    /// All threads.
    pub all_cores_gmac_per_s: Figures,
    /// All threads over one core.
    pub scaling: Figures,
}

impl Heads {
    /// Those of Qwen3-4B.
    pub const QWEN3_4B: Self = Self { query: 32, key_value: 8 };
}

/// Checks, then measures, every length.
///
/// # Errors
/// [`BenchError::Differs`] if a sampled head is not the scalar text's, or one
/// thread's outputs are not those of all; [`BenchError::Profile`];
/// [`BenchError::Threads`].
pub fn attention(request: &AttentionRequest) -> Result<AttentionReport, BenchError> {
    let mut lengths = Vec::new();
    for &length in &request.lengths {
        let layer = Layer::new(request, length)?;
        for rows in [length, 1] {
            lengths.push(layer.measure(rows, request.budget)?);
        }
    }
    let (profile, heads, simd) = (request.profile.clone(), request.heads, request.simd.name());
    Ok(AttentionReport { profile, heads, simd, lengths })
}

/// Queries, keys and values of one layer.
struct Layer {
    walk: Walk,
    heads: Heads,
    length: usize,
    queries: Vec<Bf16>,
    keys: Vec<Bf16>,
    values: Vec<Bf16>,
}

impl Layer {
    fn new(request: &AttentionRequest, length: usize) -> Result<Self, BenchError> {
        let Heads { query, key_value } = request.heads;
        let rows = |seed, heads| {
            let mut random = operands::Random::new(seed);
            (0..length * heads * HEAD_DIM).map(|_| random.normal(0)).collect()
        };
        Ok(Self {
            walk: Walk::new(&bf16(&request.profile)?, request.simd),
            heads: request.heads,
            length,
            queries: rows(1, query),
            keys: rows(2, key_value),
            values: rows(3, key_value),
        })
    }

    fn measure(&self, rows: usize, budget: Budget) -> Result<LengthReport, BenchError> {
        let width = self.heads.query * HEAD_DIM;
        let blank = vec![Bf16::ZERO; rows * width];
        let what = format!("attention of {rows} rows at {} keys", self.length);
        let sample = self.sample(rows)?;
        let expected = sample.iter().flat_map(|(first, head)| {
            head.iter().enumerate().map(move |(index, &x)| (first + index, x))
        });
        let positions: Vec<usize> = (self.length - rows..self.length).collect();
        let attention = Attention {
            queries: &self.queries[(self.length - rows) * width..],
            keys: &self.keys,
            values: &self.values,
            positions: &positions,
            query_heads: self.heads.query,
            kv_heads: self.heads.key_value,
            head_dim: HEAD_DIM,
        };
        let one = one_thread()?;
        let whole = one.install(|| attention.compute(&self.walk))?;
        let all_cores = |out: &mut [Bf16]| {
            // Operands that are refused ended the call above.
            if let Ok(found) = black_box(attention).compute(&self.walk) {
                out.copy_from_slice(&found);
            }
        };
        let one_core = |out: &mut [Bf16]| one.install(|| all_cores(out));
        let others = whole.iter().copied().enumerate();
        let mut works = [
            Checked::new(&what, SCALAR, expected, blank.clone(), one_core)?,
            Checked::new(
                &format!("{what}, all cores"),
                "one core's output",
                others,
                blank,
                all_cores,
            )?,
        ];
        let times = alternate(&mut works, budget);
        let (one_core, all_cores) = (&times[0], &times[1]);
        let keys: usize = (self.length - rows + 1..=self.length).sum();
        // Two products: with the keys, and with the values.
        let multiply_adds = (2 * keys * width) as u64;
        Ok(LengthReport {
            length: self.length,
            rows,
            multiply_adds,
            compared_with_scalar_text: sample.len(),
            rounds: one_core.rounds(),
            one_core_seconds: one_core.seconds(),
            one_core_gmac_per_s: one_core.rate(multiply_adds),
            all_cores_gmac_per_s: all_cores.rate(multiply_adds),
            scaling: all_cores.speed_ratio(one_core),
        })
    }

    /// Heads of some rows by the scalar text, the last row among them, and where
    /// they are in the output.
    fn sample(&self, rows: usize) -> Result<Vec<(usize, Vec<Bf16>)>, BenchError> {
        let Heads { query, key_value } = self.heads;
        let mut random = operands::Random::new(4);
        let mut sample = Vec::new();
        for index in 0..SAMPLES {
            let row = if index == 0 { rows - 1 } else { random.below(rows) };
            let head = random.below(query);
            let position = self.length - rows + row;
            let q = &self.queries[(position * query + head) * HEAD_DIM..][..HEAD_DIM];
            let (keys, values) = self.cache(head / (query / key_value))?;
            let mut out = vec![Bf16::ZERO; HEAD_DIM];
            flash2_row(self.walk.profile(), q, keys, values, position, &mut out)?;
            sample.push(((row * query + head) * HEAD_DIM, out));
        }
        Ok(sample)
    }

    /// Rows of a key/value head.
    fn cache(&self, head: usize) -> Result<(HeadRows<'_>, HeadRows<'_>), RecipeError> {
        let heads = self.heads.key_value;
        let rows = |cache| HeadRows::new(cache, heads, head, HEAD_DIM);
        Ok((rows(&self.keys)?, rows(&self.values)?))
    }
}

/// Elements of a head.
const HEAD_DIM: usize = 128;
/// Heads of rows that the scalar text computes: 15 ms each at 4,000 keys.
const SAMPLES: usize = 16;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rows_alone_and_together_are_the_scalar_text() {
        for profile in ["h200", "a100"] {
            let request = AttentionRequest {
                profile: profile.into(),
                lengths: vec![1, 70],
                heads: Heads { query: 4, key_value: 2 },
                simd: Simd::detect(),
                budget: Budget { rounds: 1, time: Duration::ZERO },
            };
            let report = attention(&request).unwrap();
            let rows: Vec<_> = report.lengths.iter().map(|l| (l.length, l.rows)).collect();
            assert_eq!(rows, [(1, 1), (1, 1), (70, 70), (70, 1)]);
            // 1 + 2 + … + 70 keys, two products, 4 heads of 128.
            assert_eq!(report.lengths[2].multiply_adds, 2485 * 2 * 512);
            assert_eq!(report.lengths[3].multiply_adds, 70 * 2 * 512);
        }
    }
}
