//! The first difference, with the bits side by side.

use crate::verify::report::{Difference, Finding};

/// A bit pattern in groups of bits, each marked where it differs from the other.
pub(super) struct Bits {
    /// The pattern in hex.
    pub(super) hex: String,
    /// Its value, where it is bfloat16.
    pub(super) value: Option<String>,
    /// Groups from the sign on: sign, exponent and significand of bfloat16, else bytes.
    pub(super) groups: Vec<Vec<(char, bool)>>,
}

/// What differs, for the page.
pub(super) struct Shown {
    /// Where: name and value.
    pub(super) place: Vec<(&'static str, String)>,
    /// Bits of the first element, by what they are; empty if there are none.
    pub(super) bits: Vec<(&'static str, Bits)>,
    /// Otherwise, what the transcript says and what was computed.
    pub(super) whole: Option<(String, String)>,
}

/// Lays a finding out.
pub(super) fn shown(finding: &Finding) -> Shown {
    let mut place = vec![("pass", finding.pass.to_string())];
    place.extend(finding.layer.map(|layer| ("layer", layer.to_string())));
    place.push(("step", format!("{} ({})", finding.step, finding.step_index)));
    place.push(("recipe", finding.recipe.clone()));
    let (bits, whole) = match &finding.difference {
        Difference::Element { row, column, recorded, computed, differing, elements } => {
            place.push(("element", format!("row {row}, column {column}")));
            place.push(("differing", format!("{differing} of {elements} elements")));
            let sides = [
                ("in the transcript", Bits::of(recorded, computed)),
                ("computed", Bits::of(computed, recorded)),
            ];
            (sides.into(), None)
        }
        Difference::Length { recorded, computed } => {
            (Vec::new(), Some((format!("{recorded} bytes"), format!("{computed} bytes"))))
        }
        Difference::Digest { recorded, computed } => {
            (Vec::new(), Some((format!("SHA-256 {recorded}"), format!("SHA-256 {computed}"))))
        }
    };
    place.extend(finding.diagnosis.clone().map(|diagnosis| ("diagnosis", diagnosis)));
    Shown { place, bits, whole }
}

impl Bits {
    fn of(own: &str, other: &str) -> Self {
        let digits = |hex: &str| -> Vec<char> {
            hex.chars()
                .filter_map(|digit| digit.to_digit(16))
                .flat_map(|digit| {
                    (0..4).rev().map(move |bit| if digit >> bit & 1 == 1 { '1' } else { '0' })
                })
                .collect()
        };
        let (bits, others) = (digits(own), digits(other));
        let marked = bits.iter().enumerate().map(|(at, bit)| (*bit, others.get(at) != Some(bit)));
        let mut marked: Vec<(char, bool)> = marked.collect();
        let widths: &[usize] = if bits.len() == 16 { &[1, 8, 7] } else { &[8; 4] };
        let mut groups = Vec::new();
        for width in widths {
            let rest = marked.split_off(marked.len().min(*width));
            groups.push(std::mem::replace(&mut marked, rest));
        }
        let word = u16::from_str_radix(own, 16).ok().filter(|_| own.len() == 4);
        let value = word.map(|word| half::bf16::from_bits(word).to_string());
        Self { hex: own.to_owned(), value, groups }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_differ_are_marked_in_their_group() {
        let bits = Bits::of("c06e", "c06f");
        let text: Vec<String> =
            bits.groups.iter().map(|group| group.iter().map(|(bit, _)| bit).collect()).collect();
        assert_eq!(text, ["1", "10000000", "1101110"]);
        let differing: Vec<usize> =
            bits.groups.concat().iter().enumerate().filter(|(_, b)| b.1).map(|(i, _)| i).collect();
        assert_eq!(differing, [15], "the last bit");
        assert_eq!(bits.value.as_deref(), Some("-3.71875"));
        let wide = Bits::of("00000007", "80000007");
        assert_eq!(wide.groups.iter().map(Vec::len).collect::<Vec<_>>(), [8; 4]);
        assert!(wide.groups[0][0].1 && wide.value.is_none());
    }
}
