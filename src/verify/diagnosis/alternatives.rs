//! The alternatives that are tried, as data.

use super::quantised::{WeightForm, of_every_product, of_products_in_layers};
use crate::engine::emulator::Reform;
use crate::isa::mma::MmaProfile;
use crate::isa::profile::Profile;
use crate::num::F32;
use crate::plan::{Op, Pass, Step};
use crate::recipe::Recipe;
use crate::recipe::catalog::{Catalog, Choice};
use crate::recipe::split_k::Slices;
use crate::verify::environment::Known;

/// One way of computing that the transcript does not declare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Alternative<'a> {
    /// A product follows this recipe.
    Product(Recipe),
    /// Products follow the recipes that this catalogue has for the stack `native-stock`.
    Stock(&'a Catalog),
    /// Products and attention use another instruction, and a product perhaps another
    /// recipe.
    Instruction(Instruction, Option<Recipe>),
    /// A norm sums its rows with so many lanes.
    Lanes(u16),
    /// A norm adds another number to the mean square.
    Eps(&'static str, F32),
    /// The weights of products were rounded through a narrower form.
    Weights(WeightForm),
}

/// The bf16 instruction of profiles that agree in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Instruction {
    /// Names of the profiles.
    pub(super) profiles: Vec<&'static str>,
    /// Its parameters.
    pub(super) mma: MmaProfile,
}

impl<'a> Alternative<'a> {
    /// Those of one step: everything but what it declares.
    pub(super) fn of_step(step: &Step, declared: &MmaProfile) -> Vec<Self> {
        match step.op {
            Op::Linear { k } => {
                let recipes: Vec<Recipe> = product_recipes(k);
                let other = recipes.iter().filter(|recipe| **recipe != step.recipe);
                let mut all: Vec<Self> = other.copied().map(Self::Product).collect();
                for instruction in instructions(declared) {
                    all.push(Self::Instruction(instruction.clone(), None));
                    let other = recipes.iter().filter(|recipe| **recipe != step.recipe);
                    let with =
                        |recipe: &Recipe| Self::Instruction(instruction.clone(), Some(*recipe));
                    all.extend(other.map(with));
                }
                all.extend(FORMS.map(Self::Weights));
                all
            }
            Op::RmsNorm { .. } => norms(),
            Op::Attention { .. } => {
                let other = instructions(declared).into_iter();
                other.map(|instruction| Self::Instruction(instruction, None)).collect()
            }
            // One order each, and nothing that a provider could choose.
            Op::Embedding
            | Op::Rope { .. }
            | Op::Add
            | Op::SiluMul
            | Op::LastToken
            | Op::Argmax => Vec::new(),
        }
        .into_iter()
        .filter(|alternative: &Self| alternative.changes(step, None))
        .collect()
    }

    /// Those of many steps together: whatever a provider would do everywhere.
    pub(super) fn of_steps(steps: &[Step], pass: &Pass, known: &'a Known) -> Vec<Self> {
        let instructions = instructions(&known.mma).into_iter();
        let mut all: Vec<Self> =
            instructions.map(|instruction| Self::Instruction(instruction, None)).collect();
        all.extend(norms());
        all.push(Self::Product(Recipe::SingleWalk));
        all.push(Self::Stock(known.catalog()));
        all.extend(FORMS.map(Self::Weights));
        all.retain(|alternative| steps.iter().any(|step| alternative.changes(step, Some(pass))));
        all
    }

    /// The step as this alternative computes it in a pass.
    pub(super) fn apply(&self, step: &Step, pass: Option<&Pass>) -> Step {
        let mut step = step.clone();
        match (self, &mut step.op) {
            (Self::Product(recipe) | Self::Instruction(_, Some(recipe)), Op::Linear { .. }) => {
                step.recipe = *recipe
            }
            (Self::Stock(catalog), Op::Linear { k }) => {
                let rows = pass.map(|pass| pass.batch.product_rows(step.layer.is_some()));
                let size = |m| (m as u64, step.columns as u64, *k as u64);
                let recipe = rows.and_then(|m| catalog.planned(Choice::Stock, size(m)).ok());
                step.recipe = recipe.unwrap_or(step.recipe);
            }
            (Self::Lanes(lanes), Op::RmsNorm { .. }) => {
                step.recipe = Recipe::RowReduction { lanes: *lanes };
            }
            (Self::Eps(_, other), Op::RmsNorm { eps, .. }) => *eps = *other,
            (
                Self::Product(_)
                | Self::Stock(_)
                | Self::Instruction(..)
                | Self::Lanes(_)
                | Self::Eps(..)
                | Self::Weights(_),
                Op::Embedding
                | Op::RmsNorm { .. }
                | Op::Linear { .. }
                | Op::Rope { .. }
                | Op::Attention { .. }
                | Op::Add
                | Op::SiluMul
                | Op::LastToken
                | Op::Argmax,
            ) => {}
        }
        step
    }

