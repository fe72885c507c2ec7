//! Logits of the generated tokens: the chosen one's and the runner-up's.
//!
//! Only where the transcript holds whole rows of bfloat16. Positions in the picture
//! are integers: no float is computed with, here as elsewhere.

use half::bf16;

use crate::num::{Bf16, Dtype};
use crate::transcript::Transcript;

/// One generated token and the largest logit of another.
pub(super) struct Choice {
    /// Index among the generated tokens.
    pub(super) index: usize,
    /// The token of the transcript.
    pub(super) chosen: Entry,
    /// The token with the largest logit of all others.
    pub(super) runner_up: Entry,
}

/// A token and its logit.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Token id.
    pub(super) id: u32,
    /// Its logit.
    pub(super) logit: Bf16,
}

impl Entry {
    /// The logit as a number, for readers.
    pub(super) fn value(&self) -> String {
        bf16::from_bits(self.logit.0).to_string()
    }
}

impl Choice {
    /// How far the chosen logit is above the runner-up's ([`fixed`]).
    pub(super) fn lead(&self) -> Option<i64> {
        Some(fixed(self.chosen.logit)? - fixed(self.runner_up.logit)?)
    }
}

/// Reads the choices out of the rows of logits; `None` if the transcript does not hold
/// them so.
pub(super) fn choices(transcript: &Transcript) -> Option<Vec<Choice>> {
    let statement = transcript.statement();
    let is_bf16 = match statement.logits.dtype {
        Dtype::Bf16 => true,
        Dtype::F32 | Dtype::U32 => false,
    };
    if !is_bf16 || statement.logits.count != statement.tokens_out.len() as u64 {
        return None;
    }
    let tokens = statement.tokens_out.iter().enumerate();
    tokens
        .map(|(index, &id)| {
            let row = Bf16::from_le_bytes(&transcript.logits_row(index as u64)?);
            let chosen = Entry { id, logit: *row.get(id as usize)? };
            let others = (0..).zip(row).filter(|(other, _)| *other != id);
            let others = others.filter(|(_, logit)| fixed(*logit).is_some());
            // The lower id where two are equal, as the rule of sampling has it.
            let (id, logit) =
                others.max_by_key(|(id, logit)| (fixed(*logit), std::cmp::Reverse(*id)))?;
            Some(Choice { index, chosen, runner_up: Entry { id, logit } })
        })
        .collect()
}

/// A finite value in steps of 2^-12, cut toward zero and at ±2^24; `None` for others.
/// For pictures and order only.
fn fixed(value: Bf16) -> Option<i64> {
    if !value.is_finite() {
        return None;
    }
    let bits = i64::from(value.0);
    let (exponent, fraction) = (bits >> 7 & 0xff, bits & 0x7f);
    let significand = if exponent == 0 { fraction } else { fraction | 0x80 };
    // The value is significand · 2^(exponent − 134), with the subnormals' exponent 1.
    let shift = exponent.max(1) - 134 + 12;
    let magnitude = if shift >= 28 {
        LARGEST
    } else if shift >= 0 {
        (significand << shift).min(LARGEST)
    } else {
        significand >> (-shift).min(63)
    };
    Some(if bits >> 15 == 1 { -magnitude } else { magnitude })
}

/// 2^24 in steps of 2^-12.
const LARGEST: i64 = 1 << 36;

/// A line plot in integer units, with one point a token.
pub(super) struct Plot {
    /// Points of the chosen tokens: `x,y x,y …`.
    pub(super) chosen: String,
    /// Points of the runners-up.
    pub(super) runner_up: String,
    /// Horizontal lines: their height and their number.
    pub(super) lines: Vec<(i64, i64)>,
    /// Dots, chosen ones first: x, y, whether chosen, index of the token.
    pub(super) dots: Vec<(i64, i64, bool, usize)>,
}

/// Width and height of the area of [`Plot`].
pub(super) const SIZE: (i64, i64) = (360, 160);

