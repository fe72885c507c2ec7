//! What a GPU must be, and have free, for a run: decided from facts, so that it is
//! decided and tested without a GPU.
//!
//! Asking the driver for the facts is the CUDA engine's business; whether a
//! catalogue was measured with this GPU and these libraries is
//! [`crate::recipe::catalog::Catalog::covers`].

/// Why a GPU cannot do a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Nobody measured the arithmetic of this architecture with this engine.
    #[error(
        "this GPU is {name} (sm_{major}{minor}), which no profile of the CUDA engine is for; there is {known}"
    )]
    Profile {
        /// The GPU's name.
        name: String,
        /// Compute capability, before the point.
        major: i32,
        /// Compute capability, after the point.
        minor: i32,
        /// The profiles there are, with their architectures.
        known: String,
    },
    /// The run does not fit the free memory.
    #[error(
        "this run takes {} of GPU memory and {} are free: {needed}",
        gigabytes_up(needed.total()),
        gigabytes_down(*.free)
    )]
    Memory {
        /// What the run takes.
        needed: Footprint,
        /// What the driver says is free (bytes).
        free: u64,
    },
}

/// Id of the profile of a GPU's architecture, from its compute capability.
///
/// # Errors
/// [`Unfit::Profile`].
pub fn profile_of(name: &str, (major, minor): (i32, i32)) -> Result<&'static str, Unfit> {
    let found = PROFILES.iter().find(|(capability, _)| *capability == (major, minor));
    found.map(|&(_, id)| id).ok_or_else(|| {
        let known = PROFILES.map(|((major, minor), id)| format!("{id} (sm_{major}{minor})"));
        Unfit::Profile { name: name.into(), major, minor, known: known.join(", ") }
    })
}

/// Compute capabilities that this engine was measured on, with the profile of each.
const PROFILES: [((i32, i32), &str); 1] = [((9, 0), "h200")];

/// Device memory of a run (bytes): a lower bound.
///
/// The CUDA context, loaded kernels, the library's own buffers and gaps between
/// allocations come on top, so a run that seems to fit may still fail, with a
/// sentence of the allocation's. One that does not fit here cannot run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// Every tensor of the model.
    pub weights: u64,
    /// Keys and values of every layer, for all positions of all sequences.
    pub caches: u64,
    /// What the library may use during a product.
    pub workspace: u64,
    /// Most bytes of values that are alive at once.
    pub activations: u64,
}

impl Footprint {
    /// All of it.
    pub fn total(&self) -> u64 {
        let Self { weights, caches, workspace, activations } = *self;
        [caches, workspace, activations].into_iter().fold(weights, u64::saturating_add)
    }

    /// Whether it fits.
    ///
    /// # Errors
    /// [`Unfit::Memory`].
    pub fn check(self, free: u64) -> Result<(), Unfit> {
        if self.total() <= free { Ok(()) } else { Err(Unfit::Memory { needed: self, free }) }
    }
}

impl std::fmt::Display for Footprint {
    /// The parts, each rounded up to hundredths of a gigabyte.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { weights, caches, workspace, activations } = *self;
        write!(f, "weights {}, ", gigabytes_up(weights))?;
        write!(f, "keys and values {}, ", gigabytes_up(caches))?;
        write!(
            f,
            "workspace {}, activations {}",
            gigabytes_up(workspace),
            gigabytes_up(activations)
        )
    }
}

/// What is needed is rounded up and what is there down: else the two might look equal.
fn gigabytes_up(bytes: u64) -> String {
    hundredths(bytes.div_ceil(HUNDREDTH))
}

fn gigabytes_down(bytes: u64) -> String {
    hundredths(bytes / HUNDREDTH)
}

fn hundredths(count: u64) -> String {
    format!("{}.{:02} GB", count / 100, count % 100)
}

/// A hundredth of a gigabyte of 10^9 bytes.
const HUNDREDTH: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_without_a_profile_is_named_with_the_profiles_there_are() {
        assert_eq!(profile_of("NVIDIA H200", (9, 0)), Ok("h200"));
        for (name, capability, shown) in
            [("NVIDIA L40S", (8, 9), "sm_89"), ("NVIDIA B200", (10, 0), "sm_100")]
        {
            let sentence = profile_of(name, capability).unwrap_err().to_string();
            let expected = format!(
                "this GPU is {name} ({shown}), which no profile of the CUDA engine is for; \
                 there is h200 (sm_90)"
            );
            assert_eq!(sentence, expected);
        }
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused_with_both_numbers_and_the_parts() {
        let needed = Footprint {
            weights: 8_044_936_192,
            caches: 5_898_240_000,
            workspace: 33_554_432,
            activations: 1,
        };
        assert_eq!(needed.total(), 13_976_730_625);
        assert_eq!(needed.check(13_976_730_625), Ok(()), "to the byte");
        let sentence = needed.check(13_976_730_624).unwrap_err().to_string();
        assert_eq!(
            sentence,
            "this run takes 13.98 GB of GPU memory and 13.97 GB are free: weights 8.05 GB, \
             keys and values 5.90 GB, workspace 0.04 GB, activations 0.01 GB"
        );
        let endless = Footprint { caches: u64::MAX, ..needed };
        assert!(endless.check(u64::MAX - 1).is_err(), "no sum wraps around");
    }
}
