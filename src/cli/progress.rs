//! Progress of long work on stderr: a bar on a terminal, elsewhere a line every
//! ten seconds.

use std::io::{IsTerminal as _, Write as _};
use std::ops::Range;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::quantity;
use crate::bench::per_second;
use crate::engine;
use crate::engine::batch::launches;

/// Progress with rate and time left, shown once a second has passed.
pub(super) struct Progress {
    what: &'static str,
    shown: bool,
    asked: Instant,
    begun: Option<Instant>,
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
}

/// How far the work is.
pub(super) struct Status {
    /// What is being done, such as a layer and a step.
    pub(super) place: Option<String>,
    /// How much is done.
    pub(super) done: u64,
    /// Of how much.
    pub(super) total: u64,
    /// Multiply-adds so far, if that is the work.
    pub(super) multiply_adds: Option<u64>,
}

impl Progress {
    /// Of something that may take longer than a second.
    pub(super) fn new(what: &'static str, shown: bool) -> Self {
        let asked = Instant::now();
        Self { what, shown, asked, begun: None, bar: None, last_line: None }
    }

    /// Tells how much of the work is done.
    pub(super) fn update(&mut self, done: u64, total: u64) {
        self.show(&Status { place: None, done, total, multiply_adds: None });
    }

    /// Tells how far a run of a model is.
    pub(super) fn show(&mut self, status: &Status) {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        if !self.shown || self.asked.elapsed() < FIRST {
            return;
        }
        let text = status.text(begun.elapsed());
        if std::io::stderr().is_terminal() {
            let bar = self.bar.get_or_insert_with(|| bar(self.what, status.total));
            bar.set_message(text);
            bar.set_length(status.total);
            bar.set_position(status.done);
        } else if self.last_line.is_none_or(|last| last.elapsed() >= EVERY) {
            self.last_line = Some(Instant::now());
            let _ = writeln!(std::io::stderr().lock(), "{}: {text}", self.what);
        }
    }
}

/// How far a generation is, token by token; of several prompts, launch by launch.
///
/// The work of the passes to come is not known before they are laid out, and not
/// even their number: a stop token may end the text earlier. So what is left is
/// taken from the latest launch of one token a prompt, and before there is one, a
/// token of a prompt counts for one.
pub(super) struct Passes {
    /// Tokens that each launch of prompts takes.
    prefills: Vec<u64>,
    prompts: u64,
    /// Most launches after those: of one token of every prompt.
    decodes: u64,
    /// Launches begun.
    begun: u64,
    /// Multiply-adds of those before this one, and of this one.
    earlier: u64,
    own: u64,
}

impl Passes {
    /// Of a generation that has not begun: tokens of each prompt, and the most that
    /// are generated after each.
    pub(super) fn new(prompts: &[usize], limit: usize) -> Self {
        let rows = |range: Range<usize>| prompts[range].iter().map(|&tokens| tokens as u64).sum();
        let a_token = launches(&vec![1; prompts.len()]).len() as u64;
        Self {
            prefills: launches(prompts).into_iter().map(rows).collect(),
            prompts: prompts.len() as u64,
            decodes: a_token * (limit as u64).saturating_sub(1),
            begun: 0,
            earlier: 0,
            own: 0,
        }
    }