    /// Whether a step is computed otherwise.
    fn changes(&self, step: &Step, pass: Option<&Pass>) -> bool {
        let is_product = matches!(step.op, Op::Linear { .. });
        let is_attention = matches!(step.op, Op::Attention { .. });
        match self {
            Self::Instruction(..) => is_product || is_attention,
            Self::Weights(_) => is_product,
            Self::Product(_) | Self::Stock(_) | Self::Lanes(_) | Self::Eps(..) => {
                self.apply(step, pass) != *step
            }
        }
    }

    /// The instruction that is used in place of the declared one.
    pub(super) fn instruction(&self) -> Option<&MmaProfile> {
        match self {
            Self::Instruction(instruction, _) => Some(&instruction.mma),
            Self::Product(_)
            | Self::Stock(_)
            | Self::Lanes(_)
            | Self::Eps(..)
            | Self::Weights(_) => None,
        }
    }

    /// What is done to weights: of products in layers, as quantised checkpoints keep the
    /// output head, or of every product.
    pub(super) fn reform(&self, every: bool) -> Option<Reform> {
        match self {
            Self::Weights(form) if every => Some(of_every_product(*form)),
            Self::Weights(form) => Some(of_products_in_layers(*form)),
            Self::Product(_)
            | Self::Stock(_)
            | Self::Instruction(..)
            | Self::Lanes(_)
            | Self::Eps(..) => None,
        }
    }

    /// Which steps it changes, where it changes many.
    pub(super) fn subject(&self) -> &'static str {
        match self {
            Self::Product(_) | Self::Stock(_) => "every product",
            Self::Instruction(..) => "every product and attention",
            Self::Lanes(_) | Self::Eps(..) => "every rms_norm",
            Self::Weights(_) => "every product in a layer",
        }
    }
}

impl std::fmt::Display for Alternative<'_> {
    /// What was used: the end of the sentence that names the step.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Product(recipe) => write!(f, "{recipe}"),
            Self::Stock(catalog) => {
                write!(f, "the recipes of native-stock in catalogue {}", catalog.id())
            }
            Self::Instruction(instruction, recipe) => {
                if let Some(recipe) = recipe {
                    write!(f, "{recipe} and ")?;
                }
                write!(f, "the bf16 instruction of {}", instruction.profiles.join(" and "))
            }
            Self::Lanes(lanes) => write!(f, "{}", Recipe::RowReduction { lanes: *lanes }),
            Self::Eps(text, _) => write!(f, "eps={text}"),
            Self::Weights(form) => write!(f, "weights rounded to {}", form.word()),
        }
    }
}

/// Recipes of a product with dot products of this length.
fn product_recipes(k: usize) -> Vec<Recipe> {
    let split = (2..=MOST_SLICES).map(|slices| Recipe::SplitKWorkspaceF32 { slices });
    let exists = |recipe: &Recipe| matches!(Slices::of(*recipe, k), Ok(Some(_)));
    std::iter::once(Recipe::SingleWalk).chain(split).filter(exists).collect()
}

/// The bf16 instructions of other GPUs, those that are alike as one.
fn instructions(declared: &MmaProfile) -> Vec<Instruction> {
    let mut found: Vec<Instruction> = Vec::new();
    for id in Profile::ids() {
        let Ok(profile) = Profile::by_id(id) else { continue };
        let Some(mma) = profile.mma("bf16").filter(|mma| *mma != declared) else { continue };
        match found.iter_mut().find(|known| known.mma == *mma) {
            Some(known) => known.profiles.push(id),
            None => found.push(Instruction { profiles: vec![id], mma: *mma }),
        }
    }
    found
}

