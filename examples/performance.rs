//! Makes the figure and the tables of `spec/performance.md` from measurements.
//!
//! `cargo run --release --example performance` reads
//! `spec/evidence/performance.jsonl`, one report of `attest bench forward --json` a
//! line, and writes `spec/figures/seconds_per_token.svg` and the parts of the page
//! between its marks. Of several reports of the same thing the last one counts.
//! With a folder as argument it reads and writes there instead of in `spec`.
#![allow(clippy::float_arithmetic)] // a drawing

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plotters::prelude::*;
use serde_json::Value;

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec");
    let spec = std::env::args().nth(1).map_or(own, PathBuf::from);
    let records = spec.join("evidence/performance.jsonl");
    let lines = std::fs::read_to_string(&records)
        .map_err(|error| format!("{}: {error}", records.display()))?;
    let runs: Vec<Run> = lines.lines().map(Run::read).collect::<Result<_, _>>()?;
    std::fs::create_dir_all(spec.join("figures"))?;

    let curve = prompts(&runs);
    if curve.is_empty() {
        return Err("no report of a prompt with one token generated".into());
    }
    draw(&spec.join("figures/seconds_per_token.svg"), &curve)?;
    let page = spec.join("performance.md");
    let mut text = std::fs::read_to_string(&page)?;
    let tables = [
        ("runs", table_of_runs(&runs)),
        ("generated", generated(&runs)),
        ("profile", profile(&curve)),
    ];
    for (mark, content) in tables {
        text = replaced(&text, mark, &content)?;
    }
    std::fs::write(&page, text)?;
    Ok(())
}

/// One report.
#[derive(Clone, Debug)]
struct Run {
    model: String,
    /// What a measurement depends on besides the run: processor, threads, form.
    setup: String,
    load: String,
    logits: String,
    prompt: u64,
    generated: u64,
    positions: u64,
    logits_rows: u64,
    seconds: f64,
    gmac_per_s: f64,
    memory: Option<u64>,
    /// Seconds and share of each kind of operation, longest first.
    operations: Vec<(String, f64, f64)>,
}

impl Run {
    fn read(line: &str) -> Result<Self, Failed> {
        let json: Value = serde_json::from_str(line)?;
        if json["schema"] != "attest-bench-forward/1" {
            return Err(format!("a line has the schema {}", json["schema"]).into());
        }
        let missing = |name: &str| format!("a report has no {name}");
        let text = |json: &Value, name: &str| {
            json[name].as_str().map(str::to_owned).ok_or_else(|| missing(name))
        };
        let count = |name: &str| json[name].as_u64().ok_or_else(|| missing(name));
        let number = |json: &Value, name: &str| json[name].as_f64().ok_or_else(|| missing(name));
        let machine = &json["machine"];
        let operations = json["operations"].as_array().ok_or_else(|| missing("operations"))?;
        let operation = |json: &Value| {
            let name = text(json, "operation")?;
            Ok((name, number(json, "seconds")?, number(json, "share")?))
        };
        Ok(Self {
            model: text(&json, "model")?,
            setup: format!(
                "{}, {} threads, {}",
                text(machine, "cpu")?,
                machine["threads"],
                text(&json, "simd")?
            ),
            // The first records have it as text.
            load: match (machine["load"].as_f64(), machine["load"].as_str()) {
                (Some(load), _) => format!("{load:.2}"),
                (None, text) => text.unwrap_or("unknown").to_owned(),
            },
            logits: text(&json, "logits")?,
            prompt: count("prompt_tokens")?,
            generated: count("generated")?,
            positions: count("positions")?,
            logits_rows: count("logits_rows")?,
            seconds: number(&json, "seconds")?,
            gmac_per_s: number(&json, "gmac_per_s")?,
            memory: json["memory"]["anonymous_peak"].as_u64(),
            operations: operations.iter().map(operation).collect::<Result<_, String>>()?,
        })
    }

    fn per_position(&self) -> f64 {
        self.seconds / self.positions as f64
    }

    fn of(&self, operation: &str) -> f64 {
        let own = self.operations.iter().filter(|(name, ..)| name == operation);
        own.map(|(_, seconds, _)| seconds).sum()
    }
}

/// Prompts with one token generated, of the model and setup of the last report, by
/// length.
fn prompts(runs: &[Run]) -> Vec<Run> {
    let Some(last) = runs.last() else { return Vec::new() };
    let of_prompt = |run: &&Run| {
        (&run.model, &run.setup) == (&last.model, &last.setup)
            && run.logits == "last"
            && run.generated == 1
    };
    let by_length: BTreeMap<u64, &Run> =
        runs.iter().filter(of_prompt).map(|run| (run.positions, run)).collect();
    by_length.into_values().cloned().collect()
}

