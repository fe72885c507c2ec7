//! What a measurement of products says.

use serde::Serialize;

use super::super::decimal::Decimal;
use super::super::rounds::Figures;
use super::Shape;

/// All shapes measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GemmReport {
    /// The yardstick's name.
    pub yardstick: &'static str,
    /// One entry a shape.
    pub shapes: Vec<ShapeReport>,
}

/// One shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShapeReport {
    /// The shape.
    pub shape: Shape,
    /// Multiply-adds of one product (count).
    pub multiply_adds: u64,
    /// One entry a form.
    pub forms: Vec<FormReport>,
}

/// One form of the lanes: the yardstick and all profiles took turns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FormReport {
    /// The form.
    pub simd: &'static str,
    /// Rounds (count).
    pub rounds: usize,
    /// The yardstick on one core, GMAC/s.
    pub sgemm_gmac_per_s: Figures,
    /// One entry a profile.
    pub profiles: Vec<ProfileReport>,
    /// Ampere's rate over Hopper's on one core; `None` unless both were measured.
    pub ampere_to_hopper: Option<Figures>,
}

/// One profile in one form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProfileReport {
    /// The profile's id.
    pub profile: String,
    /// Products a block (count).
    pub n_fma: u8,
    /// Outputs compared with the scalar text, spread over the product (count).
    pub compared_with_scalar_text: usize,
    /// Outputs compared with the first form's: all of them, or none for the first
    /// form itself (count).
    pub compared_between_forms: usize,
    /// The scalar text on one core, GMAC/s, measured once while checking.
    pub scalar_text_gmac_per_s: Decimal,
    /// A linear step on one core, GMAC/s: decoding of A and rounding included.
    pub one_core_gmac_per_s: Figures,
    /// A linear step on all threads, GMAC/s.
    pub all_cores_gmac_per_s: Figures,
    /// All threads over one core.
    pub scaling: Figures,
    /// One core over the yardstick.
    pub ratio_to_sgemm: Figures,
    /// Decoding of A on one core, 10^9 elements a second.
    pub decode_gelem_per_s: Figures,
}