fn norms<'a>() -> Vec<Alternative<'a>> {
    let lanes = LANES.map(Alternative::Lanes).into_iter();
    lanes.chain(EPS.map(|(text, bits)| Alternative::Eps(text, F32(bits)))).collect()
}

/// Slices of K: as many as stock algorithms were seen to use, and some.
const MOST_SLICES: u8 = 16;

/// What [`crate::recipe::RowReduction`] knows.
const LANES: [u16; 5] = [32, 64, 128, 256, 512];

/// What configurations of published models have, and its binary32.
const EPS: [(&str, u32); 5] = [
    ("1e-5", 0x3727_c5ac),
    ("1e-6", 0x3586_37bd),
    ("1e-8", 0x322b_cc77),
    ("1e-12", 0x2b8c_bccc),
    ("0", 0),
];

const FORMS: [WeightForm; 2] = [WeightForm::E4m3, WeightForm::Int8];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Config, qwen3};
    use crate::plan::Contract;

    #[test]
    fn eps_are_the_numbers_that_they_are_called() {
        for (text, bits) in EPS {
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits, "{text}");
        }
    }

    #[test]
    fn slices_are_those_that_exist_for_the_length() {
        let slices =
            |k| -> Vec<String> { product_recipes(k).iter().map(Recipe::to_string).collect() };
        assert_eq!(slices(100), ["single_walk"], "no multiple of 64");
        assert_eq!(slices(64), ["single_walk"]);
        assert_eq!(slices(128), ["single_walk", "split_k_workspace_f32(slices=2,k_tile=64)"]);
        // 152 tiles: of 15 slices with 11 each, the last would be empty.
        let all = slices(9728);
        assert_eq!(all.len(), 15);
        assert!(!all.iter().any(|recipe| recipe.contains("slices=15,")), "{all:?}");
    }

    #[test]
    fn instructions_are_those_of_other_parameters() {
        let of = |id| *Profile::by_id(id).unwrap().mma("bf16").unwrap();
        let profiles = |id| -> Vec<Vec<&str>> {
            instructions(&of(id)).into_iter().map(|instruction| instruction.profiles).collect()
        };
        assert_eq!(profiles("h200"), [["a100", "l40s"]]);
        assert_eq!(profiles("a100"), [["h100", "h200", "b200", "rtx-pro-6000"]]);
    }

    #[test]
    fn a_step_has_every_alternative_but_what_it_declares() {
        let text = include_bytes!("../../../examples/tiny/model/config.json");
        let config = Config::from_json(text).unwrap();
        let plan = qwen3::forward(&config, Contract::Native, Pass::alone(0, 0, 3)).unwrap();
        let declared = *Profile::by_id("h200").unwrap().mma("bf16").unwrap();
        let of = |name: &str| -> Vec<String> {
            let step = plan.steps.iter().find(|step| step.name == name).unwrap();
            let all = Alternative::of_step(step, &declared);
            // Each changes what it names and nothing else.
            for alternative in &all {
                let other = alternative.apply(step, None);
                assert!(alternative.changes(step, None));
                assert_eq!((&other.inputs, other.columns), (&step.inputs, step.columns));
            }
            all.iter().map(Alternative::to_string).collect()
        };
        let lanes = |lanes: u16| format!("row_reduction(lanes={lanes},vector=4)");
        let mut norm = vec![lanes(64), lanes(128), lanes(256), lanes(512)];
        norm.extend(["eps=1e-5", "eps=1e-8", "eps=1e-12", "eps=0"].map(str::to_owned));
        assert_eq!(of("layers.0.input_layernorm"), norm, "32 lanes and 1e-6 are declared");

        let product = of("layers.1.mlp.gate_proj"); // k = 256: 2 or 4 slices
        let a100 = "the bf16 instruction of a100 and l40s";
        let slices = |count| format!("split_k_workspace_f32(slices={count},k_tile=64)");
        let mut expected = vec![slices(2), slices(4), a100.to_owned()];
        expected.extend([2, 4].map(|count| format!("{} and {a100}", slices(count))));
        expected
            .extend(["FP8 e4m3", "INT8"].map(|form| format!("weights rounded to {form} by rows")));
        assert_eq!(product, expected);

        assert_eq!(of("layers.0.self_attn.attention"), [a100]);
        assert!(of("layers.0.mlp.silu_mul").is_empty());
    }
}