/// Seconds a token against the length: the whole pass, and all but attention.
fn draw(path: &Path, curve: &[Run]) -> Result<(), Failed> {
    let longest = curve.iter().map(|run| run.positions).max().unwrap_or(1) as f64;
    let slowest = curve.iter().map(Run::per_position).fold(0.0, f64::max);
    let caption = curve
        .first()
        .map_or_else(String::new, |run| format!("Re-execution of {} on {}", run.model, run.setup));
    let area = SVGBackend::new(path, (720, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(caption, ("sans-serif", 16))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..longest * 1.05, 0.0..slowest * 1.2)?;
    chart
        .configure_mesh()
        .x_desc("tokens of the prompt")
        .y_desc("seconds a token")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.3}"))
        .light_line_style(WHITE)
        .draw()?;
    for (name, color, left_out) in
        [("whole pass", RED, None), ("without attention", BLUE, Some("attention"))]
    {
        let points = curve.iter().map(|run| {
            let seconds = run.seconds - left_out.map_or(0.0, |operation| run.of(operation));
            (run.positions as f64, seconds / run.positions as f64)
        });
        chart
            .draw_series(LineSeries::new(points.clone(), &color))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
        chart.draw_series(points.map(|point| Circle::new(point, 3, color.filled())))?;
    }
    chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).draw()?;
    area.present()?;
    Ok(())
}

fn table_of_runs(runs: &[Run]) -> String {
    let mut text = String::from(
        "| model | prompt | generated | rows of logits | seconds | seconds a position | GMAC/s | anonymous memory, MiB | machine | load |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for run in runs {
        let memory = run.memory.map_or("–".to_owned(), |bytes| (bytes >> 20).to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.2} | {:.4} | {:.2} | {memory} | {} | {} |",
            run.model,
            run.prompt,
            run.generated,
            run.logits_rows,
            run.seconds,
            run.per_position(),
            run.gmac_per_s,
            run.setup,
            run.load
        );
    }
    text
}

/// What a generated token costs beside a prompt's token with its logits.
fn generated(runs: &[Run]) -> String {
    let mut text = String::from(
        "| model | prompt | generated | seconds a generated token | seconds a prompt token, logits of all | ratio |\n\
         |---|---|---|---|---|---|\n",
    );
    for run in runs.iter().filter(|run| run.generated > 1 && run.logits == "last") {
        let same = |logits: &str| {
            let mut same = runs.iter().rev().filter(|other| {
                (&other.model, &other.setup) == (&run.model, &run.setup)
                    && (other.prompt, other.generated) == (run.prompt, 1)
            });
            same.find(|other| other.logits == logits)
        };
        if let (Some(prompt), Some(all)) = (same("last"), same("all")) {
            // The prompt's run has generated one token too.
            let each = (run.seconds - prompt.seconds) / (run.generated - 1) as f64;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {each:.4} | {:.4} | {:.2} |",
                run.model,
                run.prompt,
                run.generated,
                all.per_position(),
                each / all.per_position()
            );
        }
    }
    text
}

/// Share of each kind of operation, a column a length.
fn profile(curve: &[Run]) -> String {
    let mut text = String::from("| operation |");
    for run in curve {
        let _ = write!(text, " {} tokens: s | share |", run.positions);
    }
    text.push_str("\n|---|");
    text.push_str(&"---|---|".repeat(curve.len()));
    let names = curve.first().map_or(&[][..], |run| &run.operations);
    for (name, ..) in names {
        let _ = write!(text, "\n| {name} |");
        for run in curve {
            let seconds = run.of(name);
            let _ = write!(text, " {seconds:.3} | {:.1} % |", 100.0 * seconds / run.seconds);
        }
    }
    text.push('\n');
    text
}

/// Replaces what is between `<!-- mark -->` and `<!-- /mark -->`.
fn replaced(text: &str, mark: &str, content: &str) -> Result<String, Failed> {
    let (start, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (before, rest) = text.split_once(&start).ok_or_else(|| format!("no mark {mark}"))?;
    let (_, after) = rest.split_once(&end).ok_or_else(|| format!("no end of {mark}"))?;
    Ok(format!("{before}{start}{content}{end}{after}"))
}