impl Plot {
    /// Draws the choices; `None` if a logit is not a number or there is none.
    pub(super) fn of(choices: &[Choice]) -> Option<Self> {
        let value =
            |choice: &Choice| Some((fixed(choice.chosen.logit)?, fixed(choice.runner_up.logit)?));
        let values: Vec<(i64, i64)> = choices.iter().map(value).collect::<Option<_>>()?;
        let all = || values.iter().flat_map(|(a, b)| [*a, *b]);
        let (low, high) = (all().min()?, all().max()?);
        // Whole numbers around all values, at most six lines.
        let (low, high) = (low.div_euclid(ONE), -(-high).div_euclid(ONE));
        let step = STEPS.into_iter().find(|step| (high - low) / step < 6).unwrap_or(high - low);
        let (low, high) = (low.div_euclid(step) * step, -(-high).div_euclid(step) * step);
        let span = (high - low).max(step);
        let y = |value: i64| SIZE.1 - (value - low * ONE) * SIZE.1 / (span * ONE);
        let gaps = (values.len() as i64 - 1).max(1);
        let x = |index: usize| {
            if values.len() == 1 { SIZE.0 / 2 } else { index as i64 * SIZE.0 / gaps }
        };
        let points = |pick: fn(&(i64, i64)) -> i64| {
            let point = |(index, pair): (usize, &(i64, i64))| (x(index), y(pick(pair)));
            values.iter().enumerate().map(point).collect::<Vec<_>>()
        };
        let (chosen, runner_up) = (points(|pair| pair.0), points(|pair| pair.1));
        let text = |points: &[(i64, i64)]| {
            points.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
        };
        let dots = |points: &[(i64, i64)], chosen: bool| {
            let dot = |(index, (x, y)): (usize, &(i64, i64))| (*x, *y, chosen, index);
            points.iter().enumerate().map(dot).collect::<Vec<_>>()
        };
        let lines = (0..=span / step).map(|line| low + line * step).map(|n| (y(n * ONE), n));
        Some(Self {
            chosen: text(&chosen),
            runner_up: text(&runner_up),
            lines: lines.collect(),
            dots: [dots(&runner_up, false), dots(&chosen, true)].concat(),
        })
    }
}

/// One in the units of [`fixed`].
const ONE: i64 = 1 << 12;

/// Distances between lines that read well.
const STEPS: [i64; 10] = [1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 1_000_000];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_steps_of_a_4096th() {
        let cases = [
            (0x3f80, Some(4096), "1"),
            (0xc06f, Some(-15296), "-3.734375"),
            (0x0000, Some(0), "0"),
            (0x8000, Some(0), "-0"),
            (0x3980, Some(1), "2^-12"),
            (0x0001, Some(0), "the smallest subnormal"),
            (0x4b80, Some(1 << 36), "2^24"),
            (0x7f7f, Some(1 << 36), "the largest"),
            (0xff7f, Some(-(1 << 36)), "the smallest"),
            (0x7f80, None, "infinity"),
            (0x7fff, None, "NaN"),
        ];
        for (bits, expected, reason) in cases {
            assert_eq!(fixed(Bf16(bits)), expected, "{reason}");
        }
    }

    fn choice(index: usize, chosen: u16, runner_up: u16) -> Choice {
        let entry = |id, bits| Entry { id, logit: Bf16(bits) };
        Choice { index, chosen: entry(5, chosen), runner_up: entry(6, runner_up) }
    }

    #[test]
    fn a_plot_holds_its_values_between_whole_numbers() {
        // 4 and 2, 3 and 2.5.
        let plot = Plot::of(&[choice(0, 0x4080, 0x4000), choice(1, 0x4040, 0x4020)]).unwrap();
        assert_eq!(plot.lines, [(160, 2), (80, 3), (0, 4)]);
        assert_eq!(plot.chosen, "0,0 360,80");
        assert_eq!(plot.runner_up, "0,160 360,120");
        let one = Plot::of(&[choice(0, 0x4080, 0x4080)]).unwrap();
        assert_eq!((one.chosen.as_str(), one.lines.len()), ("180,160", 2), "no range at all");
        assert!(Plot::of(&[]).is_none());
        assert!(Plot::of(&[choice(0, 0x7fff, 0x4000)]).is_none(), "NaN has no place");
    }
}