    /// How far it is, told of every step.
    pub(super) fn status(&mut self, now: &engine::Progress<'_>) -> Status {
        if now.index == 0 {
            (self.begun, self.earlier, self.own) =
                (self.begun + 1, self.earlier + self.own, now.total);
        }
        let Self { prefills, prompts, decodes, begun, earlier, own } = self;
        let most = prefills.len() as u64 + *decodes;
        let mut prefills_left = prefills.iter().skip((*begun as usize).saturating_sub(1));
        let left = match prefills_left.next() {
            Some(rows) => {
                let a_token = *own / (*rows).max(1);
                let tokens = prefills_left.sum::<u64>() + prompts.saturating_mul(*decodes);
                a_token.saturating_mul(tokens)
            }
            None => own.saturating_mul(most.saturating_sub(*begun)),
        };
        let what = if *prompts == 1 { "token" } else { "launch" };
        let done = *earlier + now.done;
        Status {
            place: Some(format!("{what} {begun} of at most {most}, {}", place(now))),
            done,
            total: (*earlier + *own).saturating_add(left),
            multiply_adds: Some(done),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Status {
    /// Of a run whose work is known.
    pub(super) fn of(now: &engine::Progress<'_>) -> Self {
        let (place, multiply_adds) = (Some(place(now)), Some(now.done));
        Self { place, done: now.done, total: now.total, multiply_adds }
    }

    /// Of bytes that are digested or written.
    pub(super) fn of_bytes(done: u64, total: u64) -> Self {
        let place = format!("{} of {}", quantity::bytes(done), quantity::bytes(total));
        Self { place: Some(place), done, total, multiply_adds: None }
    }

    fn text(&self, elapsed: Duration) -> String {
        // Products of hours in milliseconds and a large model's work pass 2^64.
        let [done, total] = [self.done, self.total].map(u128::from);
        let percent = done * 100 / total.max(1);
        let mut text = format!("{percent} %");
        if let Some(place) = &self.place {
            text = format!("{place}, {text}");
        }
        // Before the first percent both figures would be nonsense.
        if percent > 0 {
            let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
            let left = elapsed.as_millis() * total.saturating_sub(done) / done / 1000;
            if let Some(multiply_adds) = self.multiply_adds {
                let rate = per_second(multiply_adds, nanos);
                text.push_str(&format!(", {rate:.1} GMAC/s"));
            }
            text.push_str(&format!(", about {left} s left"));
        }
        text
    }
}

/// The step in a reader's words: `layer 12 of 36, mlp.down_proj`.
fn place(now: &engine::Progress<'_>) -> String {
    let name = &now.step.name;
    match now.step.layer {
        Some(layer) => {
            let name = name.strip_prefix(&format!("layers.{layer}.")).unwrap_or(name);
            format!("layer {} of {}, {name}", layer + 1, now.layers)
        }
        None => name.clone(),
    }
}

fn bar(what: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{prefix}: {msg} {wide_bar}") {
        bar.set_style(style);
    }
    bar.set_prefix(what);
    bar
}

const FIRST: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::Dtype;
    use crate::plan::{Op, Step, ValueId};
    use crate::recipe::Recipe;

    fn step(name: &str, layer: Option<usize>) -> Step {
        Step {
            name: name.into(),
            layer,
            op: Op::Add,
            recipe: Recipe::Elementwise,
            inputs: Vec::new(),
            output: ValueId(7),
            keeps: None,
            rows: 1,
            columns: 1,
            dtype: Dtype::Bf16,
        }
    }

    #[test]
    fn the_share_of_a_generation_follows_the_work_within_a_token() {
        let step = step("lm_head", None);
        let mut passes = Passes::new(&[10], 5);
        // (step, multiply-adds done and of all of the pass, token, done, total, reason)
        let cases = [
            (0, 0, 1000, 1, 0, 1400, "four more tokens, each like one of the prompt's ten"),
            (7, 500, 1000, 1, 500, 1400, "the middle of the prompt"),
            (9, 1000, 1000, 1, 1000, 1400, "its end"),
            (0, 0, 150, 2, 1000, 1600, "four tokens of 150"),
            (9, 150, 150, 2, 1150, 1600, "the end of the second"),
            (0, 0, 160, 3, 1150, 1630, "three of 160, which grow with their positions"),
            (9, 160, 160, 3, 1310, 1630, "its end"),
        ];
        for (index, done, total, token, all_done, all, reason) in cases {
            let now = engine::Progress { done, total, index, step: &step, layers: 36 };
            let status = passes.status(&now);
            assert_eq!((status.done, status.total), (all_done, all), "{reason}");
            assert_eq!(status.multiply_adds, Some(all_done), "{reason}");
            let place = format!("token {token} of at most 5, lm_head");
            assert_eq!(status.place, Some(place), "{reason}");
        }
        let mut last = Passes::new(&[10], 1);
        let now = engine::Progress { done: 7, total: 7, index: 0, step: &step, layers: 36 };
        let status = last.status(&now);
        assert_eq!((status.done, status.total), (7, 7), "one token is the prompt's pass");
    }

    #[test]
    fn several_prompts_are_told_launch_by_launch() {
        let step = step("lm_head", None);
        // Two launches of prompts (3,000 and 2,000 tokens), then three of a token each.
        let mut passes = Passes::new(&[1000, 2000, 2000], 4);
        // (step, multiply-adds done and of all of the launch, launch, done, total, reason)
        let cases = [
            (0, 0, 30_000, 1, 0, 50_090, "2,000 tokens and three times three like these"),
            (9, 30_000, 30_000, 1, 30_000, 50_090, "its end"),
            (0, 0, 24_000, 2, 30_000, 54_108, "nine tokens like the 2,000"),
            (0, 0, 60, 3, 54_000, 54_180, "two more like this"),
            (0, 0, 40, 4, 54_060, 54_140, "one more of fewer sequences"),
        ];
        for (index, done, total, launch, all_done, all, reason) in cases {
            let now = engine::Progress { done, total, index, step: &step, layers: 36 };
            let status = passes.status(&now);
            assert_eq!((status.done, status.total), (all_done, all), "{reason}");
            let place = status.place.unwrap();
            assert!(place.starts_with(&format!("launch {launch} of at most 5, ")), "{place}");
        }
    }

    #[test]
    fn bytes_are_shown_with_their_unit() {
        let text = Status::of_bytes(2_500_000_000, 8_044_936_192).text(Duration::from_secs(5));
        assert_eq!(text, "2.500 GB of 8.044 GB, 31 %, about 11 s left");
        assert_eq!(Status::of_bytes(0, 0).text(Duration::ZERO), "0 B of 0 B, 0 %");
    }

    #[test]
    fn a_line_says_where_how_much_how_fast_and_how_long() {
        let (down, head) = (step("layers.11.mlp.down_proj", Some(11)), step("lm_head", None));
        let cases = [
            (&down, 0, "layer 12 of 36, mlp.down_proj, 0 %"),
            (
                &down,
                430_000_000_000,
                "layer 12 of 36, mlp.down_proj, 43 %, 18.6 GMAC/s, about 30 s left",
            ),
            (&head, 1_000_000_000_000, "lm_head, 100 %, 43.4 GMAC/s, about 0 s left"),
        ];
        for (step, done, text) in cases {
            let total = 1_000_000_000_000;
            let now = engine::Progress { done, total, index: 0, step, layers: 36 };
            assert_eq!(Status::of(&now).text(Duration::from_millis(23_000)), text);
        }
        let plain = Status { place: None, done: 1, total: 4, multiply_adds: None };
        assert_eq!(plain.text(Duration::from_secs(10)), "25 %, about 30 s left");
    }
}
